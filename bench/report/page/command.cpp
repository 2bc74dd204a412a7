#include "bench/report/page/command.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

namespace dlock::bench {

namespace {

constexpr std::string_view scenario_option = "--scenario";
constexpr std::string_view url_option = "--url";

std::string_view next_word(std::string_view& text) {
  const auto end = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

// Names of scenarios are single words, so that what is quoted elsewhere in the command need not be understood.
std::string without_scenarios(std::string_view command) {
  std::string result;
  while (!command.empty()) {
    const std::string_view word = next_word(command);
    if (word == scenario_option) {
      (void)next_word(command);
    } else if (!word.starts_with(std::string(scenario_option) + "=")) {
      result += (result.empty() ? "" : " ") + std::string(word);
    }
  }
  return result;
}

std::string without_strategy(const ServiceInfo& service) {
  const std::string parameter = "strategy=" + service.strategy;
  const auto at = service.url.find(parameter);
  if (service.strategy.empty() || at == std::string::npos || at == 0) return service.url;
  const auto after = at + parameter.size();
  if (after == service.url.size()) return service.url.substr(0, at - 1);
  if (service.url[after] != '&') return service.url;
  return service.url.substr(0, at) + service.url.substr(after + 1);
}

// What was measured with several strategies is one URL that names none.
std::vector<std::string> urls_of(const Report& report) {
  std::vector<std::string> urls;
  for (const ServiceInfo& each : report.services) {
    const std::string all = without_strategy(each);
    const auto strategies = std::count_if(report.services.begin(), report.services.end(),
                                          [&](const ServiceInfo& other) { return without_strategy(other) == all; });
    const std::string& url = strategies > 1 ? all : each.url;
    if (std::find(urls.begin(), urls.end(), url) == urls.end()) urls.push_back(url);
  }
  return urls;
}

std::string quoted(const std::string& word) {
  constexpr std::string_view harmless = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@,+%=";
  if (!word.empty() && word.find_first_not_of(harmless) == std::string::npos) return word;
  std::string result = "'";
  for (const char c : word) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::string with_urls(std::string command, const Report& report) {
  if (command.empty()) command = "dlock bench";
  if (command.find(url_option) != std::string::npos) return command;
  for (const std::string& each : urls_of(report)) command += " " + std::string(url_option) + " " + quoted(each);
  return command;
}

}  // namespace

std::string whole_command(const Report& report) {
  return with_urls(report.command, report);
}

std::string command_for(const Report& report, const std::vector<std::string>& scenarios) {
  std::string command = with_urls(without_scenarios(report.command), report);
  for (const std::string& each : scenarios) command += " " + std::string(scenario_option) + " " + each;
  return command;
}

}  // namespace dlock::bench
