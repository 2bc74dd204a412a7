# No public header may include anything but other public headers and the C++ standard library, whose headers are the
# only ones with neither a dot nor a slash in their names. The exceptions are the two headers for programs that have an
# Asio of their own.
cmake_minimum_required(VERSION 3.25)

file(GLOB_RECURSE headers "${INCLUDE_DIR}/*.hpp" "${INCLUDE_DIR}/*.ipp")
if(NOT headers)
  message(FATAL_ERROR "no headers in ${INCLUDE_DIR}")
endif()
set(bad "")
foreach(header IN LISTS headers)
  file(STRINGS "${header}" includes REGEX "^[ \t]*#[ \t]*include")
  foreach(include IN LISTS includes)
    if(header STREQUAL "${INCLUDE_DIR}/dlock/asio.hpp" AND include MATCHES "^#include <(asio/[a-z_/]+\\.hpp|dlock/detail/asio\\.ipp)>$")
      continue()
    elseif(header STREQUAL "${INCLUDE_DIR}/dlock/boost_asio.hpp"
        AND include MATCHES "^#include <(boost/[a-z_/]+\\.hpp|dlock/detail/asio\\.ipp)>$")
      continue()
    endif()
    if(NOT include MATCHES "^#include <(dlock/[a-z_/]+\\.hpp|[a-z_0-9]+)>$")
      list(APPEND bad "${header}: ${include}")
    endif()
  endforeach()
endforeach()
if(bad)
  list(JOIN bad "\n" bad)
  message(FATAL_ERROR "not from the standard library:\n${bad}")
endif()
