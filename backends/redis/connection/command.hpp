// A command as Redis reads it: an array of bulk strings (RESP2). No I/O.
#pragma once

#include <chrono>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

namespace dlock::redis {

// A duration as commands take it: in whole milliseconds, rounded up, at least one.
[[nodiscard]] std::string in_milliseconds(std::chrono::nanoseconds duration);

class Command {
 public:
  Command() = default;
  Command(std::initializer_list<std::string_view> words) { add(words); }

  void add(std::string_view word) { add_joined({word}); }
  void add(std::initializer_list<std::string_view> words);
  // One word that is made of these parts.
  void add_joined(std::initializer_list<std::string_view> parts);
  // Makes room for words that are so long together.
  void reserve(std::size_t bytes) { words_.reserve(bytes); }

  // `first`: words in front of its own.
  void append_to(std::string& out, std::initializer_list<std::string_view> first = {}) const;
  [[nodiscard]] std::string bytes() const;

 private:
  std::size_t count_ = 0;
  std::string words_;  // as they are sent
};

}  // namespace dlock::redis
