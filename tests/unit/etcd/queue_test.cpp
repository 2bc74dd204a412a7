// Places in queues: what happens to them when requests overtake each other, sessions end and answers do not come.
#include "backends/etcd/locks/queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend_fixture.hpp"

namespace dlock::etcd {
namespace {

using namespace std::chrono_literals;

class EtcdQueueTest : public EtcdFixture {};

// Acquires of one lock go one after another. Those of a session that is over may still wait for their turn when the
// next one stands, and must not go together with its own: one of them that names a lease that is gone fails them all.
TEST_F(EtcdQueueTest, WhatWaitsSinceASessionThatIsOverDoesNotHarmTheNextOne) {
  (void)contend(*backend, "first");
  engine.advance(3200ms);  // a keep-alive is sent soon
  etcd.treat_next(method_transaction, Fate::held, 1000);
  std::vector<std::unique_ptr<Attempt>> hot;
  for (int i = 0; i < 5; ++i) hot.push_back(begin(*backend, "hot"));
  engine.run();
  etcd.fate = nullptr;
  etcd.expire_leases();
  engine.advance(200ms);
  ASSERT_EQ(etcd.grants, 2);
  std::vector<std::unique_ptr<Attempt>> others;
  for (int i = 0; i < 5; ++i) others.push_back(begin(*backend, "other/" + std::to_string(i)));
  engine.run();
  etcd.answer_held();
  engine.advance(5s);
  EXPECT_EQ(etcd.grants, 2);
  for (const auto& each : others) EXPECT_TRUE(each->grant);
  for (const auto& each : hot) {
    ASSERT_TRUE(each->grant);
    (void)release(*backend, *each);
    engine.run();
  }
  EXPECT_TRUE(etcd.keys_below("dlock/hot/").empty());
}

TEST_F(EtcdQueueTest, MarksOfRequestsThatWereGivenUpDoNotAddUp) {
  (void)contend(*backend, "first");
  for (int i = 0; i < 100; ++i) {
    etcd.treat_next(method_transaction, Fate::late);
    const auto attempt = contend(*backend, "a", false);
    etcd.break_connections();
    engine.advance(2s);
    EXPECT_TRUE(attempt->failure);
  }
  etcd.deliver_late();
  EXPECT_TRUE(etcd.keys_below("dlock/a/").empty());
  const auto marks =
      std::ranges::count_if(etcd.keys, [](const auto& each) { return each.first.starts_with("dlock/.gone/"); });
  EXPECT_LE(marks, 17);
  EXPECT_TRUE(contend(*backend, "a", false)->grant);
}

// It is older than one that was given up, and finds the mark of that one.
TEST_F(EtcdQueueTest, ARequestThatIsOvertakenByTheEndOfALaterOneIsSentAgain) {
  for (const bool wait : {false, true}) {
    const std::string name = wait ? "waited" : "tried";
    (void)contend(*backend, "first");
    etcd.treat_next(method_transaction, Fate::held_before, 1000);
    const auto overtaken = begin(*backend, name, wait);
    engine.run();
    const auto given_up = begin(*backend, "other", false);
    engine.run();
    etcd.fate = nullptr;
    given_up->contention.reset();
    engine.advance(200ms);
    EXPECT_FALSE(etcd.keys_below("dlock/other/").size());
    etcd.answer_held();
    engine.run();
    ASSERT_TRUE(overtaken->grant) << name;
    EXPECT_EQ(etcd.keys_below("dlock/" + name + "/").size(), 1U);
  }
}

// The answer to a waiter's request is lost, and it finds its key when it asks again. It has waited, then, and whoever
// is behind it must be told when it enters.
TEST_F(EtcdQueueTest, WhoEntersASemaphoreByAnAnswerThatWasLostTellsTheOneBehind) {
  const auto other = make();
  const auto first = ask_for_permit(*other);
  const auto second = ask_for_permit(*other);
  (void)contend(*backend, "first");
  etcd.treat_next(method_transaction, Fate::carried_out);
  const auto third = ask_for_permit(*backend);
  const auto fourth = ask_for_permit(*other);
  (void)release(*other, *first);
  engine.advance(3s);
  ASSERT_TRUE(third->grant);
  ASSERT_FALSE(fourth->grant);
  (void)release(*other, *second);
  engine.advance(1s);
  EXPECT_TRUE(fourth->grant);
}

// The first in line watches all keys of the semaphore. What was removed in the revision that it has just looked at is
// told again and again if it goes on from that one.
TEST_F(EtcdQueueTest, TheFirstInLineLooksOnceMoreWhenOneBehindItGivesUpAndThenWaits) {
  const auto first = ask_for_permit(*backend);
  const auto second = ask_for_permit(*backend);
  const auto third = ask_for_permit(*backend);
  auto fourth = ask_for_permit(*backend);
  const int before = etcd.transactions;
  fourth.reset();
  for (int i = 0; i < 1000 && engine.run_one(); ++i) {
  }
  EXPECT_LE(etcd.transactions - before, 4);
  EXPECT_FALSE(engine.run_one());
  (void)release(*backend, *second);
  EXPECT_TRUE(third->grant);
}

// What it is told while it waits for the answer to a look is younger than that.
TEST_F(EtcdQueueTest, TheFirstInLineLooksAgainForNewsThatCameDuringALook) {
  for (const bool watch_is_over : {false, true}) {
    const auto other = make();
    const auto first = ask_for_permit(*other);
    const auto second = ask_for_permit(*other);
    const auto third = ask_for_permit(*backend);
    auto fourth = ask_for_permit(*other);
    etcd.fate = [met = 0](std::string_view) mutable { return ++met == 2 ? Fate::held : Fate::answered; };
    fourth.reset();  // by a transaction, and by the next one it is looked what went
    engine.run();
    if (watch_is_over) etcd.compact();
    (void)release(*other, *first);
    engine.run();
    ASSERT_FALSE(third->grant);
    etcd.answer_held();
    engine.run();
    EXPECT_TRUE(third->grant) << watch_is_over;
    (void)release(*other, *second);
    (void)release(*backend, *third);
  }
}

// A member reads the past only ten times a second, for watches that begin there.
TEST_F(EtcdQueueTest, ALockThatIsFreedAsSoonAsItIsWaitedForIsHandedOverAtOnce) {
  const auto other = make();
  for (const bool busy_cluster : {false, true}) {
    const auto holder = contend(*backend);
    const auto waiter = begin(*other);
    while (waiter->busy_reports == 0) ASSERT_TRUE(engine.run_one());
    if (busy_cluster) (void)contend(*backend, "another");
    backend->release(*holder->grant, [](const ReleaseOutcome&) {});
    engine.run();
    ASSERT_TRUE(waiter->grant);
    (void)release(*other, *waiter);
  }
}

// The cluster looks at all keys that a lock ever had.
TEST_F(EtcdQueueTest, KeysHaveTheNamesOfEarlierOnes) {
  std::set<std::string> keys;
  for (int i = 0; i < 20; ++i) {
    const auto attempt = contend(*backend);
    ASSERT_TRUE(attempt->grant);
    keys.insert(etcd.keys_below("dlock/a/").front());
    EXPECT_FALSE(contend(*backend, "a", false)->grant);
    (void)release(*backend, *attempt);
  }
  EXPECT_EQ(keys.size(), 1U);
}

// A request to remove a key that was sent once more, because the answer was lost, may come when the next acquire has a
// key of that name.
TEST_F(EtcdQueueTest, ALateReleaseDoesNotTouchALaterKeyOfTheSameName) {
  const auto first = contend(*backend);
  const std::string key = etcd.keys_below("dlock/a/").front();
  etcd.treat_next(method_transaction, Fate::late);
  (void)release(*backend, *first);
  engine.advance(5s);
  const auto second = contend(*backend);
  ASSERT_TRUE(second->grant);
  ASSERT_EQ(etcd.keys_below("dlock/a/"), std::vector{key});
  etcd.deliver_late();
  engine.advance(1s);
  EXPECT_EQ(etcd.keys_below("dlock/a/"), std::vector{key});
  EXPECT_TRUE(host.losses.empty());
}

// The same of a request to make a key.
TEST_F(EtcdQueueTest, TheNameOfAKeyThatMayStillComeIsNotUsedAgain) {
  (void)release(*backend, *contend(*backend));
  etcd.treat_next(method_transaction, Fate::late);
  (void)contend(*backend, "a", false);
  engine.advance(5s);
  const auto second = contend(*backend);
  ASSERT_TRUE(second->grant);
  (void)release(*backend, *second);
  etcd.deliver_late();
  engine.advance(1s);
  EXPECT_TRUE(etcd.keys_below("dlock/a/").empty());
}

TEST_F(EtcdQueueTest, TheKeysOfANewSessionAreNumberedAnew) {
  const auto held = contend(*backend);
  etcd.silent = true;
  engine.advance(10s);
  ASSERT_EQ(host.losses.size(), 1U);
  etcd.silent = false;
  engine.advance(5s);
  ASSERT_TRUE(contend(*backend)->grant);
  EXPECT_EQ(key_number(etcd.keys_below("dlock/a/").front()), 0U);
}

// What names a lease that is over would be refused, and without a lease a key would stay for good.
TEST_F(EtcdQueueTest, NothingIsLeftOfAnAcquireInDoubtWhereTheClientEnds) {
  (void)release(*backend, *contend(*backend, "first"));
  etcd.treat_next(method_transaction, Fate::lost, 1000);
  contend(*backend)->contention.reset();
  bool closed = false;
  backend->close([&] { closed = true; });
  engine.run();
  ASSERT_TRUE(closed);
  etcd.fate = nullptr;
  engine.advance(10s);
  EXPECT_TRUE(etcd.keys.empty());
}

// --- What a release may claim ----------------------------------------------------------------------------------------

TEST_F(EtcdQueueTest, AReleaseThatTheEndOfItsSessionOvertakesIsNotClaimed) {
  const auto held = contend(*backend);
  etcd.holds_keep_alives = true;
  engine.advance(held->grant->valid_until - engine.now() - 100ms);
  etcd.treat_next(method_transaction, Fate::lost, 1000);
  std::optional<ReleaseOutcome> outcome;
  backend->release(*held->grant, [&](const ReleaseOutcome& said) { outcome = said; });
  engine.advance(200ms);
  ASSERT_FALSE(outcome);
  etcd.break_connections();
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->status, ReleaseOutcome::Status::failed);
  EXPECT_EQ(outcome->failure.code, errc::ambiguous) << "released, or ended with the session";
}

TEST_F(EtcdQueueTest, AReleaseThatWasNotSentBeforeTheEndOfItsSessionIsNotClaimed) {
  std::vector<std::unique_ptr<Attempt>> held;
  for (const char* name : {"a", "b", "c"}) held.push_back(contend(*backend, name));
  engine.advance(3300ms);  // a keep-alive is sent soon
  etcd.treat_next(method_transaction, Fate::held, 1000);
  std::optional<ReleaseOutcome> outcome;
  for (const auto& each : held) backend->release(*each->grant, [&](const ReleaseOutcome& said) { outcome = said; });
  engine.run();
  etcd.expire_leases();
  engine.advance(200ms);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->status, ReleaseOutcome::Status::not_owner);
  etcd.fate = nullptr;
  etcd.answer_held();  // the two that were sent
  engine.run();
  EXPECT_EQ(outcome->status, ReleaseOutcome::Status::released);
}

// An earlier answer was lost, so the key is removed whether or not the request to make it comes once more.
TEST_F(EtcdQueueTest, AReleaseInDoubtOfAKeyThatIsGoneIsNotClaimed) {
  (void)release(*backend, *contend(*backend, "first"));
  etcd.treat_next(method_transaction, Fate::carried_out);
  const auto attempt = begin(*backend);
  while (!attempt->grant) engine.advance(10ms);
  etcd.remove(etcd.keys_below("dlock/a/").front());
  EXPECT_EQ(release(*backend, *attempt), ReleaseOutcome::Status::not_owner);
}

// --- Why there is no session -----------------------------------------------------------------------------------------

TEST_F(EtcdQueueTest, AWaiterIsToldAtOnceWhyNoSessionStands) {
  const auto held = contend(*backend);
  etcd.refuses = true;
  etcd.break_connections();
  engine.run();
  const auto cut_off = begin(*backend, "b");
  ASSERT_EQ(cut_off->unreachable_reports.size(), 1U);
  EXPECT_EQ(cut_off->unreachable_reports.front().detail, "etcd:2379: Connection reset by peer");
  etcd.refuses = false;
  engine.advance(5s);
  ASSERT_TRUE(cut_off->grant);
  etcd.expire_leases();
  while (host.connections.back() != ConnectionEvent::State::reconnecting) {
    if (!engine.run_one()) engine.manual_clock().advance(10ms);
  }
  const auto lost = begin(*backend, "c");
  ASSERT_EQ(lost->unreachable_reports.size(), 1U);
  EXPECT_EQ(lost->unreachable_reports.front().detail, "it has expired");
}

// The process stood still, and does not know yet what became of its session.
TEST_F(EtcdQueueTest, AWaiterIsNotToldOfTroubleThatIsOver) {
  etcd.refuses = true;
  const auto held = contend(*backend);
  ASSERT_FALSE(held->unreachable_reports.empty());
  etcd.refuses = false;
  engine.advance(5s);
  ASSERT_TRUE(held->grant);
  engine.manual_clock().advance(1min);
  EXPECT_TRUE(begin(*backend, "b")->unreachable_reports.empty());
}

// --- News ------------------------------------------------------------------------------------------------------------

// A member that lags behind tells a watch that begins now of what it has not seen yet: that an earlier key of that name
// went.
TEST_F(EtcdQueueTest, NewsOfAnEarlierKeyOfTheSameNameEndsNoHold) {
  (void)release(*backend, *contend(*backend));
  const auto holder = contend(*backend);
  const std::string key = etcd.keys_below("dlock/a/").front();
  etcd.lag = 2;
  engine.advance(1s);
  ASSERT_EQ(etcd.watches(), 1U);
  EXPECT_TRUE(host.losses.empty());
  EXPECT_EQ(etcd.keys_below("dlock/a/"), std::vector{key});
  etcd.remove(key);
  engine.run();
  EXPECT_EQ(host.losses.size(), 1U);
}

}  // namespace
}  // namespace dlock::etcd
