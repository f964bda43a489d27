# The target torch_library and the list torch_libraries, from the directory of a Python module `torch`
# (FRAMEWORK_MODULE_DIR) or an unpacked libtorch.
#
# Not find_package(Torch): of a CUDA build of torch, that insists on the CUDA toolkit and its compiler, which
# nothing here needs; and where Debian's libtorch-dev is installed, it may find that one's libc10.
include_guard(GLOBAL)

foreach(variable FRAMEWORK_MODULE_DIR FRAMEWORK_VERSION)
  if(NOT ${variable})
    message(FATAL_ERROR "${variable} is not set; `neuropod backends install torchscript` sets it")
  endif()
endforeach()
if(NOT EXISTS "${FRAMEWORK_MODULE_DIR}/include/torch/script.h")
  message(FATAL_ERROR "There are no headers of torch in ${FRAMEWORK_MODULE_DIR}/include; "
                      "FRAMEWORK_MODULE_DIR must be the directory of the Python module torch, as its wheel "
                      "from PyPI has it")
endif()

# In the order to open them: each needs those before it. The libraries they bundle (libgomp, CUDA's) they find
# by themselves; a host that has its own copy of one of those may keep it.
set(torch_libraries "")
foreach(name c10 c10_cuda torch_cpu torch_cuda torch)
  set(path "${FRAMEWORK_MODULE_DIR}/lib/lib${name}.so")
  if(EXISTS "${path}")
    list(APPEND torch_libraries "${path}")
  elseif(NOT name MATCHES "cuda")
    message(FATAL_ERROR "${path} doesn't exist: this torch is incomplete, or older than 1.5")
  endif()
endforeach()
set(torch_gpu "")
if(EXISTS "${FRAMEWORK_MODULE_DIR}/lib/libtorch_cuda.so")
  set(torch_gpu GPU)
endif()

file(STRINGS "${FRAMEWORK_MODULE_DIR}/lib/libc10.so" new_abi_symbol REGEX "_ZN3c10.*__cxx11" LIMIT_COUNT 1)
if(NOT new_abi_symbol)
  message(FATAL_ERROR "torch ${FRAMEWORK_VERSION} was built with the old C++ ABI (_GLIBCXX_USE_CXX11_ABI=0), whose "
                      "std::string isn't ours, so a plug-in for it can't be linked. torch's wheels have the new "
                      "one since 2.6: pip install 'torch>=2.6'")
endif()

add_library(torch_library INTERFACE)
target_include_directories(torch_library SYSTEM INTERFACE
  "${FRAMEWORK_MODULE_DIR}/include" "${FRAMEWORK_MODULE_DIR}/include/torch/csrc/api/include")
target_link_libraries(torch_library INTERFACE -Wl,--no-as-needed ${torch_libraries})
target_compile_definitions(torch_library INTERFACE _GLIBCXX_USE_CXX11_ABI=1)
