// The backend against an etcd in memory, on a clock that the test moves.
#include "backends/etcd/etcd_backend.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend_fixture.hpp"

namespace dlock::etcd {
namespace {

using namespace std::chrono_literals;

class EtcdBackendTest : public EtcdFixture {};

// --- Locks -----------------------------------------------------------------------------------------------------------

TEST_F(EtcdBackendTest, AFreeLockIsOneTransactionAndSoIsItsRelease) {
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

TEST_F(EtcdBackendTest, WaitersAreServedInTheirOrderAndEachWatchesOneKey) {
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

TEST_F(EtcdBackendTest, ManyAtOnceGoTogetherAndTwoOfOneLockDoNot) {
  (void)contend(*backend, "first");
  const int before = etcd.transactions;
  std::vector<std::unique_ptr<Attempt>> attempts;
  for (int i = 0; i < 50; ++i) attempts.push_back(begin(*backend, "many/" + std::to_string(i)));
  auto one = begin(*backend, "same");
  auto other = begin(*backend, "same");
  engine.run();
  for (const auto& each : attempts) EXPECT_TRUE(each->grant);
  EXPECT_LE(etcd.transactions - before, 6);
  EXPECT_TRUE(one->grant && !other->grant);
  (void)release(*backend, *one);
  ASSERT_TRUE(other->grant);
  EXPECT_GT(other->grant->token, one->grant->token);
}

TEST_F(EtcdBackendTest, WhatGoesTogetherAndIsRefusedIsAskedForAlone) {
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
TEST_F(EtcdBackendTest, WithALoginOrACertificateNothingGoesTogether) {
  for (const auto& [url, alone] :
       {std::pair("etcd://u:p@a", true), {"etcds://a?tls_cert=/c.pem&tls_key=/k.pem", true}, {"etcds://a", false}}) {
    backend = make_at(url);
    (void)contend(*backend, url);
    const int before = etcd.transactions;
    std::vector<std::unique_ptr<Attempt>> attempts;
    for (int i = 0; i < 10; ++i) attempts.push_back(begin(*backend, std::string(url) + std::to_string(i)));
    engine.run();
    for (const auto& each : attempts) EXPECT_TRUE(each->grant);
    EXPECT_EQ(etcd.transactions - before, alone ? 10 : 3) << url;
  }
}

// --- The session -----------------------------------------------------------------------------------------------------

TEST_F(EtcdBackendTest, ALeaseIsExtendedByKeepAlivesThatAreConfirmed) {
  const auto attempt = contend(*backend);
  const TimePoint until = attempt->grant->valid_until;
  EXPECT_LE(until, engine.now() + 10s);
  engine.advance(1min);
  EXPECT_TRUE(host.losses.empty());
  ASSERT_FALSE(host.extensions.empty());
  EXPECT_GT(host.extensions.back().second, until + 40s);
  EXPECT_LE(host.extensions.back().second, engine.now() + 10s);
}

TEST_F(EtcdBackendTest, AKeepAliveOfAnotherTermThanTheReadsDoesNotCount) {
  const auto attempt = contend(*backend);
  etcd.term_of_keep_alives = etcd.term - 1;
  engine.advance(9s);
  EXPECT_TRUE(host.extensions.empty());
  EXPECT_GT(etcd.keep_alives, 2);
  engine.advance(1s);
  ASSERT_EQ(host.losses.size(), 1U);
  EXPECT_LE(attempt->grant->valid_until, engine.now());
}

TEST_F(EtcdBackendTest, AKeepAliveWhoseReadIsNotAnsweredDoesNotCount) {
  const auto attempt = contend(*backend);
  etcd.fate = [](std::string_view) { return Fate::lost; };
  engine.advance(10s);
  EXPECT_TRUE(host.extensions.empty());
  EXPECT_EQ(host.losses.size(), 1U);
}

TEST_F(EtcdBackendTest, ASessionWhoseKeyIsGoneIsLostThoughItsLeaseIsKeptAlive) {
  const auto attempt = contend(*backend);
  for (const auto& [key, value] : std::map<std::string, KeyValue>(etcd.keys)) {
    if (key.find(".session/") != std::string::npos) etcd.remove(key);
  }
  engine.advance(4s);
  EXPECT_EQ(host.losses.size(), 1U);
}

TEST_F(EtcdBackendTest, ASessionThatExpiredIsLostAndAWaiterQueuesAnewAtTheEnd) {
  const auto held = contend(*backend);
  const auto waiter = contend(*backend);
  etcd.expire_leases();
  engine.advance(4s);
  ASSERT_EQ(host.losses.size(), 1U);
  EXPECT_EQ(host.losses[0].owner, held->request.owner);
  ASSERT_TRUE(waiter->grant);
  EXPECT_GT(waiter->grant->token, held->grant->token);
  (void)release(*backend, *waiter);
  EXPECT_EQ(etcd.keys.size(), 1U) << "the session's";
}

TEST_F(EtcdBackendTest, WithTheShortestTimesItIsKeptAliveAsWell) {
  backend = make("session_ttl=2s");
  const auto attempt = contend(*backend);
  engine.advance(30s);
  EXPECT_TRUE(host.losses.empty());
  EXPECT_LT(etcd.dialled, 3);
}

TEST_F(EtcdBackendTest, ASilentMemberIsLeftInTimeAndTheLockKept) {
  const auto attempt = contend(*backend);
  const int before = etcd.dialled;
  etcd.silent = true;
  engine.advance(6s);
  EXPECT_GT(etcd.dialled, before);
  etcd.silent = false;
  engine.advance(20s);
  EXPECT_TRUE(host.losses.empty());
}

TEST_F(EtcdBackendTest, AKeyThatSomebodyRemovesIsALossAtOnce) {
  const auto attempt = contend(*backend);
  engine.advance(300ms);
  etcd.remove(etcd.keys_below("dlock/a/").front());
  engine.run();
  EXPECT_EQ(host.losses.size(), 1U);
}

TEST_F(EtcdBackendTest, AHolderWhoseConnectionBrokeLooksOnceAndWatchesItsKeyAgain) {
  const auto held = contend(*backend);
  (void)release(*backend, *contend(*backend, "another"));
  engine.advance(1s);
  const int before = etcd.transactions;
  etcd.break_connections();
  engine.advance(1s);
  EXPECT_EQ(etcd.transactions - before, 2) << "of the session's key, and of its own";
  ASSERT_EQ(etcd.watches(), 1U);
  etcd.remove(etcd.keys_below("dlock/a/").front());
  engine.run();
  EXPECT_EQ(host.losses.size(), 1U);
  EXPECT_EQ(etcd.keys.size(), 1U) << "the session's";
}

TEST_F(EtcdBackendTest, AKeyThatWasRemovedInTheFirstMomentIsALossTheMomentItIsWatched) {
  const auto attempt = contend(*backend);
  etcd.remove(etcd.keys_below("dlock/a/").front());
  engine.advance(250ms);
  EXPECT_EQ(host.losses.size(), 1U);
}

TEST_F(EtcdBackendTest, AnotherClusterIsWarnedOf) {
  const auto attempt = contend(*backend);
  engine.advance(10s);
  EXPECT_TRUE(host.warnings.empty());
  etcd.cluster = 2;
  engine.advance(10s);
  EXPECT_EQ(host.warnings.size(), 1U);
}

TEST_F(EtcdBackendTest, TheEndOfTheClientEndsItsSession) {
  const auto held = contend(*backend);
  bool closed = false;
  backend->close([&] { closed = true; });
  engine.run();
  EXPECT_TRUE(closed);
  EXPECT_TRUE(etcd.keys.empty());
  EXPECT_TRUE(etcd.leases.empty());
}

TEST_F(EtcdBackendTest, MayEndWithEverythingUnderWay) {
  const auto held = contend(*backend);
  auto waiter = contend(*backend);
  etcd.silent = true;
  auto asking = contend(*backend, "b");
  asking.reset();
  waiter.reset();
  held->contention.reset();
  backend.reset();
  engine.advance(1min);
}

// --- Connections -----------------------------------------------------------------------------------------------------

TEST_F(EtcdBackendTest, AReleaseThatAWaiterMissedWhileItWasCutOffIsSeen) {
  const auto held = contend(*backend);
  const auto waiter = contend(*backend);
  etcd.refuses = true;
  etcd.break_connections();
  engine.run();
  etcd.remove(etcd.keys_below("dlock/a/").front());
  etcd.refuses = false;
  engine.advance(1s);
  EXPECT_TRUE(waiter->grant);
}

TEST_F(EtcdBackendTest, CompactionIsNobodysError) {
  const auto held = contend(*backend);
  const auto waiter = contend(*backend);
  engine.advance(1s);
  for (int i = 0; i < 2; ++i) {
    etcd.compact();
    etcd.break_connections();
    engine.advance(1s);
  }
  etcd.compact();
  (void)release(*backend, *held);
  engine.advance(2s);
  EXPECT_TRUE(waiter->grant);
  EXPECT_FALSE(waiter->failure);
}

// What happened meanwhile is told by the watch, or seen where its beginning is forgotten.
TEST_F(EtcdBackendTest, AHolderWhoseLookFailedLooksAgain) {
  for (const bool compacted : {false, true}) {
    const auto held = contend(*backend, compacted ? "a" : "b");
    engine.advance(1s);
    bool failed = false;
    etcd.status = [&](std::string_view method) {
      if (method != method_transaction || std::exchange(failed, true)) return GrpcStatus{};
      return GrpcStatus{.code = 8, .message = "etcdserver: too many requests"};
    };
    etcd.break_connections();
    while (!failed) engine.advance(10ms);
    etcd.status = nullptr;
    etcd.remove(etcd.keys_below(compacted ? "dlock/a/" : "dlock/b/").front());
    if (compacted) etcd.compact();
    EXPECT_TRUE(host.losses.empty());
    engine.advance(1s);
    ASSERT_EQ(host.losses.size(), 1U);
    EXPECT_EQ(host.losses.front().owner, held->request.owner);
    host.losses.clear();
  }
}

TEST_F(EtcdBackendTest, ATryWithoutAConnectionSaysWhyInTime) {
  etcd.refuses = true;
  const auto attempt = contend(*backend, "a", false);
  engine.advance(2s);
  ASSERT_FALSE(attempt->unreachable_reports.empty());
  EXPECT_NE(attempt->unreachable_reports.front().detail.find("refused"), std::string::npos);
}

// --- Answers that do not come ----------------------------------------------------------------------------------------

TEST_F(EtcdBackendTest, ALateAcquireThatWasGivenUpDoesNothing) {
  (void)contend(*backend, "first");
  etcd.treat_next(method_transaction, Fate::late);
  auto attempt = contend(*backend);
  attempt.reset();
  engine.advance(1s);
  etcd.deliver_late();
  engine.advance(10s);
  EXPECT_TRUE(etcd.keys_below("dlock/a/").empty());
}

TEST_F(EtcdBackendTest, ALateAcquireBehindTheReleaseOfItsOwnerDoesNothing) {
  (void)contend(*backend, "first");
  etcd.treat_next(method_transaction, Fate::late);
  const auto attempt = contend(*backend);
  engine.advance(5s);
  ASSERT_TRUE(attempt->grant);
  EXPECT_EQ(release(*backend, *attempt), ReleaseOutcome::Status::released);
  etcd.deliver_late();
  engine.advance(10s);
  EXPECT_TRUE(etcd.keys_below("dlock/a/").empty());
}

TEST_F(EtcdBackendTest, ALateAcquireOfALostSessionDoesNothing) {
  (void)contend(*backend, "first");
  etcd.treat_next(method_transaction, Fate::late);
  auto attempt = contend(*backend);
  etcd.expire_leases();
  engine.advance(15s);
  ASSERT_TRUE(attempt->grant);
  (void)release(*backend, *attempt);
  etcd.deliver_late();
  engine.run();
  EXPECT_TRUE(etcd.keys_below("dlock/a/").empty());
  EXPECT_EQ(etcd.keys.size(), 1U) << "the session's";
}

// --- Other kinds -----------------------------------------------------------------------------------------------------

TEST_F(EtcdBackendTest, OnlyTheFirstInLineForAPermitWatchesAll) {
  std::vector<std::unique_ptr<Attempt>> all;
  for (int i = 0; i < 6; ++i) all.push_back(ask_for_permit(*backend));
  EXPECT_TRUE(all[0]->grant && all[1]->grant && !all[2]->grant);
  EXPECT_EQ(etcd.watches_of_ranges(), 1U);
  EXPECT_FALSE(ask_for_permit(*backend, false)->grant);
  EXPECT_EQ(etcd.keys_below("dlock.sem/").size(), 6U);
  const int before = etcd.transactions;
  (void)release(*backend, *all[1]);
  EXPECT_TRUE(all[2]->grant && !all[3]->grant);
  EXPECT_EQ(etcd.watches_of_ranges(), 1U);
  EXPECT_LE(etcd.transactions - before, 4);
  (void)release(*backend, *all[0]);
  EXPECT_TRUE(all[3]->grant && !all[4]->grant);
}

}  // namespace
}  // namespace dlock::etcd
