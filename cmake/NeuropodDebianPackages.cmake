# Two Debian packages, made by cpack: libneuropod1 (the library, the echo plug-in) and libneuropod-dev
# (headers, CMake package, pkg-config file, sources of plug-ins). `make deb` does it; the preset "deb" has the
# settings. Only with NEUROPOD_DEBIAN_PACKAGES, because it also installs what Debian wants under share/doc/.
include_guard(GLOBAL)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME neuropod)
set(CPACK_PACKAGE_VENDOR Neuropod)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "one interface to packaged machine-learning models")
set(CPACK_PACKAGE_CONTACT "${NEUROPOD_MAINTAINER}")
set(CPACK_PACKAGING_INSTALL_PREFIX "${CMAKE_INSTALL_PREFIX}")
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
                                                WORLD_READ WORLD_EXECUTE)

# A package per group of components.
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL neuropod development linking)
set(CPACK_COMPONENT_NEUROPOD_GROUP runtime)
set(CPACK_COMPONENT_DEVELOPMENT_GROUP headers)
set(CPACK_COMPONENT_LINKING_GROUP headers)

set(runtime_package "libneuropod${PROJECT_VERSION_MAJOR}")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME "${runtime_package}")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_RUNTIME_DESCRIPTION
"Loads models that were packaged once and runs them through one C++ interface,
whatever framework made them.

This package holds the shared library and the reference plug-in, which needs
no framework.")
set(CPACK_DEBIAN_HEADERS_PACKAGE_NAME libneuropod-dev)
set(CPACK_DEBIAN_HEADERS_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_HEADERS_PACKAGE_DEPENDS
    "${runtime_package} (= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})")
set(CPACK_DEBIAN_HEADERS_PACKAGE_SUGGESTS "libeigen3-dev, pkg-config")
set(CPACK_DEBIAN_HEADERS_DESCRIPTION
"Headers, CMake package and pkg-config file for programs that run models that
were packaged once, through one C++ interface.

The sources of the framework plug-ins and the contract suite, which a new
plug-in is tested with, are here too.")

# share/doc/<package>/: the licence, and a changelog as Debian's packages have it.
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
set(changelog "${PROJECT_BINARY_DIR}/debian_files/changelog.Debian")
file(CONFIGURE OUTPUT "${changelog}" @ONLY CONTENT "neuropod (@PROJECT_VERSION@-1) unstable; urgency=medium

  * Release @PROJECT_VERSION@; what changed stands in Neuropod's CHANGELOG.md.

 -- @NEUROPOD_MAINTAINER@  @date@
")
set(copyright "${PROJECT_BINARY_DIR}/debian_files/copyright")
file(READ LICENSE-third-party.txt third_parties)
file(CONFIGURE OUTPUT "${copyright}" @ONLY CONTENT "Neuropod, copyright: the Neuropod authors.

Licensed under the Apache License, Version 2.0; on Debian systems its text is in
/usr/share/common-licenses/Apache-2.0.

@third_parties@")
# Linked static and hidden on purpose: frameworks in the same process export their own copies.
set(overrides "${PROJECT_BINARY_DIR}/debian_files/${runtime_package}")
file(WRITE "${overrides}" "${runtime_package}: embedded-library zlib *\n")
install(FILES "${overrides}" DESTINATION "${CMAKE_INSTALL_DATADIR}/lintian/overrides" COMPONENT neuropod)
# cpack's scripts call ldconfig as well; Debian wants the trigger.
file(WRITE "${PROJECT_BINARY_DIR}/debian_files/triggers" "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA "${PROJECT_BINARY_DIR}/debian_files/triggers")
execute_process(COMMAND gzip --best --no-name --force --keep "${changelog}" COMMAND_ERROR_IS_FATAL ANY)
foreach(pair "neuropod ${runtime_package}" "development libneuropod-dev")
  string(REPLACE " " ";" pair "${pair}")
  list(GET pair 0 component)
  list(GET pair 1 package)
  set(folder "${CMAKE_INSTALL_DATADIR}/doc/${package}")
  install(FILES "${copyright}" "${changelog}.gz" DESTINATION "${folder}" COMPONENT ${component})
endforeach()

include(CPack)
