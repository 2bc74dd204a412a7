// Each request of each operation, on each kind of lock, spoiled in each way.
#include "tests/simulation/sweep.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <iostream>
#include <string>
#include <tuple>
#include <vector>

#include "tests/simulation/network.hpp"
#include "tests/simulation/simulation.hpp"

namespace dlock::simulation {
namespace {

// A wait that polls sends more than that; what is new about a request shows earlier.
std::size_t most_requests() {
  return is_brief() ? 6 : 12;
}

bool is_thorough() {
  return std::getenv("DLOCK_SIMULATION_SEEDS") != nullptr;
}

std::vector<Subject> subjects_that_spoil() {
  std::vector<Subject> all = subjects();
  std::erase_if(all, [](const Subject& subject) { return !subject.spoils; });
  return all;
}

using Row = std::tuple<Subject, std::size_t>;  // and an operation

// Brief: each operation with one of the subjects, the next with the next.
std::vector<Row> rows() {
  const std::vector<Subject> all = subjects_that_spoil();
  std::vector<Row> chosen;
  for (std::size_t subject = 0; subject < all.size(); ++subject) {
    for (std::size_t operation = 0; operation < operation_names.size(); ++operation) {
      if (is_brief() && !is_thorough() && operation % all.size() != subject) continue;
      chosen.emplace_back(all[subject], operation);
    }
  }
  return chosen;
}

class Sweep : public testing::TestWithParam<Row> {
 protected:
  // Kinds of locks differ in their statements, not in how requests are made: all of them with the first subject.
  [[nodiscard]] std::vector<LockKind> kinds() const {
    const bool all = is_thorough() || (!is_brief() && subject.name == subjects().front().name);
    return all ? subject.kinds : std::vector{subject.kinds.front()};
  }
  // Likewise, each operation meets one fate.
  [[nodiscard]] bool is_left_out(std::size_t fate) const {
    return is_brief() && !is_thorough() && fate != 1 + static_cast<std::size_t>(operation) % (fates - 1);
  }

  // How many requests there were.
  std::size_t run_and_check(const Spoiled& spoiled) {
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
    ++runs;
    supported = supported && outcome.supported;
    return outcome.requests;
  }

  // Each request in each way.
  void sweep(const SimulatedLock& lock, Mode mode) {
    for (std::size_t fate = 1; fate < fates; ++fate) {
      if (is_left_out(fate)) continue;
      for (std::size_t request = 0; request < most_requests() && !HasFailure() && supported; ++request) {
        const Spoiled spoiled{operation, lock, mode, static_cast<Fate>(fate), request};
        if (run_and_check(spoiled) <= request) break;
      }
    }
  }

  const Subject subject = std::get<Subject>(GetParam());
  const Operation operation = static_cast<Operation>(std::get<std::size_t>(GetParam()));
  std::size_t runs = 0;
  bool supported = true;
};

// Shows: only-the-owner, no-residue, nothing-guessed
// Hazard: a lost answer: repeat, or undo
// Hazard: a transaction's answer is lost: the same request again, to any member
TEST_P(Sweep, SpoiledRequest_BreaksNoPromise) {
  for (const LockKind kind : kinds()) {
    sweep({.name = "a", .lock_kind = kind, .permits = kind == LockKind::semaphore ? 2U : 1U}, Mode::exclusive);
    if (kind == LockKind::read_write) sweep({.name = "a", .lock_kind = kind}, Mode::shared);
  }
  std::cout << runs << " runs\n";
  // A holder that is told at once of the end of its session has nothing to send.
  const bool may_be_silent = operation == Operation::be_broken;
  EXPECT_GE(runs, !supported || is_brief() ? 1 : may_be_silent ? fates - 1 : fates + 1);
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Sweep);
INSTANTIATE_TEST_SUITE_P(Subjects, Sweep, testing::ValuesIn(rows()), [](const auto& row) {
  return std::get<Subject>(row.param).name + "_" + std::string(operation_names[std::get<std::size_t>(row.param)]);
});

}  // namespace
}  // namespace dlock::simulation
