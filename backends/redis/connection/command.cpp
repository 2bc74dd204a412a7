#include "backends/redis/connection/command.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

namespace dlock::redis {

namespace {

constexpr std::string_view line_end = "\r\n";

// "*4", "$12"
void append_head(std::string& out, char kind, std::size_t number) {
  std::array<char, 24> head{kind};
  char* const end = std::to_chars(head.data() + 1, head.data() + head.size(), number).ptr;  // there is room for any
  out.append(head.data(), end);
  out += line_end;
}

// One word that is made of these parts.
void append_word(std::string& out, std::initializer_list<std::string_view> parts) {
  std::size_t size = 0;
  for (const std::string_view part : parts) size += part.size();
  append_head(out, '$', size);
  for (const std::string_view part : parts) out += part;
  out += line_end;
}

}  // namespace

std::string in_milliseconds(std::chrono::nanoseconds duration) {
  return std::to_string(std::max<std::int64_t>(std::chrono::ceil<std::chrono::milliseconds>(duration).count(), 1));
}

void Command::add(std::initializer_list<std::string_view> words) {
  for (const std::string_view word : words) add(word);
}

void Command::add_joined(std::initializer_list<std::string_view> parts) {
  append_word(words_, parts);
  ++count_;
}

void Command::append_to(std::string& out, std::initializer_list<std::string_view> first) const {
  append_head(out, '*', first.size() + count_);
  for (const std::string_view word : first) append_word(out, {word});
  out += words_;
}

std::string Command::bytes() const {
  std::string out;
  append_to(out);
  return out;
}

}  // namespace dlock::redis
