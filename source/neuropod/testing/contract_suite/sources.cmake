# The suite's sources below neuropod/testing/, for this tree and for an installed one.
set(NEUROPOD_CONTRACT_SUITE_SOURCES package_on_disk.cc)
foreach(name contract fixtures main loading_contract specs_contract dtypes_contract memory_contract
             calls_contract threads_contract device_contract
             stats_contract)
  list(APPEND NEUROPOD_CONTRACT_SUITE_SOURCES contract_suite/${name}.cc)
endforeach()
