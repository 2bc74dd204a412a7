// The packets that MySQL servers send, and the first one of a client.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "tests/support/scripted_server.hpp"

namespace dlock::test {

inline std::string number(std::size_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xffU);
  return text;
}

// Of which perhaps only the beginning comes. Packets of an answer are numbered from 1.
inline std::string beginning(std::size_t length, int place) {
  return number(length, 3) + number(static_cast<std::size_t>(place), 1);
}
inline std::string packet(int place, const std::string& content) {
  return beginning(content.size(), place) + content;
}
inline std::string text_field(const std::string& text) {
  return number(text.size(), 1) + text;
}

inline std::string greeting() {
  constexpr std::size_t abilities = 0x808a208;  // transactions, protocol 4.1, and names of ways to log in
  return packet(0, "\x0a" + std::string("5.5.5-10.11.0-MariaDB") + '\0' + number(4711, 4) + "12345678" + '\0' +
                       number(abilities & 0xffffU, 2) + "\x2d" + number(2, 2) + number(abilities >> 16U, 2) + "\x15" +
                       std::string(10, '\0') + "123456789012" + '\0' + "mysql_native_password" + '\0');
}
inline std::string ok(int place) {
  return packet(place, number(0, 3) + number(2, 2) + number(0, 2));
}
// The first packets of an answer with rows.
inline std::string one_column() {
  const std::string column = text_field("def") + text_field("") + text_field("") + text_field("") + text_field("c") +
                             text_field("") + "\x0c" + number(63, 2) + number(1024, 4) + "\xfd" + number(0, 5);
  return packet(1, "\x01") + packet(2, column) + packet(3, "\xfe" + number(0, 2) + number(2, 2));
}

// Greets, lets everybody in, and gives this answer to what is asked then. The login is the client's packet number 1.
inline ScriptedServer::Script polite_until_asked(ScriptedServer::Answer answer) {
  return [answer = std::move(answer)](const std::string& received) {
    if (received.empty()) return ScriptedServer::Answer{.bytes = greeting()};
    const bool login = received.size() > 3 && received[3] == 1;
    return login ? ScriptedServer::Answer{.bytes = ok(2)} : answer;
  };
}

}  // namespace dlock::test
