// Each request of each operation, on each kind of lock, spoiled in each way.
#include "tests/simulation/sweep.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <iostream>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "tests/simulation/network.hpp"
#include "tests/simulation/simulation.hpp"
#include "tests/support/sanitizers.hpp"

namespace dlock::simulation {
namespace {

// A wait that polls sends more than that; what is new about a request shows earlier.
constexpr std::size_t most_requests = dlock::test::sanitized ? 6 : 12;

// Kinds of locks differ in their statements, not in how requests are made: all of them with the first subject, and
// where many seeds are asked for.
bool sweeps_all_kinds(const Subject& subject) {
  return std::getenv("DLOCK_SIMULATION_SEEDS") != nullptr ||
         (!dlock::test::sanitized && subject.name == subjects().front().name);
}

std::vector<Subject> subjects_that_spoil() {
  std::vector<Subject> all = subjects();
  std::erase_if(all, [](const Subject& subject) { return !subject.spoils; });
  return all;
}

// A sanitizer takes ten times as long: each operation meets one fate, and another one with the next subject.
bool is_left_out(const Subject& subject, std::size_t operation, std::size_t fate) {
  if (!dlock::test::sanitized || std::getenv("DLOCK_SIMULATION_SEEDS") != nullptr) return false;
  const std::vector<Subject> all = subjects_that_spoil();
  const auto index = std::ranges::find(all, subject.name, &Subject::name) - all.begin();
  return fate != 1 + (operation + static_cast<std::size_t>(index)) % (fates - 1);
}

class Sweep : public testing::TestWithParam<std::tuple<Subject, std::size_t>> {
 protected:
  // How many requests there were.
  std::size_t run_and_check(const Spoiled& spoiled) {
    const Subject& subject = std::get<Subject>(GetParam());
    const Outcome outcome = run(subject, spoiled);
    const torture::Verdict verdict = torture::check(outcome.history, rules_for(subject));
    SCOPED_TRACE(std::string(torture::name_of(spoiled.lock.lock_kind)) +
                 (spoiled.mode == Mode::shared ? ", shared" : "") + ", request " + std::to_string(spoiled.request) +
                 " " + std::string(fate_names[static_cast<std::size_t>(spoiled.fate)]));
    for (const torture::Violation& violation : verdict.violations) ADD_FAILURE() << excerpt(outcome.history, violation);
    if (!outcome.problem.empty()) {
      ADD_FAILURE() << outcome.problem;
      for (const Event& event : outcome.history) std::cout << describe(event, outcome.history.front().at) << '\n';
    }
    ++runs_;
    supported_ = supported_ && outcome.supported;
    return outcome.requests;
  }

  // Each request in each way.
  void sweep(const SimulatedLock& lock, Mode mode) {
    for (std::size_t fate = 1; fate < fates; ++fate) {
      if (is_left_out(std::get<Subject>(GetParam()), std::get<std::size_t>(GetParam()), fate)) continue;
      for (std::size_t request = 0; request < most_requests && !HasFailure() && supported_; ++request) {
        const std::size_t requests =
            run_and_check({.operation = static_cast<Operation>(std::get<std::size_t>(GetParam())),
                           .lock = lock,
                           .mode = mode,
                           .fate = static_cast<Fate>(fate),
                           .request = request});
        if (requests <= request) break;
      }
    }
  }

  std::size_t runs_ = 0;
  bool supported_ = true;
};

TEST_P(Sweep, OneSpoiledRequestBreaksNoPromise) {
  std::vector<LockKind> kinds = std::get<Subject>(GetParam()).kinds;
  if (!sweeps_all_kinds(std::get<Subject>(GetParam()))) kinds = {kinds.front()};
  for (const LockKind kind : kinds) {
    sweep({.name = "a", .lock_kind = kind, .permits = kind == LockKind::semaphore ? 2U : 1U}, Mode::exclusive);
    if (kind == LockKind::read_write) sweep({.name = "a", .lock_kind = kind}, Mode::shared);
  }
  std::cout << runs_ << " runs\n";
  // A holder that is told at once of the end of its session has nothing to send.
  const bool may_be_silent = static_cast<Operation>(std::get<std::size_t>(GetParam())) == Operation::be_broken;
  EXPECT_GE(runs_, !supported_ || dlock::test::sanitized ? 1 : may_be_silent ? fates - 1 : fates + 1);
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Sweep);
INSTANTIATE_TEST_SUITE_P(Subjects, Sweep,
                         testing::Combine(testing::ValuesIn(subjects_that_spoil()),
                                          testing::Range(std::size_t{0}, operation_names.size())),
                         [](const auto& row) {
                           return std::get<Subject>(row.param).name + "_" +
                                  std::string(operation_names[std::get<std::size_t>(row.param)]);
                         });

}  // namespace
}  // namespace dlock::simulation
