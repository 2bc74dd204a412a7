// Locks of the backend: what they cost, what becomes of requests that arrive late, and of holders whose keys go.
#include "backends/etcd/etcd_backend.hpp"

#include <gtest/gtest.h>

#include <string_view>
#include <utility>

#include "backend_fixture.hpp"

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

// Shows: deadlines
TEST_F(EtcdBackendTest, NoConnection_TryFailsInTimeWithTheReason) {
  etcd.refuses = true;
  const auto attempt = contend(*backend, "a", false);
  engine.advance(2s);
  ASSERT_FALSE(attempt->unreachable_reports.empty());
  EXPECT_NE(attempt->unreachable_reports.front().detail.find("refused"), std::string::npos);
}

// Shows: no-residue
// Hazard: a request arrives after its owner gave up: it finds the mark
TEST_F(EtcdBackendTest, AcquireArrivesAfterItsEnd_LeavesNothing) {
  enum class End { given_up, released, session_lost };
  begin_session();
  for (const End end : {End::given_up, End::released, End::session_lost}) {
    SCOPED_TRACE(static_cast<int>(end));
    etcd.treat_next(method_transaction, Fate::late);
    auto attempt = contend(*backend);
    if (end == End::session_lost) etcd.expire_leases();
    if (end == End::given_up) attempt.reset();
    engine.advance(end == End::session_lost ? 15s : 5s);
    if (end != End::given_up) {
      ASSERT_TRUE(attempt->grant);
      EXPECT_EQ(release(*backend, *attempt), ReleaseOutcome::Status::released);
    }
    etcd.deliver_late();
    engine.advance(10s);
    EXPECT_TRUE(etcd.keys_below("dlock/a/").empty());
  }
}

}  // namespace
}  // namespace dlock::etcd
