// Semaphores: who has a permit, what waiters look at, and how they hear that it is their turn.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "backend_fixture.hpp"
#include "tests/unit/support/reports.hpp"

namespace dlock::zookeeper {

namespace {

class SemaphoreTest : public BackendTest {
 protected:
  static constexpr auto place = "/dlock.sem/lock";

  std::unique_ptr<Attempt> take(std::uint32_t permits, bool wait = true) {
    return contend(*backend, asked(permits, wait));
  }
  static Wish asked(std::uint32_t permits, bool wait = true) {
    return {.kind = LockKind::semaphore, .permits = permits, .wait = wait};
  }
  std::vector<std::string> nodes() const { return own_nodes(place, LockKind::semaphore); }
  std::string put_permit(std::uint32_t of) { return put_node(place, "-permit-of-" + std::to_string(of) + "-"); }
};

TEST_F(SemaphoreTest, OnlyTheQueueWhoseWaitersWatchOneHasThem) {
  EXPECT_TRUE(backend->capabilities().semaphores);
  EXPECT_FALSE(make("strategy=sequential-herd")->capabilities().semaphores);
  EXPECT_FALSE(make("strategy=ephemeral")->capabilities().semaphores);
}

TEST_F(SemaphoreTest, AFreePermitIsOneRoundTrip) {
  (void)ensemble.put(place);
  (void)contend(*backend, true, "warm-up");
  const std::size_t before = ensemble.requests.size();
  const auto one = take(3);
  const auto two = take(3);
  EXPECT_TRUE(one->grant && two->grant);
  EXPECT_EQ(ensemble.requests.size(), before + 4) << "a create and a list for each";
  EXPECT_NE(nodes().at(0).find("-permit-of-3-"), std::string::npos);
}

TEST_F(SemaphoreTest, NeverMoreHoldItThanThereArePermits) {
  std::vector<std::unique_ptr<Attempt>> attempts;
  for (int i = 0; i < 7; ++i) attempts.push_back(take(3));
  for (std::size_t released = 0; released < 7; ++released) {
    for (std::size_t i = 0; i < 7; ++i) EXPECT_EQ(attempts[i]->grant.has_value(), i < released + 3) << released;
    (void)release(*backend, *attempts[released]);
  }
  EXPECT_TRUE(nodes().empty());
}

TEST_F(SemaphoreTest, OnlyTheFirstInLineWatchesAllChildren) {
  for (int i = 0; i < 2; ++i) (void)put_permit(2);
  std::size_t start = ensemble.requests.size();
  const auto first = take(2);
  const auto watched = [&] {
    std::vector<std::string> paths;
    for (std::size_t i = start; i < ensemble.requests.size(); ++i) {
      if (ensemble.requests[i].watch != 0) paths.push_back(ensemble.requests[i].path);
    }
    return paths;
  };
  EXPECT_EQ(watched(), std::vector<std::string>{place});
  const std::string before = nodes().at(0);
  start = ensemble.requests.size();
  const auto second = take(2);
  // Whose coming the first in line hears of.
  EXPECT_EQ(watched(), (std::vector<std::string>{before, place}));
}

TEST_F(SemaphoreTest, AHandOverCostsTheSameHoweverManyWait) {
  const auto cost = [&](int waiters) {
    std::vector<std::unique_ptr<Attempt>> attempts;
    for (int i = 0; i < waiters; ++i) attempts.push_back(take(3));
    const std::size_t before = ensemble.requests.size();
    for (const auto& attempt : attempts) {
      EXPECT_TRUE(attempt->grant);
      if (attempt->grant) (void)release(*backend, *attempt);
    }
    return (ensemble.requests.size() - before) / static_cast<std::size_t>(waiters);
  };
  EXPECT_LE(cost(60), cost(10) + 1);
}

TEST_F(SemaphoreTest, WhoeverEntersSaysSoWhereOthersAreBehind) {
  const std::string holder = put_permit(1);
  const auto first = take(1);
  const auto second = take(1);
  ensemble.remove(holder);
  engine.run();
  ASSERT_TRUE(first->grant);
  EXPECT_EQ(ensemble.data(nodes().at(0)), "host:1:test\nheld");
  EXPECT_FALSE(second->grant);
  (void)release(*backend, *first);
  ASSERT_TRUE(second->grant);
  EXPECT_EQ(ensemble.data(nodes().at(0)), "host:1:test") << "there is nobody to be told";
}

// The second looks while both holders are there, and the first, which never waits, when one of them has gone. The
// second hears of the first before it watches it, or after.
TEST_F(SemaphoreTest, OneWhoEntersAtOnceIsNotTakenForAWaiter) {
  const auto others = make();
  for (const bool second_is_late : {false, true}) {
    const std::string holder = put_permit(2);
    const std::string other_holder = put_permit(2);
    std::unique_ptr<Attempt> second;
    ensemble.fate = [&](const FakeRequest& request) {
      if (request.kind != Kind::children || request.path != place) return Fate::answer;
      if (second_is_late) {
        next(Kind::children, Fate::hold_answer);
      } else {
        ensemble.fate = nullptr;
      }
      second = start(*others, asked(2));
      ensemble.remove(holder);
      return Fate::answer;
    };
    (void)contend(*others, true, "connects");
    const auto first = take(2);
    ASSERT_TRUE(first->grant);
    ensemble.release_answers();
    engine.run();
    ASSERT_FALSE(second->grant);
    ensemble.remove(other_holder);
    engine.run();
    ASSERT_TRUE(second->grant) << "late: " << second_is_late;
    (void)release(*others, *second);
    (void)release(*backend, *first);
  }
}

TEST_F(SemaphoreTest, WhatCouldNotBeSaidIsSaidAgainBeforeTheGrant) {
  const std::string holder = put_permit(1);
  const auto first = take(1);
  const auto second = take(1);
  next(Kind::set, Fate::lose_request);
  ensemble.remove(holder);
  engine.run();
  EXPECT_FALSE(first->grant);
  EXPECT_FALSE(first->unreachable_reports.empty());
  engine.advance(1s);
  ASSERT_TRUE(first->grant);
  EXPECT_EQ(ensemble.data(nodes().at(0)), "host:1:test\nheld");
  (void)release(*backend, *first);
  EXPECT_TRUE(second->grant);
}

TEST_F(SemaphoreTest, WhoseNodeGoesBeforeItEntersQueuesAnew) {
  const std::string holder = put_permit(1);
  const auto first = take(1);
  const auto second = take(1);
  const std::string own = nodes().at(0);
  ensemble.fate = [&](const FakeRequest& request) {
    if (request.kind == Kind::set) {
      ensemble.fate = nullptr;
      ensemble.remove(own);
    }
    return Fate::answer;
  };
  ensemble.remove(holder);
  engine.run();
  EXPECT_FALSE(first->grant);
  EXPECT_TRUE(second->grant);
  engine.advance(1s);
  (void)release(*backend, *second);
  EXPECT_TRUE(first->grant);
}

TEST_F(SemaphoreTest, AWaiterThatGivesUpHandsNothingOn) {
  for (int i = 0; i < 2; ++i) (void)put_permit(2);
  auto first = take(2);
  auto second = take(2);
  const auto third = take(2);
  second->contention.reset();
  engine.run();
  EXPECT_FALSE(third->grant);
  first->contention.reset();
  engine.run();
  EXPECT_FALSE(third->grant);
  ensemble.remove(std::string(place) + "/" + ensemble.children(place).front());
  engine.run();
  EXPECT_TRUE(third->grant);
}

TEST_F(SemaphoreTest, AnEventThatWasMissedIsFoundInTime) {
  const std::string holder = put_permit(1);
  const auto first = take(1);
  const auto second = take(1);
  ensemble.loses_events = true;
  ensemble.remove(holder);
  engine.run();
  EXPECT_FALSE(first->grant);
  engine.advance(40s);
  ASSERT_TRUE(first->grant);
  (void)release(*backend, *first);
  EXPECT_FALSE(second->grant);
  engine.advance(80s);
  EXPECT_TRUE(second->grant);
}

TEST_F(SemaphoreTest, AnotherNumberOfPermitsIsRefusedAndLeavesNothing) {
  const std::string theirs = put_permit(2);
  for (const bool wait : {true, false}) {
    const auto attempt = take(3, wait);
    ASSERT_TRUE(failed(*attempt, errc::invalid_argument, "2 permits")) << wait;
    EXPECT_NE(attempt->failure->detail.find("but the request says 3"), std::string::npos) << attempt->failure->detail;
  }
  EXPECT_TRUE(nodes().empty());
  const std::size_t before = ensemble.requests.size();
  EXPECT_TRUE(failed(*take(3), errc::invalid_argument));
  EXPECT_EQ(requests_since(before, Kind::create), 0U) << "whoever asks again is in nobody's way";
  EXPECT_TRUE(take(2)->grant);
  ensemble.remove(theirs);
  engine.run();
  EXPECT_TRUE(take(3)->failure) << "ours is in";
}

// One that has joined the queue, and has not looked yet, or was killed before it could.
TEST_F(SemaphoreTest, OneWhoWillBeRefusedRefusesNobodyBehindIt) {
  const std::string theirs = put_permit(3);
  const std::string stray = put_permit(2);
  const auto one = take(3);
  EXPECT_FALSE(one->failure);
  EXPECT_FALSE(one->grant) << "the stray may yet be the first";
  EXPECT_EQ(take(3, false)->busy_reports, 1);
  ensemble.remove(stray);
  engine.run();
  EXPECT_TRUE(one->grant);
  const std::string next = put_permit(2);
  const auto two = take(3);
  ensemble.remove(theirs);
  (void)release(*backend, *one);
  EXPECT_FALSE(two->grant || two->failure);
  ensemble.set_data(next, "other:1:x\nheld");
  engine.run();
  EXPECT_TRUE(failed(*two, errc::invalid_argument, "2 permits")) << "now it is the first, and in";
}

TEST_F(SemaphoreTest, WithNobodyInItAnyNumberIsTaken) {
  const std::string theirs = put_permit(2);
  EXPECT_TRUE(take(3)->failure);
  ensemble.remove(theirs);
  EXPECT_TRUE(take(3)->grant);
}

TEST_F(SemaphoreTest, TheEndOfASessionGivesItsPermitsBack) {
  const auto mine = take(1);
  const auto other_backend = make();
  const auto theirs = contend(*other_backend, asked(1));
  EXPECT_FALSE(theirs->grant);
  ensemble.expire(ensemble.last_session() - 1);
  engine.run();
  EXPECT_TRUE(theirs->grant);
  ASSERT_EQ(host.losses.size(), 1U);
  EXPECT_EQ(host.losses[0].owner, mine->request.owner);
}

}  // namespace

}  // namespace dlock::zookeeper
