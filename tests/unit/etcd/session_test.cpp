// The session of a client: what keeps it, what does not count, how it begins, and what follows its end.
#include "backends/etcd/connection/session.hpp"

#include "backends/etcd/locks/keys.hpp"
#include "fixtures.hpp"

namespace dlock::etcd {
namespace {

using namespace std::chrono_literals;

using EtcdSessionTest = EtcdFixture;

// Shows: known-end
TEST_F(EtcdSessionTest, KeepAlivesConfirmed_ExtendTheLease) {
  for (const auto& [url, ttl] : {std::pair("etcd://a?session_ttl=10s", 10s), {"etcd://a?session_ttl=2s", 2s}}) {
    backend = make(url);
    const auto attempt = contend(*backend, url);
    const TimePoint until = attempt->grant->valid_until;
    EXPECT_LE(until, engine.now() + ttl);
    const int dialled = etcd.dialled;
    engine.advance(1min);
    EXPECT_TRUE(host.losses.empty());
    EXPECT_EQ(etcd.dialled, dialled);
    ASSERT_FALSE(host.extensions.empty());
    EXPECT_GT(host.extensions.back().second, until + 40s);
    EXPECT_LE(host.extensions.back().second, engine.now() + ttl);
  }
}

// Shows: one-holder, loss-signal
// Hazard: a deposed leader answers a keep-alive
TEST_F(EtcdSessionTest, KeepAlivesNotConfirmed_ExtendNothing) {
  struct Row {
    const char* what;
    std::function<void()> arrange;
    std::chrono::seconds lost_by;
  };
  for (const Row& row : {
           Row{"of a leader that was deposed", [&] { etcd.term_of_keep_alives = etcd.term - 1; }, 10s},
           Row{"the read after it is not answered", [&] { etcd.fate = [](std::string_view) { return Fate::lost; }; },
               10s},
           Row{"the key of the session is gone",
               [&] {
                 for (const auto& [key, value] : std::map<std::string, KeyValue>(etcd.keys)) {
                   if (key.find(".session/") != std::string::npos) etcd.remove(key);
                 }
               },
               4s},
       }) {
    SCOPED_TRACE(row.what);
    backend = make();
    const auto attempt = contend(*backend, row.what);
    const int before = etcd.keep_alives;
    row.arrange();
    engine.advance(row.lost_by - 1s);
    EXPECT_TRUE(host.losses.empty());
    engine.advance(1s);
    EXPECT_EQ(host.losses.size(), 1U);
    EXPECT_TRUE(host.extensions.empty());
    EXPECT_GT(etcd.keep_alives, before);
    EXPECT_TRUE(row.lost_by < 10s || attempt->grant->valid_until <= engine.now());
    etcd.term_of_keep_alives.reset();
    etcd.fate = nullptr;
    host.losses.clear();
  }
}

// Retrying there until the session ends would lose what the other members would keep.
// Hazard: a member has lost the others: `hasleader`, deadlines
TEST_F(EtcdSessionTest, MemberSilentOrUnreadable_IsLeftInTime) {
  const auto held = contend(*backend);
  const auto waiter = contend(*backend);
  for (const bool silent : {true, false}) {
    const int before = etcd.dialled;
    etcd.silent = silent;
    if (!silent) etcd.answer_to_keep_alives = "\xff";
    for (int i = 0; i < 100 && etcd.dialled == before; ++i) engine.advance(100ms);
    EXPECT_GT(etcd.dialled, before);
    etcd.silent = false;
    etcd.answer_to_keep_alives.reset();
    engine.advance(20s);
    EXPECT_TRUE(host.losses.empty());
  }
  (void)release(*backend, *held);
  EXPECT_TRUE(waiter->grant) << "the wait goes on with the next member";
}

// A member that is not one of etcd's at all does not cost what the others would keep.
TEST_F(EtcdSessionTest, OneMemberRefusesForGood_IsKeptByTheOthers) {
  const auto held = contend(*backend);
  int refusals = 0;
  etcd.refuses_at = [&](const common::Host&) {
    return ++refusals == 1 ? Failure{errc::protocol, "b:2379: the server speaks HTTP/1.1, not HTTP/2"} : Failure{};
  };
  etcd.break_connections();
  engine.advance(20s);
  EXPECT_TRUE(host.losses.empty());
  EXPECT_GE(refusals, 2);
}

// Shows: hole etcd-restore
TEST_F(EtcdSessionTest, AnotherCluster_IsWarnedOf) {
  const auto attempt = contend(*backend);
  engine.advance(10s);
  EXPECT_TRUE(host.warnings.empty());
  etcd.cluster = 2;
  engine.advance(10s);
  EXPECT_EQ(host.warnings.size(), 1U);
}

TEST_F(EtcdSessionTest, LeaseDenied_WaitEnds) {
  etcd.refuse_next(method_lease_grant, {.code = 7, .message = "etcdserver: permission denied"});
  const auto attempt = contend(*backend);
  ASSERT_TRUE(attempt->failure);
  EXPECT_EQ(attempt->failure->code, errc::access_denied);
}

TEST_F(EtcdSessionTest, LeasesUnknown_AreRequestedWithPauses) {
  (void)contend(*backend, "first");
  engine.advance(4s);  // it is confirmed
  const int before = etcd.grants;
  int marks = 0;
  etcd.status = [&](std::string_view method) {
    if (method != method_transaction || ++marks % 2 == 0) return GrpcStatus{};
    return GrpcStatus{.code = 5, .message = "etcdserver: requested lease not found"};
  };
  const auto waiter = begin(*backend);
  for (int i = 0; i < 5000 && engine.run_one(); ++i) {
  }
  EXPECT_LT(etcd.grants - before, 50);
  etcd.status = nullptr;
  engine.advance(5s);
  EXPECT_TRUE(waiter->grant);
}

// Shows: renewal
// Hazard: a waiter with an expired lease waits on (etcd#19597): it queues again
TEST_F(EtcdSessionTest, Expired_HolderLosesAndWaiterQueuesAgainInTheNext) {
  const auto held = contend(*backend);
  const auto waiter = contend(*backend);
  etcd.expire_leases();
  engine.advance(4s);
  ASSERT_EQ(host.losses.size(), 1U);
  EXPECT_EQ(host.losses[0].owner, held->request.owner);
  ASSERT_TRUE(waiter->grant);
  EXPECT_GT(waiter->grant->token, held->grant->token);
  EXPECT_EQ(key_number(etcd.keys_below("dlock/a/").front()), 0U) << "its keys are numbered anew";
  (void)release(*backend, *waiter);
  EXPECT_EQ(etcd.keys.size(), 1U) << "the session's";
}

TEST_F(EtcdSessionTest, ConfirmedOneExpired_NextBeginsAtOnce) {
  (void)contend(*backend, "first");
  engine.advance(4s);
  etcd.expire_leases();
  engine.run();
  const auto attempt = begin(*backend);
  for (int i = 0; i < 1000 && engine.run_one(); ++i) {
  }
  EXPECT_TRUE(attempt->grant);
  EXPECT_EQ(etcd.grants, 2);
}

TEST_F(EtcdSessionTest, NoSession_WaiterIsToldWhy) {
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
  engine.advance(5s);
  // The process stood still, and does not know yet what became of its session.
  engine.manual_clock().advance(1min);
  EXPECT_TRUE(begin(*backend, "d")->unreachable_reports.empty()) << "that trouble is over";
}

TEST_F(EtcdSessionTest, ClientClosed_EndsItsSession) {
  bool closed = false;
  other->close([&closed] { closed = true; });
  EXPECT_TRUE(closed && etcd.dialled == 0) << "it was never begun";
  const auto held = contend(*backend);
  backend->close([] {});
  engine.run();
  EXPECT_TRUE(etcd.keys.empty() && etcd.leases.empty());
}

TEST_F(EtcdSessionTest, ConnectionMadeForAQuery_IsUsed) {
  backend->inspect(LockKind::lock, "a", [](const Result<LockInfo>&) {});
  engine.run();
  ASSERT_EQ(etcd.dialled, 1);
  EXPECT_EQ(etcd.grants, 0);
  EXPECT_TRUE(contend(*backend)->grant);
  EXPECT_EQ(etcd.dialled, 1);
}

}  // namespace
}  // namespace dlock::etcd
