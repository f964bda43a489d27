# What an installed Neuropod consists of: library, headers, CMake package, pkg-config file, the echo
# plug-in, the plug-ins' sources and the contract suite. In a wheel the same tree lies inside the Python
# package.
include_guard(GLOBAL)
include(CMakePackageConfigHelpers)

set(cmake_dir "${CMAKE_INSTALL_LIBDIR}/cmake/Neuropod")

# A wheel holds no links, and two copies of libneuropod would be two registries: the link is apart.
install(TARGETS neuropod EXPORT NeuropodTargets
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" NAMELINK_COMPONENT development)
install(EXPORT NeuropodTargets NAMESPACE Neuropod:: DESTINATION "${cmake_dir}")
configure_package_config_file(cmake/NeuropodConfig.cmake.in "${PROJECT_BINARY_DIR}/NeuropodConfig.cmake"
                              INSTALL_DESTINATION "${cmake_dir}"
                              PATH_VARS CMAKE_INSTALL_DATADIR)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/NeuropodConfigVersion.cmake"
                                 COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/NeuropodConfig.cmake" "${PROJECT_BINARY_DIR}/NeuropodConfigVersion.cmake"
              cmake/NeuropodBackend.cmake cmake/NeuropodContractSuite.cmake
              cmake/neuropod.map DESTINATION "${cmake_dir}")

foreach(folder . base backends core internal package serialization conversions)
  file(GLOB headers CONFIGURE_DEPENDS "source/neuropod/${folder}/*.hh")
  install(FILES ${headers} DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/neuropod/${folder}")
endforeach()

configure_file(cmake/neuropod.pc.in "${PROJECT_BINARY_DIR}/neuropod.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/neuropod.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig"
        COMPONENT development)

install(DIRECTORY "${PROJECT_BINARY_DIR}/lib/neuropod/backends/" DESTINATION
        "${CMAKE_INSTALL_LIBDIR}/neuropod/backends")
# Plug-ins that are compiled against the user's framework travel as sources.
install(DIRECTORY source/neuropod/backends/torchscript DESTINATION "${CMAKE_INSTALL_DATADIR}/neuropod/backends")
# The suite's includes start at this folder.
set(suite "${CMAKE_INSTALL_DATADIR}/neuropod/contract_suite/neuropod/testing")
install(DIRECTORY source/neuropod/testing/contract_suite DESTINATION "${suite}"
        PATTERN CMakeLists.txt EXCLUDE PATTERN echo_fixtures.cmake EXCLUDE)
install(FILES source/neuropod/testing/package_on_disk.hh source/neuropod/testing/package_on_disk.cc
        DESTINATION "${suite}")
