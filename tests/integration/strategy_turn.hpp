// What a sanitizer sees of one strategy it has mostly seen of the others: scripts/test has each commit try another one.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace dlock::test {

// All of them or, where DLOCK_STRATEGY_TURN is a number, the one whose turn that is.
template <class Strategy>
std::vector<Strategy> those_in_turn(std::vector<Strategy> strategies) {
  const char* const turn = std::getenv("DLOCK_STRATEGY_TURN");
  if (turn == nullptr || strategies.empty()) return strategies;
  const std::string_view digits = turn;
  std::size_t number = 0;
  (void)std::from_chars(digits.data(), digits.data() + digits.size(), number);  // of anything else the first
  return {strategies[number % strategies.size()]};
}

}  // namespace dlock::test
