#pragma once

// NumPy's C API, shared by the files of this module: module.cc imports the table, the others use
// it. Built with NumPy 2 headers, it runs with NumPy 1.26 and later.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define NPY_TARGET_VERSION NPY_1_25_API_VERSION
#define NPY_NO_DEPRECATED_API NPY_1_25_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL neuropod_numpy_api
#ifndef NEUROPOD_IMPORTS_NUMPY
#define NO_IMPORT_ARRAY
#endif

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#include <numpy/arrayobject.h>
#include <numpy/arrayscalars.h>
#pragma GCC diagnostic pop
