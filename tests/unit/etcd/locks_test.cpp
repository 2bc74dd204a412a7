// Locks of the backend: what they cost, what becomes of holders whose keys go, and of places in queues when requests
// overtake each other, sessions end and answers do not come.
#include <algorithm>

#include "fixtures.hpp"

namespace dlock::etcd {
namespace {

using namespace std::chrono_literals;

using EtcdBackendTest = EtcdFixture;

TEST_F(EtcdBackendTest, FreeLock_CostsOneTransactionAndOneMoreToRelease) {
  engine.advance(1min);
  EXPECT_EQ(etcd.dialled, 0) << "nothing connects before it is needed";
  (void)contend(*backend, "first");
  const int before = etcd.transactions;
  const auto attempt = contend(*backend);
  ASSERT_TRUE(attempt->grant);
  EXPECT_EQ(etcd.transactions, before + 1);
  EXPECT_EQ(contend(*backend, "a", false)->busy_reports, 1);
  EXPECT_EQ(etcd.transactions, before + 2);
  EXPECT_EQ(etcd.keys_below("dlock/a/").size(), 1U);
  EXPECT_EQ(release(*backend, *attempt), ReleaseOutcome::Status::released);
  EXPECT_EQ(etcd.transactions, before + 3);
  EXPECT_TRUE(etcd.keys_below("dlock/a/").empty());
  EXPECT_TRUE(etcd.metadata.contains("hasleader"));
}

// Shows: first-come
// Hazard: all waiters wake up: each watches one key
TEST_F(EtcdBackendTest, Waiters_AreServedInOrderAndWatchOneKeyEach) {
  const auto first = contend(*backend);
  const auto second = contend(*backend);
  const auto third = contend(*backend);
  EXPECT_FALSE(second->grant || third->grant);
  EXPECT_EQ(etcd.watches(), 2U);
  EXPECT_EQ(etcd.watches_of_ranges(), 0U);
  (void)release(*backend, *first);
  EXPECT_TRUE(second->grant && !third->grant);
  EXPECT_GT(second->grant->token, first->grant->token);
  (void)release(*backend, *second);
  EXPECT_TRUE(third->grant);
}

TEST_F(EtcdBackendTest, WaitersForAPermit_OnlyTheFirstWatchesAllKeys) {
  begin_session();
  auto transactions = [this, before = etcd.transactions]() mutable {
    return etcd.transactions - std::exchange(before, etcd.transactions);
  };
  std::vector<std::unique_ptr<Attempt>> all;
  all.push_back(contend(*backend, "s"));
  EXPECT_EQ(transactions(), 1);
  all.push_back(contend(*backend, "s", false));
  EXPECT_EQ(transactions(), 2) << "a try reads before it writes";
  for (int i = 0; i < 4; ++i) {
    all.push_back(contend(*backend, "s"));
    EXPECT_EQ(transactions(), 1) << "the first in line ignores those behind it";
  }
  EXPECT_TRUE(all[0]->grant && all[1]->grant && !all[2]->grant);
  EXPECT_EQ(etcd.watches_of_ranges(), 1U);
  EXPECT_EQ(contend(*backend, "s", false)->busy_reports, 1);
  EXPECT_EQ(transactions(), 1);
  EXPECT_EQ(etcd.keys_below("dlock.sem/").size(), 6U);
  (void)release(*backend, *all[1]);
  EXPECT_TRUE(all[2]->grant && !all[3]->grant);
  EXPECT_EQ(etcd.watches_of_ranges(), 1U);
  EXPECT_LE(transactions(), 4);
  (void)release(*backend, *all[0]);
  EXPECT_TRUE(all[3]->grant && !all[4]->grant);
}

// Hazard: two acquires of a lock get one revision: never in one transaction
TEST_F(EtcdBackendTest, SimultaneousAcquires_ShareTransactionsExceptOfOneLock) {
  (void)contend(*backend, "first");
  const int before = etcd.transactions;
  std::vector<std::unique_ptr<Attempt>> attempts;
  for (int i = 0; i < 50; ++i) attempts.push_back(begin(*backend, "many/" + std::to_string(i)));
  const auto one = begin(*backend, "same");
  const auto another = begin(*backend, "same");
  engine.run();
  for (const auto& each : attempts) EXPECT_TRUE(each->grant);
  EXPECT_LE(etcd.transactions - before, 6);
  EXPECT_TRUE(one->grant && !another->grant);
  (void)release(*backend, *one);
  ASSERT_TRUE(another->grant);
  EXPECT_GT(another->grant->token, one->grant->token);
}

// Hazard: etcd refuses a whole transaction: each request alone
TEST_F(EtcdBackendTest, SharedTransactionRefused_EachIsSentAlone) {
  (void)contend(*backend, "first");
  int refusals = 0;
  etcd.status = [&](std::string_view method) {
    const bool refuse = method == method_transaction && ++refusals == 3;  // the first that has several
    return refuse ? GrpcStatus{.code = 7, .message = "etcdserver: permission denied"} : GrpcStatus{};
  };
  std::vector<std::unique_ptr<Attempt>> attempts;
  for (int i = 0; i < 5; ++i) attempts.push_back(begin(*backend, "many/" + std::to_string(i)));
  engine.run();
  EXPECT_GE(refusals, 5);
  for (const auto& each : attempts) EXPECT_TRUE(each->grant) << (each->failure ? each->failure->detail : "");
}

// etcd 3.4 checks no rights within a transaction of transactions, and a client's certificate may stand for a user.
TEST_F(EtcdBackendTest, LoginOrCertificate_EachIsSentAlone) {
  for (const auto& [url, alone] :
       {std::pair("etcd://u:p@a", true), {"etcds://a?tls_cert=/c.pem&tls_key=/k.pem", true}, {"etcds://a", false}}) {
    backend = make(url);
    (void)contend(*backend, url);
    const int before = etcd.transactions;
    std::vector<std::unique_ptr<Attempt>> attempts;
    for (int i = 0; i < 10; ++i) attempts.push_back(begin(*backend, std::string(url) + std::to_string(i)));
    engine.run();
    for (const auto& each : attempts) EXPECT_TRUE(each->grant);
    EXPECT_EQ(etcd.transactions - before, alone ? 10 : 3) << url;
  }
}

// Shows: hole broken-by-hand
// Hazard: a holder does not learn that its key is gone (etcd#6127, etcd#10811): it watches the key
TEST_F(EtcdBackendTest, KeyRemoved_HolderLosesAtOnceOnceItWatches) {
  for (const auto held_for : {300ms, 0ms}) {
    SCOPED_TRACE(held_for.count());
    host.losses.clear();
    const auto attempt = contend(*backend);
    engine.advance(held_for);
    remove_key();
    engine.advance(held_for == 0ms ? 250ms : 0ms);
    EXPECT_EQ(host.losses.size(), 1U);
  }
}

TEST_F(EtcdBackendTest, HolderReconnected_ReadsItsKeyOnceAndWatchesItAgain) {
  const auto held = contend(*backend);
  (void)release(*backend, *contend(*backend, "another"));
  engine.advance(1s);
  const int before = etcd.transactions;
  etcd.break_connections();
  engine.advance(1s);
  EXPECT_EQ(etcd.transactions - before, 2) << "of the session's key, and of its own";
  ASSERT_EQ(etcd.watches(), 1U);
  remove_key();
  engine.run();
  EXPECT_EQ(host.losses.size(), 1U);
  EXPECT_EQ(etcd.keys.size(), 1U) << "the session's";
}

// A member that lags behind reports to a new watch that an earlier key of that name was removed.
TEST_F(EtcdBackendTest, EarlierKeyReported_EndsNoHold) {
  (void)release(*backend, *contend(*backend));
  const auto holder = contend(*backend);
  const auto keys = etcd.keys_below("dlock/a/");
  etcd.lag = 2;
  engine.advance(1s);
  ASSERT_EQ(etcd.watches(), 1U);
  EXPECT_TRUE(host.losses.empty());
  EXPECT_EQ(etcd.keys_below("dlock/a/"), keys);
  remove_key();
  engine.run();
  EXPECT_EQ(host.losses.size(), 1U);
}

// --- Queues ---

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

// Shows: no-residue
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
