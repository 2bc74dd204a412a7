// The locks of a session, the locks that waiters watch, and inspections of many locks.
#include <gtest/gtest.h>

#include <deque>
#include <map>

#include "backends/common/session_holds.hpp"
#include "backends/common/survey.hpp"
#include "backends/common/watchers.hpp"
#include "tests/support/manual_engine.hpp"
#include "tests/support/recording_host.hpp"

namespace dlock::common {
namespace {

using namespace std::chrono_literals;
using Names = std::vector<std::string>;

// --- The locks of a session ------------------------------------------------------------------------------------------

struct NoWatch {};

class TestHolds final : public SessionHolds<std::string, NoWatch> {
 public:
  TestHolds(BackendHost& host, Names& calls) : SessionHolds(host, "the service"), calls_(calls) {}
  using SessionHolds::add;
  using SessionHolds::look_later;
  using SessionHolds::lose;

 private:
  void look(const OwnerId& /*owner*/, Hold& hold) override { calls_.push_back("look at " + hold.own); }
  void remove(const OwnerId& /*owner*/, std::string own) override { calls_.push_back("remove " + own); }

  Names& calls_;
};

class SessionHoldsTest : public testing::Test {
 protected:
  Grant add(const std::string& name, std::chrono::nanoseconds valid_for = 10s) {
    Grant grant{.name = name, .owner = host.new_owner_id(), .token = {}, .valid_until = engine.now() + valid_for};
    holds.add(grant, "key of " + name);
    return grant;
  }

  test::ManualEngine engine;
  test::RecordingHost host{engine};
  Names calls;
  TestHolds holds{host, calls};
};

TEST_F(SessionHoldsTest, SessionThatIsAlive_ExtendsTheLocksThatItHolds) {
  const Grant grant = add("a");
  const Grant longer = add("b", 30s);
  EXPECT_EQ(holds.take(add("c").owner), "key of c");
  holds.session_alive(engine.now() + 20s);
  std::map<std::string, TimePoint> ends;
  for (const auto& [owner, end] : host.extensions) ends[owner == grant.owner ? "a" : "b"] = end;
  EXPECT_EQ(ends, (std::map<std::string, TimePoint>{{"a", engine.now() + 20s}, {"b", engine.now() + 30s}}));
  host.extensions.clear();
  host.on_extended = [&](const OwnerId& owner) { (void)holds.take(owner == grant.owner ? longer.owner : grant.owner); };
  holds.session_alive(engine.now() + 40s);
  EXPECT_EQ(host.extensions.size(), 1U) << "the host released the other one meanwhile";
}

TEST_F(SessionHoldsTest, ExtensionOfLessThanAStep_IsNotReported) {
  (void)add("a");
  const TimePoint end = engine.now() + 20s;
  holds.session_alive(end, 1s);
  holds.session_alive(end + 999ms, 1s);
  EXPECT_EQ(host.extensions.size(), 1U);
  holds.session_alive(end + 1s, 1s);
  EXPECT_EQ(host.extensions.size(), 2U);
  holds.session_lost({errc::lost, "it expired"});
  (void)add("b");
  holds.session_alive(end, 1s);
  EXPECT_EQ(host.extensions.size(), 3U) << "the first answer of another session";
}

TEST_F(SessionHoldsTest, LeaseThatMayHaveExpired_IsLostAndRemoved) {
  const Grant grant = add("a", 1s);
  engine.advance(1s);
  holds.session_alive(engine.now() + 20s);
  EXPECT_TRUE(host.extensions.empty());
  ASSERT_EQ(host.losses.size(), 1U);
  EXPECT_EQ(host.losses[0].owner, grant.owner);
  EXPECT_EQ(host.losses[0].why.code, errc::lost);
  EXPECT_EQ(host.losses[0].why.detail, "the service did not answer before the lease of lock \"a\" expired");
  EXPECT_EQ(calls, Names{"remove key of a"});
  EXPECT_TRUE(holds.empty());
}

TEST_F(SessionHoldsTest, LostSession_LosesItsLocks) {
  const Grant grant = add("a");
  holds.look_later(grant.owner, 200ms);
  holds.session_lost({errc::lost, "it expired"});
  ASSERT_EQ(host.losses.size(), 1U);
  EXPECT_EQ(host.losses[0].why.code, errc::lost);
  EXPECT_EQ(host.losses[0].why.detail, "the session that held lock \"a\" is lost: it expired");
  EXPECT_FALSE(holds.contains(grant.owner));
  engine.advance(1s);
  EXPECT_EQ(calls, Names{"remove key of a"});
}

TEST_F(SessionHoldsTest, Check_ComesInTimeAndOnlyOfHeldLocks) {
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
  EXPECT_EQ(calls, Names{"look at key of first"});
  engine.advance(5s);
  EXPECT_EQ(calls, (Names{"look at key of first", "look at key of last"}));
}

// --- Inspections of many ---------------------------------------------------------------------------------------------

class SurveyTest : public testing::Test {
 protected:
  void run(std::size_t names) {
    Names all;
    for (std::size_t i = 0; i < names; ++i) all.push_back(std::to_string(i));
    Survey::run(
        std::move(all),
        [this](const std::string& name, Survey::Answer answer) {
          if (at_once) return answer(std::optional(LockInfo{.name = name}));
          asked.emplace_back(name, std::move(answer));
        },
        [this](Result<std::vector<LockInfo>> all_of_them) {
          ++ends;
          result = std::move(all_of_them);
        });
  }
  void answer_one(bool there = true) {
    const auto [name, answer] = std::move(asked.front());
    asked.pop_front();
    answer(there ? std::optional(LockInfo{.name = name}) : std::nullopt);
  }

  bool at_once = false;
  std::deque<std::pair<std::string, Survey::Answer>> asked;
  Result<std::vector<LockInfo>> result = Failure{};
  int ends = 0;
};

TEST_F(SurveyTest, Inspections_AreLimitedAtATimeAndCompleteInTheEnd) {
  run(200);
  std::size_t most = 0;
  while (!asked.empty()) {
    most = std::max(most, asked.size());
    answer_one(asked.front().first != "7");
  }
  EXPECT_EQ(most, 64U);
  ASSERT_EQ(ends, 1);
  EXPECT_EQ(result.value().size(), 199U);
  at_once = true;
  for (const std::size_t names : {std::size_t{0}, std::size_t{100'000}}) {
    run(names);
    EXPECT_EQ(result.value().size(), names);
  }
}

TEST_F(SurveyTest, Failure_EndsIt) {
  run(100);
  answer_one();
  const auto failing = std::move(asked.front().second);
  asked.pop_front();
  failing(Failure{errc::unavailable, "gone"});
  ASSERT_EQ(ends, 1);
  EXPECT_EQ(result.failure().code, errc::unavailable);
  while (!asked.empty()) answer_one();
  EXPECT_EQ(ends, 1);
}

// --- Watchers --------------------------------------------------------------------------------------------------------

class WatchersTest : public testing::Test {
 protected:
  std::unique_ptr<Watch> watch(const std::string& key, const std::string& name) {
    return watchers.watch(key, [this, name] { notified.push_back(name); });
  }

  test::ManualEngine engine;
  Names left;
  Names notified;
  Watchers watchers{engine, [this](const std::string& key) { left.push_back(key); }};
};

TEST_F(WatchersTest, AllOfAKey_AreNotifiedInOrder) {
  auto first = watch("a", "first");
  const auto other = watch("b", "other");
  auto second = watch("a", "second");
  EXPECT_EQ(watchers.count("a"), 2U);
  watchers.tell_all("a");
  EXPECT_EQ(notified, (Names{"first", "second"}));
  watchers.tell_all("c");
  EXPECT_EQ(notified.size(), 2U);
  watchers.tell_all();
  EXPECT_EQ(notified.size(), 5U);
  first.reset();
  EXPECT_TRUE(left.empty());
  second.reset();
  EXPECT_EQ(left, Names{"a"}) << "with its last watcher";
  EXPECT_FALSE(watchers.empty());
}

TEST_F(WatchersTest, NotifiedWatcher_MayEndWatchesAndBeginOthers) {
  std::unique_ptr<Watch> third;
  std::unique_ptr<Watch> late;
  std::unique_ptr<Watch> first = watchers.watch("a", [&] {
    notified.emplace_back("first");
    third.reset();
    late = watch("a", "late");
    first.reset();
  });
  auto second = watch("a", "second");
  third = watch("a", "third");
  watchers.tell_all("a");
  EXPECT_EQ(notified, (Names{"first", "second"}));
  watchers.tell_all("a");
  EXPECT_EQ(notified, (Names{"first", "second", "second", "late"}));
  late.reset();
  second.reset();
  std::unique_ptr<Watch> only = watchers.watch("a", [&] { only.reset(); });
  watchers.tell_first("a");
  only = watchers.watch("a", [&] { only.reset(); });
  watchers.tell_any();
  EXPECT_EQ(left, (Names{"a", "a", "a"}));
  EXPECT_TRUE(watchers.empty());
  watchers.tell_any();  // there is none
}

TEST_F(WatchersTest, FirstThatLeavesWithoutTaking_IsFollowedByTheNext) {
  auto first = watch("a", "first");
  auto second = watch("a", "second");
  auto third = watch("a", "third");
  const auto fourth = watch("a", "fourth");
  watchers.tell_first("a");
  third.reset();
  engine.run();
  EXPECT_EQ(notified, Names{"first"}) << "another one that left was not notified";
  first.reset();
  engine.run();
  EXPECT_EQ(notified, (Names{"first", "second"}));
  watchers.taken("a");
  second.reset();
  engine.run();
  EXPECT_EQ(notified, (Names{"first", "second"})) << "it was taken";
  watchers.taken("b");
}

}  // namespace
}  // namespace dlock::common
