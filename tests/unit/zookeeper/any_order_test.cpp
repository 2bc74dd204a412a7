// Read-write locks and semaphores with answers that come late and acquires that are given up, in any
// order: too many never hold one, and everybody has a turn without looking whether something was missed.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "backend_fixture.hpp"

namespace dlock::zookeeper {

namespace {

class AnyOrderTest : public BackendTest, public testing::WithParamInterface<LockKind> {
 protected:
  static constexpr std::uint32_t permits = 2;
  static constexpr std::size_t sessions = 3;

  struct Acquire {
    std::size_t backend;
    std::unique_ptr<Attempt> attempt;
  };

  std::size_t below(std::size_t end) { return std::uniform_int_distribution<std::size_t>(0, end - 1)(random_); }

  void begin() {
    const std::size_t at = below(sessions);
    const bool shared = GetParam() == LockKind::read_write && below(2) == 0;
    acquires_.push_back({at, start(*backends_[at], {.kind = GetParam(),
                                                    .mode = shared ? Mode::shared : Mode::exclusive,
                                                    .permits = GetParam() == LockKind::semaphore ? permits : 1,
                                                    .wait = below(4) != 0})});
  }
  // It is released, or given up.
  void end(std::size_t at) {
    Acquire acquire = std::move(acquires_[at]);
    acquires_.erase(acquires_.begin() + static_cast<std::ptrdiff_t>(at));
    acquire.attempt->contention.reset();
    if (acquire.attempt->grant) {
      backends_[acquire.backend]->release(*acquire.attempt->grant, [](const ReleaseOutcome&) {});
    }
  }
  void hold_some_answers() {
    ensemble.fate = [this](const FakeRequest&) { return below(3) == 0 ? Fate::hold_answer : Fate::answer; };
  }
  void step() {
    switch (below(6)) {
      case 0:
      case 1:
        if (acquires_.size() < 9) begin();
        break;
      case 2:
        if (!acquires_.empty()) end(below(acquires_.size()));
        break;
      case 3:
        hold_some_answers();
        break;
      case 4:
        ensemble.fate = nullptr;
        ensemble.release_answers();
        break;
      default:
        engine.run();
    }
    expect_not_too_many();
  }
  void expect_not_too_many() const {
    std::size_t readers = 0;
    std::size_t others = 0;
    for (const Acquire& each : acquires_) {
      if (each.attempt->grant) ++(each.attempt->request.mode == Mode::shared ? readers : others);
    }
    EXPECT_LE(others, GetParam() == LockKind::semaphore ? permits : 1U);
    EXPECT_TRUE(readers == 0 || others == 0);
  }
  void run(unsigned seed) {
    random_.seed(seed);
    for (std::size_t i = 0; i < sessions; ++i) backends_.push_back(make());
    for (auto& each : backends_) (void)contend(*each, false, "connects");
    for (int i = 0; i < 120; ++i) step();
    ensemble.fate = nullptr;
    ensemble.release_answers();
    engine.run();
    // Whoever holds it lets go; then whoever is next does. Tries that found it busy are over.
    for (std::size_t i = acquires_.size(); i-- > 0;) {
      if (!acquires_[i].attempt->grant && !acquires_[i].attempt->request.wait) end(i);
    }
    engine.run();
    while (!acquires_.empty()) {
      expect_not_too_many();
      const auto holds = [](const Acquire& each) { return each.attempt->grant.has_value(); };
      const auto holders = std::count_if(acquires_.begin(), acquires_.end(), holds);
      const std::size_t capacity = GetParam() == LockKind::semaphore ? permits : 1;
      ASSERT_GE(static_cast<std::size_t>(holders), std::min(capacity, acquires_.size())) << "seed " << seed;
      const auto first = std::find_if(acquires_.begin(), acquires_.end(), holds);
      end(static_cast<std::size_t>(first - acquires_.begin()));
      engine.run();
    }
    EXPECT_TRUE(ensemble.children(lock_path("/dlock", "lock", GetParam())).empty());
    backends_.clear();
  }

 private:
  std::mt19937 random_;
  std::vector<std::unique_ptr<SessionLocks>> backends_;
  std::vector<Acquire> acquires_;
};

INSTANTIATE_TEST_SUITE_P(Kinds, AnyOrderTest,
                         testing::Values(LockKind::lock, LockKind::read_write, LockKind::semaphore),
                         [](const auto& kind) { return "kind" + std::to_string(static_cast<int>(kind.param)); });

TEST_P(AnyOrderTest, NobodyIsForgottenAndNeverAreTooManyIn) {
  for (unsigned seed = 0; seed < 300 && !HasFailure(); ++seed) run(seed);
}

}  // namespace

}  // namespace dlock::zookeeper
