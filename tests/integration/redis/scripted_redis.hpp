// A server that reads commands as Redis does, and answers them as a test wants.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/scripted_server.hpp"

namespace dlock::test {

using RedisCommand = std::vector<std::string>;

// Takes the next whole command off the front of the text; nullopt if there is none yet.
inline std::optional<RedisCommand> take_command(std::string_view& text) {
  std::string_view rest = text;
  const auto number = [&rest](char sign) -> std::optional<std::size_t> {
    const auto end = rest.find("\r\n");
    if (end == std::string_view::npos || rest.front() != sign) return std::nullopt;
    const auto value = static_cast<std::size_t>(std::stoul(std::string(rest.substr(1, end - 1))));
    rest.remove_prefix(end + 2);
    return value;
  };
  const auto count = number('*');
  if (!count) return std::nullopt;
  RedisCommand words;
  for (std::size_t i = 0; i < *count; ++i) {
    const auto size = number('$');
    if (!size || rest.size() < *size + 2) return std::nullopt;
    words.emplace_back(rest.substr(0, *size));
    rest.remove_prefix(*size + 2);
  }
  text = rest;
  return words;
}

// Answers every command by itself.
inline ScriptedServer::Script answer_commands(std::function<ScriptedServer::Answer(const RedisCommand&)> answer) {
  return [answer = std::move(answer)](const std::string& received) {
    ScriptedServer::Answer all;
    std::string_view rest = received;
    while (const auto command = take_command(rest)) {
      const ScriptedServer::Answer one = answer(*command);
      all.bytes += one.bytes;
      all.repeat += one.repeat;
      all.close = all.close || one.close;
      if (!one.repeat.empty() || one.close) break;
    }
    all.unread = rest.size();
    return all;
  };
}

// Says yes to everything until a script is to be run, and then what it was told to say.
inline ScriptedServer::Script polite_until_asked(ScriptedServer::Answer answer) {
  return answer_commands([answer = std::move(answer)](const RedisCommand& command) {
    return command.front().starts_with("EVAL") ? answer : ScriptedServer::Answer{.bytes = "+OK\r\n"};
  });
}

}  // namespace dlock::test
