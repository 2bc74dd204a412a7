// Scripts of steps, which tests carry out: "verb word the rest => what is expected", separated by ';' or line ends.
#pragma once

#include <chrono>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

namespace dlock::redis {

struct Step {
  std::string text, verb, first, rest, expected;
};

inline std::vector<std::string> split(const std::string& text, char by = ',') {
  std::vector<std::string> out;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, by);) out.push_back(part);
  return out;
}

inline std::vector<Step> steps_of(const std::string& script) {
  std::vector<Step> out;
  for (const std::string& line : split(script, '\n')) {
    for (const std::string& text : split(line, ';')) {
      Step step;
      step.text = text;
      std::istringstream words(text);
      words >> step.verb >> step.first >> std::ws;
      std::getline(words, step.rest);
      const std::size_t arrow = text.find("=> ");
      if (arrow != std::string::npos) step.expected = text.substr(arrow + 3);
      if (!step.verb.empty()) out.push_back(step);
    }
  }
  return out;
}

// "500ms", "10s", "1min".
inline std::chrono::nanoseconds time_in(const std::string& text) {
  const auto number = std::stoll(text);
  if (text.ends_with("ms")) return std::chrono::milliseconds(number);
  if (text.ends_with("min")) return std::chrono::minutes(number);
  return std::chrono::seconds(number);
}

// "3", "2..4" or "2..".
inline bool matches(const std::string& expected, std::int64_t number) {
  const std::size_t dots = expected.find("..");
  const std::string most = dots == std::string::npos ? expected : expected.substr(dots + 2);
  return number >= std::stoll(expected) && (most.empty() || number <= std::stoll(most));
}

}  // namespace dlock::redis
