# The target torch_library and the list torch_libraries, from the directory of a Python module `torch`
# (FRAMEWORK_MODULE_DIR), or from a libtorch that lies elsewhere (FRAMEWORK_INCLUDE_DIR, FRAMEWORK_LIBRARY_DIR, and
# FRAMEWORK_DEPENDENCY_DIRS: the folders of libraries that it needs and the loader wouldn't find).
#
# Not find_package(Torch): of a CUDA build of torch, that insists on the CUDA toolkit and its compiler, which
# nothing here needs; and where Debian's libtorch-dev is installed, it may find that one's libc10.
include_guard(GLOBAL)

foreach(variable FRAMEWORK_MODULE_DIR FRAMEWORK_VERSION)
  if(NOT ${variable})
    message(FATAL_ERROR "${variable} is not set; `neuropod backends install torchscript` sets it")
  endif()
endforeach()
if(NOT FRAMEWORK_INCLUDE_DIR)
  set(FRAMEWORK_INCLUDE_DIR "${FRAMEWORK_MODULE_DIR}/include")
endif()
if(NOT FRAMEWORK_LIBRARY_DIR)
  set(FRAMEWORK_LIBRARY_DIR "${FRAMEWORK_MODULE_DIR}/lib")
endif()
if(NOT EXISTS "${FRAMEWORK_INCLUDE_DIR}/torch/script.h")
  message(FATAL_ERROR "There are no headers of torch in ${FRAMEWORK_INCLUDE_DIR}; "
                      "FRAMEWORK_MODULE_DIR must be the directory of the Python module torch, as its wheel "
                      "from PyPI has it")
endif()

# In the order to open them: each needs those before it. The libraries they bundle (libgomp, CUDA's) they find
# by themselves; a host that has its own copy of one of those may keep it.
set(torch_libraries "")
foreach(name c10 c10_cuda torch_cpu torch_cuda torch)
  set(path "${FRAMEWORK_LIBRARY_DIR}/lib${name}.so")
  if(EXISTS "${path}")
    list(APPEND torch_libraries "${path}")
  elseif(NOT name MATCHES "cuda")
    message(FATAL_ERROR "${path} doesn't exist: this torch is incomplete, or older than 1.5")
  endif()
endforeach()
set(torch_gpu "")
if(EXISTS "${FRAMEWORK_LIBRARY_DIR}/libtorch_cuda.so")
  set(torch_gpu GPU)
endif()

file(STRINGS "${FRAMEWORK_LIBRARY_DIR}/libc10.so" new_abi_symbol REGEX "_ZN3c10.*__cxx11" LIMIT_COUNT 1)
if(NOT new_abi_symbol)
  message(FATAL_ERROR "torch ${FRAMEWORK_VERSION} was built with the old C++ ABI (_GLIBCXX_USE_CXX11_ABI=0), whose "
                      "std::string isn't ours, so a plug-in for it can't be linked. torch's wheels have the new "
                      "one since 2.6: pip install 'torch>=2.6'")
endif()

add_library(torch_library INTERFACE)
target_include_directories(torch_library SYSTEM INTERFACE
  "${FRAMEWORK_INCLUDE_DIR}" "${FRAMEWORK_INCLUDE_DIR}/torch/csrc/api/include")
target_link_libraries(torch_library INTERFACE -Wl,--no-as-needed ${torch_libraries})
# What torch's own libraries need is met when they are opened, wherever that lies.
target_link_options(torch_library INTERFACE -Wl,--allow-shlib-undefined)
target_compile_definitions(torch_library INTERFACE _GLIBCXX_USE_CXX11_ABI=1)

# Opened first, it brings torch in with all that torch needs: its run path, unlike a newer one's (RUNPATH), holds
# for what its dependencies need in turn. Opening those one by one wouldn't do: some of a distribution's libraries
# rely on others that whoever links them brings along.
if(FRAMEWORK_DEPENDENCY_DIRS)
  file(WRITE "${CMAKE_CURRENT_BINARY_DIR}/torch_anchor.cc" "")
  add_library(neuropod_torch_anchor SHARED "${CMAKE_CURRENT_BINARY_DIR}/torch_anchor.cc")
  target_link_libraries(neuropod_torch_anchor PRIVATE torch_library)
  target_link_options(neuropod_torch_anchor PRIVATE LINKER:--disable-new-dtags)
  foreach(folder ${FRAMEWORK_LIBRARY_DIR} ${FRAMEWORK_DEPENDENCY_DIRS})
    target_link_options(neuropod_torch_anchor PRIVATE "LINKER:-rpath,${folder}")
  endforeach()
  set_target_properties(neuropod_torch_anchor PROPERTIES SKIP_BUILD_RPATH ON
    LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib/neuropod/backends/neuropod_torchscript")
  list(PREPEND torch_libraries libneuropod_torch_anchor.so)
endif()
