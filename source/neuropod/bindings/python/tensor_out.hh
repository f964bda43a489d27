#pragma once

#include <memory>

#include "neuropod/bindings/python/numpy_api.hh"
#include "neuropod/internal/neuropod_tensor.hh"

namespace neuropod::python {

/// How a string tensor becomes an array.
enum class StringForm {
  kText,   ///< decoded from UTF-8: `<U`, or dtype object where `<U` can't carry it (see
           ///< array_from_tensor)
  kBytes,  ///< `S`, as deserialize() returns them; dtype object if an element ends in a NUL
};

/// A NumPy array: a new reference. Numeric tensors aren't copied: the array is writable, lies over
/// the tensor's own memory and keeps it alive; a tensor on another device is brought to the CPU
/// first.
///
/// Strings as text are a `<U` array as wide as the longest, unless an element ends in a NUL (which
/// `<U` drops) or the padding would take more than 16 MiB and 8 times what the strings do: then
/// dtype object, holding str. If an element isn't UTF-8, dtype object, holding bytes. Needs the
/// GIL.
PyObject* array_from_tensor(const std::shared_ptr<NeuropodValue>& value,
                            StringForm form = StringForm::kText);

/// The string part. string_out.cc.
PyObject* array_from_strings(const NeuropodTensor& tensor, StringForm form);

}  // namespace neuropod::python
