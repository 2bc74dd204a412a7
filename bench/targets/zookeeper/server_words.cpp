#include "bench/targets/zookeeper/server_words.hpp"

#include <charconv>

namespace dlock::bench {

namespace {

// What follows the name and the separator in a line.
std::optional<std::string_view> value_of(std::string_view answer, std::string_view name, char separator) {
  while (!answer.empty()) {
    const std::size_t end = answer.find('\n');
    const std::string_view line = answer.substr(0, end);
    if (line.size() > name.size() && line.starts_with(name) && line[name.size()] == separator) {
      return line.substr(name.size() + 1);
    }
    if (end == std::string_view::npos) break;
    answer.remove_prefix(end + 1);
  }
  return std::nullopt;
}

std::optional<double> number_of(std::optional<std::string_view> text) {
  double value = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), value).ec != std::errc()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<double> mntr_number(std::string_view answer, std::string_view name) {
  return number_of(value_of(answer, name, '\t'));
}

std::string mntr_version(std::string_view answer) {
  const std::string_view text = value_of(answer, "zk_version", '\t').value_or(std::string_view());
  return std::string(text.substr(0, text.find_first_not_of("0123456789.")));
}

std::optional<double> conf_number(std::string_view answer, std::string_view name) {
  return number_of(value_of(answer, name, '='));
}

}  // namespace dlock::bench
