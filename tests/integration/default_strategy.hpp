// Most of what a sanitizer finds with one strategy of a service, it finds with each: scripts/test has all of them where
// the service's backend has changed.
#pragma once

#include <cstdlib>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace dlock::test {

// All of them or, where DLOCK_DEFAULT_STRATEGY lists the service, the first.
template <class Strategy>
std::vector<Strategy> wanted_strategies(std::string_view service, std::vector<Strategy> strategies) {
  const char* const services = std::getenv("DLOCK_DEFAULT_STRATEGY");
  std::istringstream words(services == nullptr ? "" : services);
  for (std::string each; words >> each;) {
    if (each == service && !strategies.empty()) return {strategies.front()};
  }
  return strategies;
}

}  // namespace dlock::test
