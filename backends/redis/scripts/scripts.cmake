# Makes a C++ source of the scripts, with their hashes, by which Redis knows them. A line "--include FILE" stands for
# that file. Comments and blank lines are left out, because the client sends the text.
#   cmake -D OUTPUT=FILE -P scripts.cmake    does it with the files beside this one
set(directory "${CMAKE_CURRENT_LIST_DIR}")
set(definitions "")

foreach(script acquire election_acquire release renew inspect forget
               shared_acquire shared_release shared_renew shared_inspect shared_forget)
  set(text "--include ${script}.lua\n")
  while(text MATCHES "--include ([a-z_]+\\.lua)\n")
    set(line "${CMAKE_MATCH_0}")
    set(file "${directory}/${CMAKE_MATCH_1}")
    file(READ "${file}" included)
    string(REPLACE "${line}" "${included}" text "${text}")
    if(NOT CMAKE_SCRIPT_MODE_FILE)
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
    endif()
  endwhile()
  string(REGEX REPLACE "\n *--[^\n]*" "" text "\n${text}")
  string(REGEX REPLACE "\n\n+" "\n" text "${text}")
  string(SHA1 sha1 "${text}")
  string(REGEX REPLACE ".*_" "" name "${script}")
  string(APPEND definitions "const Script ${script} = {\"${name}\", R\"lua(${text})lua\", \"${sha1}\"};\n")
endforeach()

file(CONFIGURE OUTPUT "${OUTPUT}" @ONLY CONTENT [[
#include "backends/redis/requests/scripts.hpp"

namespace dlock::redis::scripts {
@definitions@
}  // namespace dlock::redis::scripts
]])
