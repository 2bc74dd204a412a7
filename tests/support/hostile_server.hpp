// What the tests of servers that are broken or mean harm have in common.
#pragma once

#include <ostream>
#include <string>
#include <system_error>
#include <utility>

#include <dlock/error.hpp>

#include "tests/support/scripted_server.hpp"

namespace dlock::test {

struct Hostility {
  const char* name;
  ScriptedServer::Answer answer;
};
inline void PrintTo(const Hostility& hostility, std::ostream* out) {
  *out << hostility.name;
}

// Gives the answer to whatever it hears, from the first word on.
[[nodiscard]] inline ScriptedServer::Script rude(ScriptedServer::Answer answer) {
  return [answer = std::move(answer)](const std::string& received) {
    return received.empty() ? ScriptedServer::Answer{} : answer;
  };
}

// The same, and at once when a connection has come.
[[nodiscard]] inline ScriptedServer::Script blunt(ScriptedServer::Answer answer) {
  return [answer = std::move(answer)](const std::string& /*received*/) { return answer; };
}

// What an acquire may end with. "Busy", or a grant, would be believing such a server.
[[nodiscard]] inline bool is_error_of_hostile_server(const std::error_code& error) {
  return error == errc::protocol || error == errc::unavailable || error == errc::ambiguous ||
         error == errc::access_denied;
}

}  // namespace dlock::test
