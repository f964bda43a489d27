# Declares a plug-in, in this tree and, through find_package(Neuropod), in any other.
include_guard(GLOBAL)

# neuropod_add_backend(name
#   PLATFORM <platform>            the packages it serves, e.g. torchscript
#   FRAMEWORK <name>               e.g. torch
#   FRAMEWORK_VERSION <semver>     e.g. 2.13.0
#   SOURCES <files…>
#   [LINK <targets or libraries…>] what it is compiled against
#   [LIBRARIES <paths…>]           the framework's shared libraries, absolute, in the order to open them
#   [PYTHON_MODULE <module>]       the Python module whose import loads the same libraries
#   [DIRECTORY <folder>]           where the plug-in is made (default:
#                                  <build>/lib/neuropod/backends/<name>)
#   [GPU])
#
# Makes a target `name` and a directory that holds backend.json and the shared library: the plug-in.
# `install(DIRECTORY …)` or copying that directory is all an installation takes.
function(neuropod_add_backend name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "GPU" "PLATFORM;FRAMEWORK;FRAMEWORK_VERSION;PYTHON_MODULE;DIRECTORY"
                        "SOURCES;LINK;LIBRARIES")
  foreach(required PLATFORM FRAMEWORK FRAMEWORK_VERSION SOURCES)
    if(NOT arg_${required})
      message(FATAL_ERROR "neuropod_add_backend(${name}): ${required} is missing")
    endif()
  endforeach()

  set(directory "${CMAKE_BINARY_DIR}/lib/neuropod/backends/${name}")
  if(arg_DIRECTORY)
    set(directory "${arg_DIRECTORY}")
  endif()
  add_library(${name} MODULE ${arg_SOURCES})
  if(PROJECT_NAME STREQUAL "Neuropod")
    target_link_libraries(${name} PRIVATE neuropod_build_settings neuropod)
  else()
    target_link_libraries(${name} PRIVATE Neuropod::neuropod)
  endif()
  target_compile_features(${name} PRIVATE cxx_std_20)
  target_link_libraries(${name} PRIVATE -Wl,--no-as-needed ${arg_LINK} -Wl,--exclude-libs,ALL)
  target_link_options(${name} PRIVATE
                      "LINKER:--version-script=${CMAKE_CURRENT_FUNCTION_LIST_DIR}/neuropod.map")
  target_compile_definitions(${name} PRIVATE
    NEUROPOD_BACKEND_PLATFORM="${arg_PLATFORM}"
    NEUROPOD_BACKEND_FRAMEWORK_VERSION="${arg_FRAMEWORK_VERSION}")
  # The core opens the framework's libraries by path before the plug-in, so it needs no run path.
  set_target_properties(${name} PROPERTIES
    PREFIX "lib" OUTPUT_NAME "${name}" LIBRARY_OUTPUT_DIRECTORY "${directory}"
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON POSITION_INDEPENDENT_CODE ON
    SKIP_BUILD_RPATH ON)

  set(libraries "")
  foreach(library IN LISTS arg_LIBRARIES)
    string(APPEND libraries "${libraries_separator}\n    \"${library}\"")
    set(libraries_separator ",")
  endforeach()
  set(gpu false)
  if(arg_GPU)
    set(gpu true)
  endif()
  file(CONFIGURE OUTPUT "${directory}/backend.json" @ONLY CONTENT [[{
  "manifest_version": 1,
  "platform": "@arg_PLATFORM@",
  "framework": "@arg_FRAMEWORK@",
  "framework_version": "@arg_FRAMEWORK_VERSION@",
  "neuropod_abi": "@NEUROPOD_ABI_VERSION@",
  "library": "lib@name@.so",
  "libraries": [@libraries@],
  "python_module": "@arg_PYTHON_MODULE@",
  "gpu": @gpu@
}
]])
endfunction()
