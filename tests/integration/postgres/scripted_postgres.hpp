// What PostgreSQL servers send, and clients first.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "tests/support/scripted_server.hpp"

namespace dlock::test {

inline std::string number(std::uint32_t value, int bytes) {
  std::string text;
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) text += static_cast<char>(value >> shift & 0xffU);
  return text;
}

// A message of the protocol: a letter, the length, which counts itself, and what is in it.
inline std::string message(char type, const std::string& content) {
  return type + number(static_cast<std::uint32_t>(content.size()) + 4, 4) + content;
}

// One of which only the beginning comes.
inline std::string beginning(char type, std::uint32_t length) {
  return type + number(length, 4);
}

inline std::string text_field(const std::string& text) {
  return text + '\0';
}

inline std::string notice(char type, const std::string& text) {
  return message(type, "S" + text_field("NOTICE") + "V" + text_field("NOTICE") + "C" + text_field("00000") + "M" +
                           text_field(text) + '\0');
}

// What a server says that lets us in.
inline std::string welcome() {
  return message('R', number(0, 4)) + message('S', text_field("server_version") + text_field("15.0")) +
         message('S', text_field("client_encoding") + text_field("UTF8")) +
         message('K', number(4711, 4) + number(17, 4)) + message('Z', "I");
}

inline std::string one_column() {
  return message('T', number(1, 2) + text_field("c") + number(0, 4) + number(0, 2) + number(25, 4) + number(0xffff, 2) +
                          number(0, 4) + number(0, 2));
}

inline std::string row(const std::string& value) {
  return message('D', number(1, 2) + number(static_cast<std::uint32_t>(value.size()), 4) + value);
}

inline bool is_startup(const std::string& received) {
  return received.size() >= 8 && received.substr(4, 4) == number(196608, 4);
}

inline ScriptedServer::Script polite_until_asked(ScriptedServer::Answer answer) {
  return [answer = std::move(answer)](const std::string& received) {
    if (received.empty()) return ScriptedServer::Answer{};
    return is_startup(received) ? ScriptedServer::Answer{.bytes = welcome()} : answer;
  };
}

}  // namespace dlock::test
