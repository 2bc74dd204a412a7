#include "suite/watchdog.hpp"

#include <cstdlib>
#include <iostream>

#include <dlock/conformance/suite.hpp>

#include "suite/wait.hpp"

namespace dlock::conformance {

namespace {

// A test waits for several things in a row, each with its guard.
constexpr int guards_a_test = 8;

}  // namespace

void Watchdog::OnTestStart(const ::testing::TestInfo& info) {
  const std::string test = std::string(info.test_suite_name()) + "." + info.name();
  thread_ = std::jthread([this, test](const std::stop_token& stop) { watch(stop, test); });
}

void Watchdog::OnTestEnd(const ::testing::TestInfo& /*info*/) {
  thread_ = {};
}

void Watchdog::watch(const std::stop_token& stop, const std::string& test) {
  std::unique_lock lock(mutex_);
  ended_.wait_for(lock, stop, guard() * guards_a_test, [] { return false; });
  if (stop.stop_requested()) return;
  std::cout << "[  FAILED  ] " << test << "\n[   HANG   ] it does not end; giving up" << std::endl;
  std::_Exit(exit_failed);  // there is no way to stop the other threads
}

}  // namespace dlock::conformance
