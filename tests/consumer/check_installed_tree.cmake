# An installed tree has each public header but the ABSENT ones, which are those of backends that were not built. It can
# be moved to another place or machine, and shows nothing of how it was built: no path of the source or build tree, and
# no library that is dlock's private matter.
cmake_minimum_required(VERSION 3.25)

file(GLOB_RECURSE files "${LIBRARY_DIR}/cmake/dlock/*" "${LIBRARY_DIR}/pkgconfig/*" "${PREFIX}/include/dlock/*")
set(wanted
  "${LIBRARY_DIR}/cmake/dlock/dlockConfig.cmake"
  "${LIBRARY_DIR}/cmake/dlock/dlockConfigVersion.cmake"
  "${LIBRARY_DIR}/cmake/dlock/dlockTargets.cmake"
  "${LIBRARY_DIR}/pkgconfig/dlock.pc")
foreach(file IN LISTS wanted)
  if(NOT file IN_LIST files)
    message(FATAL_ERROR "not installed: ${file}")
  endif()
endforeach()

file(GLOB_RECURSE public RELATIVE "${SOURCE_DIR}/include" "${SOURCE_DIR}/include/*")
file(GLOB_RECURSE installed RELATIVE "${PREFIX}/include" "${PREFIX}/include/*")
list(FILTER installed EXCLUDE REGEX "^dlock/conformance/")  # a component of its own
set(expected ${public})
list(REMOVE_ITEM expected "" ${ABSENT})
set(missing ${expected})
list(REMOVE_ITEM missing "" ${installed})
set(unexpected ${installed})
list(REMOVE_ITEM unexpected "" ${expected})
if(missing OR unexpected)
  message(FATAL_ERROR "public headers that are not installed: ${missing}\ninstalled, but not to be: ${unexpected}")
endif()

foreach(file IN LISTS files)
  file(READ "${file}" text)
  foreach(place IN ITEMS "${SOURCE_DIR}" "${BUILD_DIR}" "${PREFIX}")
    string(FIND "${text}" "${place}" position)
    if(position GREATER_EQUAL 0)
      message(FATAL_ERROR "${file} mentions ${place}")
    endif()
  endforeach()
  # The headers for programs with an Asio of their own.
  if(file MATCHES "/dlock/(boost_asio|asio|detail/asio_support)\\.hpp$|/dlock/detail/asio\\.ipp$")
    continue()
  endif()
  string(REGEX REPLACE "include/dlock/[a-z_/]+\\.[hi]pp" "" text "${text}")
  if(text MATCHES "[^a-z](asio|xxhash|dlock_developer_flags)")
    message(FATAL_ERROR "${file} mentions ${CMAKE_MATCH_1}")
  endif()
endforeach()
