// The session of a client: what keeps it, what does not count, and what it goes on from.
#include "backends/etcd/connection/session.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "backend_fixture.hpp"

namespace dlock::etcd {
namespace {

using namespace std::chrono_literals;

class EtcdSessionTest : public EtcdFixture {};

// A member that is not one of etcd's at all does not cost what the others would keep.
TEST_F(EtcdSessionTest, IsKeptThoughOneMemberRefusesForGood) {
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

// Retrying there until the session ends would lose what the other members would keep.
TEST_F(EtcdSessionTest, AMemberWhoseAnswersCannotBeReadIsLeft) {
  const auto held = contend(*backend);
  const auto waiter = contend(*backend);
  const int before = etcd.dialled;
  etcd.answer_to_keep_alives = "\xff";
  for (int i = 0; i < 100 && etcd.dialled == before; ++i) engine.advance(100ms);
  EXPECT_GT(etcd.dialled, before);
  etcd.answer_to_keep_alives.reset();
  engine.advance(20s);
  EXPECT_TRUE(host.losses.empty());
  (void)release(*backend, *held);
  EXPECT_TRUE(waiter->grant) << "the wait goes on with the next member";
}

TEST_F(EtcdSessionTest, StreamsThatMembersEndDoNotMakeItConnectWithoutAPause) {
  const auto held = contend(*backend);
  const auto waiter = contend(*backend);
  const int before = etcd.dialled;
  etcd.end_of_stream = [](std::string_view method) -> std::optional<GrpcStatus> {
    if (method != method_watch) return std::nullopt;
    return GrpcStatus{.code = 14, .message = "upstream connect error"};
  };
  etcd.break_connections();
  engine.advance(20s);
  EXPECT_LT(etcd.dialled - before, 60);
  EXPECT_TRUE(host.losses.empty());
  etcd.end_of_stream = nullptr;
  (void)release(*backend, *held);
  engine.advance(2s);
  EXPECT_TRUE(waiter->grant);
}

TEST_F(EtcdSessionTest, LeasesThatAreNotKnownAreNotAskedForWithoutAPause) {
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

TEST_F(EtcdSessionTest, IsBegunOnAConnectionThatWasMadeForAQuestion) {
  backend->inspect(LockKind::lock, "a", [](const Result<LockInfo>&) {});
  engine.run();
  ASSERT_EQ(etcd.dialled, 1);
  EXPECT_EQ(etcd.grants, 0);
  EXPECT_TRUE(contend(*backend)->grant);
  EXPECT_EQ(etcd.dialled, 1);
}

TEST_F(EtcdSessionTest, WithoutTheRightToALeaseAWaitEnds) {
  etcd.refuse_next(method_lease_grant, {.code = 7, .message = "etcdserver: permission denied"});
  const auto attempt = contend(*backend);
  ASSERT_TRUE(attempt->failure);
  EXPECT_EQ(attempt->failure->code, errc::access_denied);
}

TEST_F(EtcdSessionTest, ALeaseThatAMemberCannotGrantIsNotInDoubtAndAskedForAgain) {
  etcd.refuse_next(method_lease_grant, {.code = 14, .message = "etcdserver: request timed out"});
  const auto attempt = contend(*backend);
  ASSERT_FALSE(attempt->unreachable_reports.empty());
  for (const Failure& why : attempt->unreachable_reports) EXPECT_EQ(why.code, errc::unavailable) << why.detail;
  engine.advance(1s);
  EXPECT_TRUE(attempt->grant);
}

// A process that is stopped between the two requests finds that.
TEST_F(EtcdSessionTest, ALeaseThatExpiresBeforeTheKeyOfTheSessionIsMadeIsReplaced) {
  etcd.fate = [this, expired = false](std::string_view method) mutable {
    if (method == method_transaction && !std::exchange(expired, true)) etcd.expire_leases();
    return Fate::answered;
  };
  const auto attempt = contend(*backend);
  engine.advance(1s);
  EXPECT_FALSE(attempt->failure);
  EXPECT_TRUE(attempt->grant);
}

TEST_F(EtcdSessionTest, AfterOneThatWasConfirmedTheNextOneIsBegunAtOnce) {
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

TEST_F(EtcdSessionTest, ThatWasNeverBegunEndsWithoutAConnection) {
  bool closed = false;
  backend->close([&closed] { closed = true; });
  EXPECT_TRUE(closed);
  EXPECT_EQ(etcd.dialled, 0);
}

TEST_F(EtcdSessionTest, IsNotKeptAliveWhereItStandsOnlyAfterTheClientEnded) {
  etcd.treat_next(method_transaction, Fate::held);
  const auto attempt = contend(*backend);
  ASSERT_EQ(etcd.grants, 1);
  backend->close([] {});
  etcd.answer_held();
  engine.advance(10s);
  EXPECT_EQ(etcd.keep_alives, 0);
  EXPECT_FALSE(attempt->grant);
}

}  // namespace
}  // namespace dlock::etcd
