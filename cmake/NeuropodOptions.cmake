# Options with a text each, and a summary of what was chosen.
include_guard(GLOBAL)
set_property(GLOBAL PROPERTY NEUROPOD_OPTION_NAMES "")

# neuropod_option(NAME "text" default): a switch.
function(neuropod_option name text default)
  option(${name} "${text}" ${default})
  set_property(GLOBAL APPEND PROPERTY NEUROPOD_OPTION_NAMES ${name})
endfunction()

# neuropod_choice(NAME "text" default "allowed;values"): a list of values, each of which must be allowed.
function(neuropod_choice name text default allowed)
  set(${name} "${default}" CACHE STRING "${text} (of: ${allowed})")
  foreach(value IN LISTS ${name})
    if(NOT value IN_LIST allowed)
      message(FATAL_ERROR "${name}: '${value}' is none of: ${allowed}")
    endif()
  endforeach()
  set_property(GLOBAL APPEND PROPERTY NEUROPOD_OPTION_NAMES ${name})
endfunction()

function(neuropod_print_options)
  get_property(names GLOBAL PROPERTY NEUROPOD_OPTION_NAMES)
  message(STATUS "Neuropod ${PROJECT_VERSION}, ${CMAKE_BUILD_TYPE}:")
  foreach(name IN LISTS names)
    get_property(text CACHE ${name} PROPERTY HELPSTRING)
    message(STATUS "  ${name}=${${name}}  (${text})")
  endforeach()
endfunction()
