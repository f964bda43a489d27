# The target Neuropod::eigen, for applications that include neuropod/conversions/eigen.hh: Neuropod and Eigen.
# Where there is no Eigen there is no such target. Used by this tree and by the installed package.
include_guard(DIRECTORY)

find_package(Eigen3 QUIET NO_MODULE)
if(TARGET Eigen3::Eigen AND NOT TARGET Neuropod::eigen)
  add_library(Neuropod::eigen INTERFACE IMPORTED GLOBAL)
  target_link_libraries(Neuropod::eigen INTERFACE Neuropod::neuropod Eigen3::Eigen)
endif()
