// Locks in rows: how waiters hear of releases.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backend_rows_fixture.hpp"

namespace dlock::postgres {

namespace {

class BackendWakeUps : public BackendRowsTest {
 protected:
  BackendWakeUps() {
    for (const char* const name : {"x", "y", "z"}) hold(name);
    connected_before_ = server.wire().connected();
  }
  void hold(const std::string& name) { holders_[name] = held_by_others(name); }
  void free(const std::string& name) { EXPECT_EQ(release(*others, *holders_[name], 0s), "released"); }
  // A waiter called `who`, who writes down when it is told.
  [[nodiscard]] std::unique_ptr<Watch> watch(const std::string& name, const std::string& who) {
    return ours->backend->watch(kind, name, [this, who] {
      told.push_back(who);
      if (when_told) when_told();
    });
  }
  [[nodiscard]] std::unique_ptr<Watch> watching(const std::string& name, const std::string& who) {
    auto watching = watch(name, who);
    engine.run();
    return watching;
  }
  [[nodiscard]] Words take_told() { return std::exchange(told, {}); }
  [[nodiscard]] std::size_t marks() { return count("mark"); }
  [[nodiscard]] std::size_t listens() { return count("LISTEN \"" + channel + "\""); }
  [[nodiscard]] bool is_marked(const std::string& name) { return row(name).waiting_until > engine.now(); }
  [[nodiscard]] std::size_t connected() { return server.wire().connected() - connected_before_; }

  Words told;
  std::function<void()> when_told;

 private:
  std::map<std::string, std::unique_ptr<Attempt>> holders_;
  std::size_t connected_before_ = 0;
};
INSTANTIATE_TEST_SUITE_P(, BackendWakeUps, testing::ValuesIn(row_strategies), name_of_strategy);

// Hazard: a notification that comes before the client listens
TEST_P(BackendWakeUps, FirstWait_ListensBeforeMarking) {
  spoil("LISTEN", Fate::hold, 1);
  const auto first = watching("x", "a");
  engine.advance(1s);
  EXPECT_EQ(listens(), 1U);
  EXPECT_EQ(marks(), 0U) << "whoever releases a marked lock notifies only those who listen";
  heal();
  engine.run();
  EXPECT_EQ(marks(), 1U);
  EXPECT_TRUE(is_marked("x"));
  (void)take_sent();
  const auto second = watching("x", "b");
  EXPECT_EQ(take_sent(), Words{}) << "who joins after the mark costs nothing";
  const auto third = watching("y", "c");
  EXPECT_EQ(column(*queries("mark").at(0), 0), Words{"y"});
  EXPECT_EQ(take_sent(), Words{"mark"});
  EXPECT_EQ(connected(), 2U) << "the commands have another";
  EXPECT_TRUE(told.empty());
}

TEST_P(BackendWakeUps, MarkExpires_IsRenewedWhileWaitersAreLeft) {
  spoil(".mark", Fate::hold, 1);
  auto first = watching("x", "a");
  const auto second = watching("y", "b");
  auto third = watching("z", "c");
  EXPECT_EQ(marks(), 1U) << "one query at a time";
  engine.advance(3s);
  first.reset();
  heal();
  engine.run();
  EXPECT_EQ(marks(), 2U);
  EXPECT_EQ(column(*queries("mark").back(), 0), (Words{"y", "z"}));
  third.reset();
  const TimePoint last = queries("mark").back()->sent;
  engine.advance(7s);
  EXPECT_EQ(marks(), 3U);
  EXPECT_EQ(queries("mark").back()->sent, last + 7s);
  spoil(".mark", Fate::hold, 1);
  engine.advance(7s + 2s);
  heal();
  engine.advance(5s);
  EXPECT_EQ(queries("mark").back()->sent, last + 21s) << "it counts from when it was sent";
  for (int seconds = 0; seconds < 120; ++seconds) {
    engine.advance(1s);
    ASSERT_TRUE(is_marked("y")) << seconds;
  }
  EXPECT_LE(marks(), 5U + 120U / 7U);
  EXPECT_FALSE(is_marked("x") || is_marked("z"));
  EXPECT_TRUE(told.empty());
  EXPECT_EQ(listens(), 1U);
}

TEST_P(BackendWakeUps, FreeLock_IsMarkedLessOften) {
  const FakeLockTable::Row held = row("x");
  const auto set_free = [this] {
    row("x").owner.clear();
    row("x").expires_at = row("x").waiting_until = TimePoint::min();
  };
  set_free();
  const auto first = watch("x", "a");
  const auto other = watching("x", "b");
  EXPECT_EQ(take_told(), Words{"a"});
  row("x") = held;
  engine.advance(10ms);
  EXPECT_TRUE(is_marked("x"));
  for (int times = 0; times < 2; ++times) {  // and soon again, the next time
    EXPECT_TRUE(take_told().empty());
    set_free();
    engine.advance(7s);
    (void)take_sent();
    told.clear();
    engine.advance(100ms);
    EXPECT_GE(marks(), 3U);
    engine.advance(30s);
    (void)take_sent();
    told.clear();
    engine.advance(60s);
    EXPECT_LT(marks(), 50U);
    EXPECT_GT(marks(), 40U);
    EXPECT_EQ(take_told().size(), marks());
    row("x") = held;
    const auto another = watching("x", "c");
    EXPECT_TRUE(is_marked("x")) << "at once for one who joins";
  }
}

// Time stands still in it, so there can be no poll interval.
// Shows: waiters-woken
TEST_P(BackendWakeUps, Release_NotifiesTheLongestWaiterThenTheNext) {
  auto a = watch("x", "a");
  auto b = watch("x", "b");
  auto c = watch("x", "c");
  const auto other = watching("y", "d");
  free("x");
  EXPECT_EQ(take_told(), Words{"a"});
  a.reset();
  EXPECT_TRUE(told.empty()) << "not inside the call";
  engine.run();
  EXPECT_EQ(take_told(), Words{"b"});
  const auto ours_now = acquire("x");
  ASSERT_TRUE(ours_now->grant);
  b.reset();
  engine.advance(1s);
  EXPECT_EQ(take_told(), Words{});
  EXPECT_EQ(release(*ours, *ours_now, 0s), "released");
  EXPECT_EQ(take_told(), Words{"c"});
}

TEST_P(BackendWakeUps, Notifications_OfWaitersAndOlderSpellingCount) {
  hold("tab\there");
  const auto tab = watching("tab\there", "tab");
  std::unique_ptr<Watch> another;
  when_told = [&] {  // is not told by the same one
    if (!another) another = watch("x", "b");
  };
  const auto waiting = watching("x", "a");
  const auto notify = [this](const std::string& where, const std::string& payload) {
    server.wire().notify(where, payload);
    engine.run();
    return take_told();
  };
  EXPECT_EQ(notify("else", "x"), Words{});
  for (const char* const payload : {"z", "", "another\tz"}) EXPECT_EQ(notify(channel, payload), Words{});
  EXPECT_EQ(notify(channel, "another\tx"), Words{"a"}) << "a client, and the name";
  EXPECT_EQ(notify(channel, "tab\there"), Words{"tab"});
}

// Else all of a crowd would ask for it at once.
TEST_P(BackendWakeUps, ManyReleases_DelayGrowsUntilAGrant) {
  auto watch_x = watching("x", "a");
  const auto hear_of_releases = [this](int times) {
    std::chrono::nanoseconds longest{};
    for (int releases = 0; releases < times; ++releases) {
      const TimePoint start = engine.now();
      server.wire().notify(channel, "x");
      engine.run();
      EXPECT_EQ(told.empty(), releases > 0) << releases;
      server.wire().notify(channel, "x");  // who got it meanwhile has released it
      for (int i = 0; i < 1000 && told.empty(); ++i) engine.advance(100us);
      EXPECT_LE(engine.now() - start, std::min(releases * 2 + 1, 50) * 2ms) << releases;
      longest = std::max(longest, engine.now() - start);
      engine.advance(50ms);
      EXPECT_EQ(take_told().size(), releases == 0 ? 2U : 1U) << "once for both";
    }
    return longest;
  };
  EXPECT_GT(hear_of_releases(40), 30ms);
  free("x");
  engine.advance(100ms);
  (void)take_told();
  server.wire().notify(channel, "x");
  const auto attempt = acquire("x");
  ASSERT_TRUE(attempt->grant);
  engine.advance(1s);
  EXPECT_EQ(take_told(), Words{}) << "it was taken";
  (void)hear_of_releases(5);
  server.wire().notify(channel, "x");
  engine.run();
  watch_x.reset();
  engine.advance(1s);
  EXPECT_EQ(take_told(), Words{}) << "who leaves is not told late";
}

TEST_P(BackendWakeUps, NoWaiterForAMinute_ConnectionIsClosed) {
  auto waiting = watching("x", "a");
  waiting.reset();
  engine.advance(59s);
  waiting = watch("x", "b");
  engine.advance(2min);
  EXPECT_EQ(listens(), 1U);
  waiting.reset();
  (void)take_sent();
  engine.advance(59s);
  EXPECT_EQ(connected(), 2U);
  engine.advance(5min);
  EXPECT_EQ(connected(), 1U);
  EXPECT_EQ(take_sent(), Words{});
  spoil("LISTEN", Fate::hold, 1);
  waiting = watching("x", "c");
  EXPECT_EQ(take_sent(), Words{"LISTEN \"" + channel + "\""});
  heal();
  engine.run();
  free("x");
  EXPECT_EQ(take_told(), Words{"c"});
}

// Hazard: a notification that is lost
TEST_P(BackendWakeUps, ConnectionBreaks_ListensAndMarksAgain) {
  const auto x = watch("x", "a");
  const auto y = watching("y", "b");
  break_listening_connection();
  engine.run();
  free("x");
  row("y").waiting_until = TimePoint::min();
  engine.advance(100ms);
  EXPECT_EQ(listens(), 2U);
  EXPECT_TRUE(is_marked("y"));
  EXPECT_EQ(told.size(), static_cast<std::size_t>(std::count(told.begin(), told.end(), "a")));
  EXPECT_FALSE(take_told().empty()) << "it was released meanwhile";
  free("y");
  EXPECT_EQ(take_told(), Words{"b"});
  for (const auto outage : {1s, 6s, 8s, 20s, 600s}) {
    const std::string name = "x" + std::to_string(outage.count());
    hold(name);
    const auto waiting = watching(name, name);
    server.wire().unreachable = {1};
    break_listening_connection();
    engine.advance(outage);
    row(name).waiting_until = TimePoint::min();
    server.wire().unreachable = {};
    engine.advance(2s);
    EXPECT_TRUE(is_marked(name)) << outage.count();
    told.clear();
    free(name);
    EXPECT_EQ(std::count(told.begin(), told.end(), name), 1) << outage.count();
  }
}

TEST_P(BackendWakeUps, BehindAPooler_WaitersPoll) {
  server.wire().info.pooled = true;
  for (const bool is_known : {false, true}) {
    restart();
    if (is_known) (void)acquire("known");
    auto waiting = watch("x", "a");
    EXPECT_EQ(waiting == nullptr, is_known);
    EXPECT_TRUE(ours->host.warnings.empty()) << "not inside the call";
    engine.run();
    EXPECT_EQ(watch("x", "b"), nullptr);
    waiting.reset();
    engine.advance(5min);
    EXPECT_EQ(ours->host.warnings.size(), 1U) << "said once";
    EXPECT_EQ(listens(), 0U);
    EXPECT_EQ(connected(), is_known ? 1U : 0U);
  }
  options.pooler = Pooler::transaction;
  restart();
  EXPECT_FALSE(ours->backend->capabilities().wakes_waiters);
  EXPECT_EQ(watch("x", "c"), nullptr);
  engine.run();
  EXPECT_TRUE(ours->host.warnings.empty()) << "the user knows";
  const auto waiting = acquire("x", true);
  engine.advance(20s);
  EXPECT_GE(count("acquire"), 133U) << "a waiter polls several times a second";
}

}  // namespace

}  // namespace dlock::postgres
