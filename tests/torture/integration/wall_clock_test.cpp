// A client whose wall clock is stepped by hours, both ways, while it holds and waits: nothing changes.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include <dlock/dlock.hpp>

#include "tests/torture/breakage/wall_clock.hpp"
#include "tests/torture/client/commanded_client.hpp"
#include "tests/torture/integration/services.hpp"
#include "torture/rig/scratch_directory.hpp"

namespace dlock::torture {
namespace {

using namespace std::chrono_literals;

class SteppedClock : public testing::TestWithParam<ServiceKind> {
 protected:
  void SetUp() override {
    std::string why_not;
    if (!WallClock::available(why_not)) GTEST_SKIP() << why_not;
    clock_ = std::make_unique<WallClock>(directory_.path());
    service_ = GetParam().start();
    stepped_ = std::make_unique<CommandedClient>(service_.url, clock_->variables());
    other_ = std::make_unique<Client>(connect(service_.url));
  }

  // The token of a lock that the client with the stepped clock takes.
  std::uint64_t take(const std::string& name) {
    const std::string answer = stepped_->tell("acquire " + name + " 10000");
    const std::string granted = "granted " + name + " ";
    EXPECT_TRUE(answer.starts_with(granted)) << answer;
    return answer.starts_with(granted) ? std::stoull(answer.substr(granted.size())) : 0;
  }

  // Longer than a lease, in which the client looks at its clocks all the while.
  void expect_a_wait_to_end_by_its_deadline(const std::string& held_by_other) {
    const TimePoint begin = LeaseClock::now();
    const std::string answer = stepped_->tell("acquire " + held_by_other + " 3000");
    EXPECT_TRUE(answer.starts_with("error timed out")) << answer;
    EXPECT_GE(LeaseClock::now() - begin, 2990ms);
  }

  // Long enough for every lease to have been renewed or to have run out.
  void expect_to_hold_on(const std::string& name, const std::string& held_by_other) {
    EXPECT_EQ(stepped_->tell("held " + name), "held");
    expect_a_wait_to_end_by_its_deadline(held_by_other);
    if (GetParam().renews) stepped_->await_renewals(2);
    EXPECT_EQ(stepped_->tell("held " + name), "held");
    EXPECT_FALSE(other_->make_lock(name).try_acquire().has_value());
    EXPECT_FALSE(stepped_->had_event("lost ")) << stepped_->said();
  }

  rig::ScratchDirectory directory_;
  std::unique_ptr<WallClock> clock_;
  Service service_;
  std::unique_ptr<CommandedClient> stepped_;
  std::unique_ptr<Client> other_;
};

TEST_P(SteppedClock, LosesNoLock) {
  const Lease others = other_->make_lock("other's").acquire({.wait = 10s});
  (void)take("a");
  for (const auto step : {5h, -10h}) {
    clock_->step(step);
    expect_to_hold_on("a", "other's");
  }
  EXPECT_EQ(stepped_->tell("release a"), "ours");
}

TEST_P(SteppedClock, Waiters_WaitOnAndAreWoken) {
  for (const auto step : {5h, -10h}) {
    Lease others = other_->make_lock("a").acquire({.wait = 10s});
    ASSERT_EQ(stepped_->tell("wait a"), "waiting");
    clock_->step(step);
    expect_a_wait_to_end_by_its_deadline("a");
    EXPECT_FALSE(stepped_->had_event("denied ")) << stepped_->said();
    const std::uint64_t before = others.token().value();
    EXPECT_TRUE(others.release());
    const std::string token = stepped_->await_event("granted a ");
    EXPECT_GT(std::stoull(token), before);
    EXPECT_EQ(stepped_->tell("release a"), "ours");
    stepped_ = std::make_unique<CommandedClient>(service_.url, clock_->variables());
  }
}

// Whoever takes the lock, and whatever it takes for the time.
TEST_P(SteppedClock, TokensGrow) {
  std::uint64_t newest = 0;
  for (const auto step : {0h, 5h, -10h, 48h, -96h}) {
    clock_->step(step);
    const std::uint64_t token = take("a");
    EXPECT_GT(token, newest) << "after a step of " << step.count() << " h";
    EXPECT_EQ(stepped_->tell("release a"), "ours");
    const Lease others = other_->make_lock("a").acquire({.wait = 10s});
    EXPECT_GT(others.token().value(), token) << "after a step of " << step.count() << " h";
    newest = others.token().value();
  }
}

INSTANTIATE_TEST_SUITE_P(All, SteppedClock, testing::ValuesIn(all_services()),
                         [](const auto& service) { return service.param.name; });

}  // namespace
}  // namespace dlock::torture
