# Backends that need a client library: built if that is found (AUTO), always (ON, or configuring fails), never (OFF).

# dlock_optional_backend(NAME "description") declares the option DLOCK_WITH_<NAME>.
function(dlock_optional_backend name description)
  set(DLOCK_WITH_${name} AUTO CACHE STRING "${description}: AUTO, ON or OFF")
  set_property(CACHE DLOCK_WITH_${name} PROPERTY STRINGS AUTO ON OFF)
  if(NOT DLOCK_WITH_${name} STREQUAL "AUTO" AND NOT DLOCK_WITH_${name} MATCHES "^(ON|OFF|TRUE|FALSE|YES|NO|1|0)$")
    message(FATAL_ERROR "DLOCK_WITH_${name} must be AUTO, ON or OFF, not \"${DLOCK_WITH_${name}}\"")
  endif()
endfunction()

# dlock_use_for_backend(NAME variable target what) sets the variable to whether the target exists, that is, whether to
# build the backend. `what` names the library for people.
function(dlock_use_for_backend name result target what)
  set(${result} FALSE PARENT_SCOPE)
  if(TARGET ${target})
    set(${result} TRUE PARENT_SCOPE)
  elseif(NOT DLOCK_WITH_${name} STREQUAL "AUTO")
    message(FATAL_ERROR "DLOCK_WITH_${name} is ON, but ${what} is not found")
  else()
    message(STATUS "dlock: no ${name} backend, because ${what} is not found")
  endif()
endfunction()

# dlock_find_for_backend(NAME variable module...) finds pkg-config modules as targets PkgConfig::<module> and sets the
# variable to whether to build the backend.
function(dlock_find_for_backend name result)
  set(${result} FALSE PARENT_SCOPE)
  if(NOT DLOCK_WITH_${name})
    return()
  endif()
  find_package(PkgConfig QUIET)
  foreach(module IN LISTS ARGN)
    if(PkgConfig_FOUND)
      pkg_check_modules(${module} QUIET IMPORTED_TARGET GLOBAL ${module})
    endif()
    dlock_use_for_backend(${name} found PkgConfig::${module} "pkg-config module ${module}")
    if(NOT found)
      return()
    endif()
  endforeach()
  set(${result} TRUE PARENT_SCOPE)
endfunction()
