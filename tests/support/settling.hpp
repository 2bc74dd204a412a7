// What several servers have to say before a test goes on.
#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

#include "torture/rig/hang_guard.hpp"

namespace dlock::test {

// Returns when missing() names nothing any more. An exception counts as something missing: a connection broke, or
// cannot be made yet. Throws std::runtime_error with the last of it when the hang guard ends the wait.
template <class F>  // std::string()
void await_settled(const std::string& what, F&& missing) {
  const auto give_up = std::chrono::steady_clock::now() + rig::hang_guard;
  while (true) {
    std::string why;
    try {
      why = missing();
      if (why.empty()) return;
    } catch (const std::exception& error) {
      why = error.what();
    }
    if (std::chrono::steady_clock::now() > give_up) throw std::runtime_error(what + " does not settle: " + why);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

// How often it stands there.
[[nodiscard]] inline std::size_t count_of(std::string_view text, std::string_view what) {
  std::size_t count = 0;
  for (auto at = text.find(what); at != std::string_view::npos; at = text.find(what, at + what.size())) ++count;
  return count;
}

}  // namespace dlock::test
