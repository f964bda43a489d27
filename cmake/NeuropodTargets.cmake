# How every target of this tree is compiled, and the helpers that declare them.
include_guard(GLOBAL)
include(GNUInstallDirs)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

# One layout for the build tree and the installed one: lib/, bin/, lib/neuropod/backends/<name>/.
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")

find_program(NEUROPOD_CCACHE ccache)
if(NEUROPOD_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${NEUROPOD_CCACHE}")
endif()

# Warnings, include path and sanitizers; every target of ours links it privately.
add_library(neuropod_build_settings INTERFACE)
target_include_directories(neuropod_build_settings INTERFACE "${PROJECT_SOURCE_DIR}/source")
target_compile_options(neuropod_build_settings INTERFACE -Wall -Wextra -Wpedantic -Werror=return-type
                                                         -Wno-missing-field-initializers)
# One list of source prefixes, so that a file's name in a message doesn't hold a path of this machine.
target_compile_options(neuropod_build_settings INTERFACE
                       "-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=")
foreach(sanitizer IN LISTS NEUROPOD_SANITIZE)
  target_compile_options(neuropod_build_settings INTERFACE -fsanitize=${sanitizer}
                                                           -fno-omit-frame-pointer -O1 -g1)
  target_link_options(neuropod_build_settings INTERFACE -fsanitize=${sanitizer})
endforeach()

# neuropod_add_objects(folder sources… [LINK libraries…]): one folder of the core. All of them together
# are libneuropod.
function(neuropod_add_objects folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LINK")
  add_library(neuropod_${folder} OBJECT ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(neuropod_${folder} PRIVATE neuropod_build_settings nlohmann_json::nlohmann_json
                                                   neuropod_fmt ${arg_LINK})
  set_property(GLOBAL APPEND PROPERTY NEUROPOD_CORE_OBJECTS neuropod_${folder})
endfunction()

# neuropod_add_test(name sources… [LABELS …] [LINK …] [ENVIRONMENT …] [ARGS …]): a GoogleTest program.
function(neuropod_add_test name)
  if(NOT NEUROPOD_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LABELS;LINK;ENVIRONMENT;ARGS")
  if(NOT arg_LABELS)
    set(arg_LABELS unit)
  endif()
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE neuropod_build_settings neuropod GTest::gtest GTest::gmock
                                        GTest::gtest_main ${arg_LINK})
  # Tests spend their time compiling, not running.
  target_compile_options(${name} PRIVATE $<$<NOT:$<CONFIG:Debug>>:-O1>)
  add_test(NAME ${name} COMMAND ${name} ${arg_ARGS} WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
  # The user's own plug-ins mustn't decide what the core's tests find.
  set(environment "XDG_DATA_HOME=${PROJECT_BINARY_DIR}/no-data-home" ${arg_ENVIRONMENT})
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT 300 ENVIRONMENT "${environment}")
endfunction()

# neuropod_add_benchmark(name sources… [LINK …]): a Google Benchmark program.
function(neuropod_add_benchmark name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LINK")
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE neuropod_build_settings neuropod benchmark::benchmark ${arg_LINK})
endfunction()
