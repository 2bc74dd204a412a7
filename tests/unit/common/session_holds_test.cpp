#include "backends/common/session_holds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/support/manual_engine.hpp"
#include "tests/support/recording_host.hpp"

namespace dlock::common {

namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

struct NoWatch {};

class TestHolds final : public SessionHolds<std::string, NoWatch> {
 public:
  TestHolds(BackendHost& host, std::vector<std::string>& calls) : SessionHolds(host, "the service"), calls_(calls) {}
  using SessionHolds::add;
  using SessionHolds::look_later;
  using SessionHolds::lose;

 private:
  void look(const OwnerId& /*owner*/, Hold& hold) override { calls_.push_back("look at " + hold.own); }
  void remove(const OwnerId& /*owner*/, std::string own) override { calls_.push_back("remove " + own); }

  std::vector<std::string>& calls_;
};

class SessionHoldsTest : public testing::Test {
 protected:
  Grant add(const std::string& name, std::chrono::nanoseconds valid_for = 10s) {
    Grant grant{.name = name, .owner = host.new_owner_id(), .token = {}, .valid_until = engine.now() + valid_for};
    holds.add(grant, "the key of " + name);
    return grant;
  }

  test::ManualEngine engine;
  test::RecordingHost host{engine};
  std::vector<std::string> calls;
  TestHolds holds{host, calls};
};

TEST_F(SessionHoldsTest, ExtendsAllThatItKeeps) {
  const Grant grant = add("a");
  const Grant longer = add("b", 30s);
  EXPECT_EQ(holds.take(add("c").owner), "the key of c");
  holds.session_alive(engine.now() + 20s);
  EXPECT_THAT(host.extensions, testing::UnorderedElementsAre(std::pair(grant.owner, engine.now() + 20s),
                                                             std::pair(longer.owner, engine.now() + 30s)));
}

TEST_F(SessionHoldsTest, ByLessThanAStepTellsNobody) {
  (void)add("a");
  const TimePoint end = engine.now() + 20s;
  holds.session_alive(end, 1s);
  holds.session_alive(end + 999ms, 1s);
  EXPECT_EQ(host.extensions.size(), 1U);
  holds.session_alive(end + 1s, 1s);
  EXPECT_EQ(host.extensions.size(), 2U);
}

TEST_F(SessionHoldsTest, AfterALostSessionTheFirstAnswerIsTold) {
  holds.session_alive(engine.now() + 30s, 1s);
  holds.session_lost({errc::lost, "it expired"});
  (void)add("a");
  holds.session_alive(engine.now() + 20s, 1s);
  EXPECT_EQ(host.extensions.size(), 1U);
}

TEST_F(SessionHoldsTest, WhatTheHostReleasesMeanwhileIsNotExtended) {
  const Grant one = add("a");
  const Grant other = add("b");
  host.on_extended = [&](const OwnerId& owner) { (void)holds.take(owner == one.owner ? other.owner : one.owner); };
  holds.session_alive(engine.now() + 20s);
  EXPECT_EQ(host.extensions.size(), 1U);
}

TEST_F(SessionHoldsTest, ALeaseThatMayBeOverIsLostAndRemoved) {
  const Grant grant = add("a", 1s);
  engine.advance(1s);
  holds.session_alive(engine.now() + 20s);
  EXPECT_TRUE(host.extensions.empty());
  ASSERT_EQ(host.losses.size(), 1U);
  EXPECT_EQ(host.losses[0].owner, grant.owner);
  EXPECT_EQ(host.losses[0].why.code, errc::lost);
  EXPECT_EQ(host.losses[0].why.detail, "the service did not answer before the lease of lock \"a\" expired");
  EXPECT_THAT(calls, ElementsAre("remove the key of a"));
  EXPECT_TRUE(holds.empty());
}

TEST_F(SessionHoldsTest, WithTheSessionAllAreLost) {
  const Grant grant = add("a");
  holds.look_later(grant.owner, 200ms);
  holds.session_lost({errc::lost, "it expired"});
  ASSERT_EQ(host.losses.size(), 1U);
  EXPECT_EQ(host.losses[0].why.code, errc::lost);
  EXPECT_EQ(host.losses[0].why.detail, "the session that held lock \"a\" is lost: it expired");
  EXPECT_FALSE(holds.contains(grant.owner));
  engine.advance(1s);
  EXPECT_THAT(calls, ElementsAre("remove the key of a"));
}

TEST_F(SessionHoldsTest, LooksWhenItIsTimeToAndOnlyAtWhatIsKept) {
  const Grant last = add("last");
  const Grant released = add("released");
  const Grant first = add("first");
  holds.look_later(last.owner, 5s);
  holds.look_later(released.owner, 300ms);
  holds.look_later(first.owner, 200ms);
  (void)holds.take(released.owner);
  engine.advance(199ms);
  EXPECT_TRUE(calls.empty());
  engine.advance(1ms);
  EXPECT_THAT(calls, ElementsAre("look at the key of first"));
  engine.advance(5s);
  EXPECT_THAT(calls, ElementsAre("look at the key of first", "look at the key of last"));
}

}  // namespace

}  // namespace dlock::common
