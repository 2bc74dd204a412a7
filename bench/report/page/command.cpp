#include "bench/report/page/command.hpp"

#include <algorithm>

namespace dlock::bench {

namespace {

constexpr std::string_view option = "--scenario";

std::string_view next_word(std::string_view& text) {
  const auto end = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

}  // namespace

// Names of scenarios are single words, so that what is quoted elsewhere in the command need not be understood.
std::string command_for(const Report& report, std::string_view scenario) {
  std::string result;
  std::string_view rest = report.command;
  while (!rest.empty()) {
    const std::string_view word = next_word(rest);
    if (word == option) {
      (void)next_word(rest);
      continue;
    }
    if (word.starts_with(std::string(option) + "=")) continue;
    result += std::string(word) + " ";
  }
  if (result.empty()) result = "dlock bench ";
  return result + std::string(option) + " " + std::string(scenario);
}

}  // namespace dlock::bench
