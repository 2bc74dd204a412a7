// Shared by the tests of broken or malicious servers.
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

// Sends the answer to whatever it receives, from the first message on.
[[nodiscard]] inline ScriptedServer::Script rude(ScriptedServer::Answer answer) {
  return [answer = std::move(answer)](const std::string& received) {
    return received.empty() ? ScriptedServer::Answer{} : answer;
  };
}

// The same, and already when a connection is opened.
[[nodiscard]] inline ScriptedServer::Script blunt(ScriptedServer::Answer answer) {
  return [answer = std::move(answer)](const std::string& /*received*/) { return answer; };
}

// The permitted results of an acquire. "Busy", or a grant, would mean trust in such a server.
[[nodiscard]] inline bool is_error_of_hostile_server(const std::error_code& error) {
  return error == errc::protocol || error == errc::unavailable || error == errc::ambiguous ||
         error == errc::access_denied;
}

}  // namespace dlock::test
