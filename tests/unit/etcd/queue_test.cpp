// Places in queues: what happens to them when requests overtake each other, sessions end and answers do not come.
#include "backends/etcd/locks/queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include "backend_fixture.hpp"

namespace dlock::etcd {
namespace {

using namespace std::chrono_literals;

using EtcdQueueTest = EtcdFixture;

// Acquires of one lock go one after another. Those of a session that is over may still wait for their turn when the
// next one stands, and must not go together with its own: one of them that names a lease that is gone fails them all.
TEST_F(EtcdQueueTest, AcquiresOfAnEndedSession_DoNotHarmTheNextSession) {
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

// Hazard: a request arrives after its owner gave up: it finds the mark
TEST_F(EtcdQueueTest, RequestsGivenUp_LeaveAFewMarks) {
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
TEST_F(EtcdQueueTest, RequestOvertakenByAMark_IsSentAgain) {
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

// The first in line watches all keys of the semaphore. A watch from the revision of its last read would report the same
// removal again and again.
TEST_F(EtcdQueueTest, WaiterBehindTheFirstGivesUp_FirstReadsOnce) {
  const auto first = contend(*backend, "s");
  const auto second = contend(*backend, "s");
  const auto third = contend(*backend, "s");
  auto fourth = contend(*backend, "s");
  const int before = etcd.transactions;
  fourth.reset();
  for (int i = 0; i < 1000 && engine.run_one(); ++i) {
  }
  EXPECT_LE(etcd.transactions - before, 4);
  EXPECT_FALSE(engine.run_one());
  (void)release(*backend, *second);
  EXPECT_TRUE(third->grant);
}

// A member reads the past only ten times a second, for watches that begin there.
// Hazard: a key goes between read and watch: dlock checks again
TEST_F(EtcdQueueTest, ReleaseAsAWaiterArrives_IsNotMissed) {
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

// The cluster searches all keys that a lock ever had.
TEST_F(EtcdQueueTest, LockUsedAgain_ReusesItsKey) {
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
// Hazard: a late release deletes a newer key (etcd#22082): it names the revision
TEST_F(EtcdQueueTest, ReleaseArrivesLate_LeavesALaterKey) {
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
// Hazard: a late release deletes a newer key (etcd#22082): it names the revision
TEST_F(EtcdQueueTest, KeyThatMayStillArrive_IsNotReused) {
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

TEST_F(EtcdQueueTest, ReleaseOvertakenByTheEndOfItsSession_IsAmbiguous) {
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

TEST_F(EtcdQueueTest, ReleaseNotSentBeforeTheEndOfItsSession_IsNotOurs) {
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
TEST_F(EtcdQueueTest, KeyRemovedBeforeAReleaseInDoubt_IsNotOurs) {
  begin_session();
  etcd.treat_next(method_transaction, Fate::carried_out);
  const auto attempt = begin(*backend);
  while (!attempt->grant) engine.advance(10ms);
  remove_key();
  EXPECT_EQ(release(*backend, *attempt), ReleaseOutcome::Status::not_owner);
}

// Shows: hole etcd-lost-event
// Hazard: a watch's event is lost: rare polls
TEST_F(EtcdQueueTest, EventLost_WaiterChecksWithinHalfAMinuteOrSo) {
  const auto holder = contend(*other);
  const auto waiter = contend(*backend);
  etcd.holds_news = true;
  (void)release(*other, *holder);
  engine.advance(19s);
  EXPECT_FALSE(waiter->grant);
  engine.advance(21s);
  EXPECT_TRUE(waiter->grant);
}

TEST_F(EtcdQueueTest, AcquireDenied_LeavesNothingToDo) {
  begin_session();
  const GrpcStatus denied{.code = 7, .message = "etcdserver: permission denied"};
  const int before = etcd.transactions;
  etcd.refuse_next(method_transaction, denied);
  EXPECT_EQ(contend(*backend)->failure.value().code, errc::access_denied);
  EXPECT_EQ(etcd.transactions, before);
  const auto holder = contend(*other);
  const auto waiter = contend(*backend);
  etcd.refuse_next(method_transaction, denied);
  etcd.compact();  // it reads
  engine.run();
  ASSERT_TRUE(waiter->failure);
  EXPECT_EQ(etcd.keys_below("dlock/a/").size(), 1U) << "it gave up its place";
}

}  // namespace
}  // namespace dlock::etcd
