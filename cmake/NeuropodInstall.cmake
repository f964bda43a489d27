# What an installed Neuropod consists of: library, headers, CMake package, pkg-config file, the echo
# plug-in, the plug-ins' sources and the contract suite. In a wheel the same tree lies inside the Python
# package.
#
# Components:
#   neuropod      what a program needs that runs: the library, the echo plug-in
#   development   what compiling against it needs: headers, CMake package, sources of plug-ins and suite
#   linking       what a wheel can't hold: the link libneuropod.so, and the pkg-config file that needs it
#   python        the native module, which only wheels install
include_guard(GLOBAL)
include(CMakePackageConfigHelpers)

set(cmake_dir "${CMAKE_INSTALL_LIBDIR}/cmake/Neuropod")

# A wheel holds no links, and two copies of libneuropod would be two registries: the link is apart.
install(TARGETS neuropod EXPORT NeuropodTargets
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT neuropod NAMELINK_COMPONENT linking)
install(TARGETS neuropod-worker RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT neuropod)

set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME development)
install(EXPORT NeuropodTargets NAMESPACE Neuropod:: DESTINATION "${cmake_dir}")
configure_package_config_file(cmake/NeuropodConfig.cmake.in "${PROJECT_BINARY_DIR}/NeuropodConfig.cmake"
                              INSTALL_DESTINATION "${cmake_dir}"
                              PATH_VARS CMAKE_INSTALL_DATADIR)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/NeuropodConfigVersion.cmake"
                                 COMPATIBILITY SameMajorVersion)
install(FILES "${PROJECT_BINARY_DIR}/NeuropodConfig.cmake" "${PROJECT_BINARY_DIR}/NeuropodConfigVersion.cmake"
              cmake/NeuropodBackend.cmake cmake/NeuropodContractSuite.cmake cmake/NeuropodEigen.cmake
              cmake/neuropod.map DESTINATION "${cmake_dir}")

# What applications include, and what plug-ins and the contract suite do; and what those headers include.
# tests/e2e/test_installed_headers.py fails where one is missing.
set(public_headers
    backends/metrics.hh backends/model_stats.hh backends/neuropod_backend.hh
    backends/tensor_allocator.hh backends/tensor_allocator_impl.hh backends/worker_info.hh
    backends/worker_memory.hh
    base/error.hh base/logging.hh base/shared_library.hh base/temporary_folder.hh base/visibility.hh
    core/generic_tensor.hh core/memory_pool.hh
    package/call_plan.hh package/problem_api.hh
    serialization/serialization.hh)
foreach(header IN LISTS public_headers)
  cmake_path(GET header PARENT_PATH folder)
  install(FILES "source/neuropod/${header}" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/neuropod/${folder}")
endforeach()
foreach(folder . internal conversions)  # all of these are public
  file(GLOB headers CONFIGURE_DEPENDS "source/neuropod/${folder}/*.hh")
  list(FILTER headers EXCLUDE REGEX "/async_calls\\.hh$")  # how infer_async() is done
  install(FILES ${headers} DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/neuropod/${folder}")
endforeach()

file(RELATIVE_PATH prefix_from_pkgconfig "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
configure_file(cmake/neuropod.pc.in "${PROJECT_BINARY_DIR}/neuropod.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/neuropod.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig"
        COMPONENT linking)

# Plug-ins that are compiled against the user's framework travel as sources.
install(DIRECTORY source/neuropod/backends/torchscript DESTINATION "${CMAKE_INSTALL_DATADIR}/neuropod/backends")
# The suite's includes start at this folder.
set(suite "${CMAKE_INSTALL_DATADIR}/neuropod/contract_suite/neuropod/testing")
install(DIRECTORY source/neuropod/testing/contract_suite DESTINATION "${suite}"
        PATTERN CMakeLists.txt EXCLUDE PATTERN echo_fixtures.cmake EXCLUDE)
install(FILES source/neuropod/testing/error_of.hh source/neuropod/testing/package_on_disk.hh
              source/neuropod/testing/package_on_disk.cc
        DESTINATION "${suite}")
