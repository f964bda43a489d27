# Builds the contract suite for a backend, in this tree and, through find_package(Neuropod), in any other.
include_guard(GLOBAL)

# neuropod_add_contract_suite(target
#   FIXTURES <file>           the JSON file that says what the backend brings, see the suite's README.md
#   [TEST <name>]             the ctest test (default: the target's name)
#   [ENVIRONMENT <VAR=value…>])
#
# Makes a program `target` and two ctest tests that run it, in this process and out of it. It finds the plug-ins that
# neuropod_add_backend() makes in this build. Needs GoogleTest and nlohmann-json.
function(neuropod_add_contract_suite target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "FIXTURES;TEST" "ENVIRONMENT")
  if(NOT arg_FIXTURES)
    message(FATAL_ERROR "neuropod_add_contract_suite(${target}): FIXTURES is missing")
  endif()
  if(NOT arg_TEST)
    set(arg_TEST ${target})
  endif()
  find_package(GTest REQUIRED)
  find_package(nlohmann_json REQUIRED)

  add_executable(${target})
  if(PROJECT_NAME STREQUAL "Neuropod")
    set(root "${PROJECT_SOURCE_DIR}/source")
    target_link_libraries(${target} PRIVATE neuropod_build_settings neuropod)
  elseif(DEFINED Neuropod_SOURCE_DIR)  # by add_subdirectory
    set(root "${Neuropod_SOURCE_DIR}/source")
    target_link_libraries(${target} PRIVATE Neuropod::neuropod)
  else()
    set(root "${NEUROPOD_DATA_DIR}/contract_suite")
    target_link_libraries(${target} PRIVATE Neuropod::neuropod)
    target_include_directories(${target} PRIVATE "${root}")
  endif()
  include("${root}/neuropod/testing/contract_suite/sources.cmake")
  list(TRANSFORM NEUROPOD_CONTRACT_SUITE_SOURCES PREPEND "${root}/neuropod/testing/")
  target_sources(${target} PRIVATE ${NEUROPOD_CONTRACT_SUITE_SOURCES})
  target_compile_features(${target} PRIVATE cxx_std_20)
  target_link_libraries(${target} PRIVATE GTest::gtest GTest::gmock nlohmann_json::nlohmann_json)

  add_test(NAME ${arg_TEST} COMMAND ${target} --fixtures "${arg_FIXTURES}")
  add_test(NAME ${arg_TEST}_out_of_process
           COMMAND ${target} --fixtures "${arg_FIXTURES}" --out-of-process)
  set_tests_properties(${arg_TEST} ${arg_TEST}_out_of_process PROPERTIES LABELS backend TIMEOUT 300
    ENVIRONMENT "NEUROPOD_BACKEND_PATH=${CMAKE_BINARY_DIR}/lib/neuropod/backends;${arg_ENVIRONMENT}")
endfunction()
