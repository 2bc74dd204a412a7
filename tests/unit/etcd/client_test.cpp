// Calls over connections that break, members that refuse, and logins that are forgotten.
#include "backends/etcd/connection/client.hpp"

#include <algorithm>

#include "fixtures.hpp"

namespace dlock::etcd {
namespace {

using namespace std::chrono_literals;

class EtcdClientTest : public EtcdClientFixture {};

class EtcdLoginTest : public EtcdClientFixture {
 protected:
  EtcdLoginTest() : EtcdClientFixture("etcd://u:p@a,b,c") {}
  void forget_the_token(int times) {
    etcd.refuse_next(method_transaction, {.code = 16, .message = "etcdserver: invalid auth token"}, times);
  }
};

TEST_F(EtcdClientTest, ConnectionBreaks_SentCallsAreAmbiguousOthersSentLater) {
  connect();
  etcd.silent = true;
  const auto sent = call();
  engine.run();
  etcd.silent = false;
  etcd.break_connections();
  EXPECT_EQ(sent->failure.code, errc::ambiguous);
  const auto unsent = call();
  engine.advance(1s);
  EXPECT_EQ(unsent->told, 1);
  EXPECT_FALSE(unsent->failure.code);
  EXPECT_EQ(sent->told, 1);
}

TEST_F(EtcdClientTest, ClusterWithoutALeader_IsDialledWithPauses) {
  etcd.status = [](std::string_view) { return GrpcStatus{.code = 14, .message = "etcdserver: no leader"}; };
  when_ready = [this] { (void)call(); };
  client->want();
  engine.advance(1min);
  EXPECT_GT(etcd.dialled, 50);
  EXPECT_LT(etcd.dialled, 140);
}

TEST_F(EtcdClientTest, MemberOfAnotherCluster_IsLeftAndNotBelieved) {
  connect();
  EXPECT_FALSE(result().code);
  etcd.break_connections();
  etcd.cluster = 2;
  client->want();
  while (!client->ready()) engine.advance(10ms);
  const auto misled = call();
  while (misled->told == 0) engine.run_one();
  etcd.cluster = 1;
  EXPECT_EQ(misled->failure.code, errc::unavailable);
  engine.advance(1s);
  ASSERT_EQ(downs.size(), 2U);
  EXPECT_NE(downs.back().detail.find("different cluster"), std::string::npos) << downs.back().detail;
  EXPECT_FALSE(result().code);
  EXPECT_EQ(cluster_changes, 0);
}

// Shows: hole etcd-restore
// Hazard: revisions of a restored cluster go back: a warning
TEST_F(EtcdClientTest, RevisionsGoBack_IsWarnedOf) {
  connect();
  for (int i = 0; i < 3; ++i) client->call(Transaction().put("k", "", 0), client->answer_by(), [](const auto&) {});
  engine.run();
  EXPECT_EQ(cluster_changes, 0);
  etcd.restore(2);
  client->call(method_lease_keep_alive, lease_request(1), client->answer_by(), {});
  engine.run();
  EXPECT_EQ(cluster_changes, 0) << "a member that is behind answers keep-alives";
  (void)call();
  (void)call();
  engine.run();
  EXPECT_EQ(cluster_changes, 1);
}

TEST_F(EtcdClientTest, LeaseUnknown_IsLostOnlyOnceTheClusterIsVerified) {
  connect();
  for (const errc expected : {errc::unavailable, errc::lost}) {
    etcd.refuse_next(method_transaction, {.code = 5, .message = "etcdserver: requested lease not found"});
    EXPECT_EQ(result().code, expected);
    EXPECT_FALSE(result().code);
  }
}

class EtcdNarrowTest : public EtcdClientTest {
 protected:
  EtcdNarrowTest() { etcd.most_calls = 1; }
  void SetUp() override {
    connect();
    etcd.treat_next(method_transaction, Fate::held, 100);
  }
};

TEST_F(EtcdNarrowTest, Calls_WaitForTheirTurnBehindThoseOfTheSession) {
  std::vector<std::shared_ptr<Outcome>> all;
  for (int i = 0; i < 3; ++i) all.push_back(call());
  engine.run();
  EXPECT_EQ(etcd.transactions, 1);
  client->call(method_lease_keep_alive, lease_request(1), client->answer_by(), {}, Client::Turn::first);
  engine.run();
  EXPECT_EQ(etcd.transactions, 1);
  EXPECT_EQ(etcd.keep_alives, 1);
  for (int i = 1; i <= 3; ++i) {
    etcd.answer_held();
    engine.run();
    EXPECT_EQ(all[static_cast<std::size_t>(i) - 1]->told, 1);
    EXPECT_EQ(etcd.transactions, std::min(i + 1, 3));
  }
  EXPECT_TRUE(downs.empty());
}

// Shows: deadlines
TEST_F(EtcdNarrowTest, CallWithoutATurnInTime_IsUnavailableAndNamesTheLimit) {
  (void)call();
  Failure why;
  client->call(Transaction().read({.range = {"k"}}), engine.now() + 1s,
               [&why](const auto& answer) { why = answer.failure(); });
  engine.advance(1s);
  EXPECT_EQ(why.code, errc::unavailable);
  EXPECT_NE(why.detail.find("allows 1 concurrent streams (SETTINGS_MAX_CONCURRENT_STREAMS)"), std::string::npos)
      << why.detail;
}

TEST_F(EtcdClientTest, CallNotCarriedOut_IsSentAgainOnce) {
  connect();
  const GrpcStatus refused{.code = 14, .message = "a call was aborted: REFUSED_STREAM", .not_carried_out = true};
  for (const int refusals : {1, 2}) {
    etcd.refuse_next(method_transaction, refused, refusals);
    EXPECT_EQ(result().code, refusals == 1 ? std::error_code() : errc::unavailable);
    EXPECT_EQ(downs.size(), refusals == 1 ? 0U : 1U);
  }
}

TEST_F(EtcdClientTest, MemberCloses_AnswersItsCallsAndIsLeft) {
  connect();
  etcd.treat_next(method_transaction, Fate::held, 100);
  const auto taken = call();
  engine.run();
  etcd.fate = nullptr;
  etcd.leave();
  const auto next = call();
  engine.advance(1s);
  EXPECT_EQ(taken->told + next->told, 0);
  etcd.answer_held();
  engine.advance(1s);
  EXPECT_FALSE(taken->failure.code);
  EXPECT_FALSE(next->failure.code);
  EXPECT_EQ(next->told, 1);
  EXPECT_EQ(etcd.dialled, 2);
}

TEST_F(EtcdClientTest, LastingConnectionClosedInOrder_IsNotReported) {
  connect();
  engine.advance(5s);
  etcd.close_connections();
  engine.advance(100ms);
  EXPECT_TRUE(client->ready());
  EXPECT_TRUE(downs.empty());
  etcd.close_connections();
  EXPECT_EQ(downs.size(), 1U) << "it had only begun";
  engine.advance(5s);
  etcd.refuses = true;
  etcd.close_connections();
  EXPECT_EQ(downs.size(), 1U);
  engine.advance(100ms);
  ASSERT_GE(downs.size(), 2U) << "no connection follows";
  EXPECT_NE(downs[1].detail.find("refused"), std::string::npos);
}

TEST_F(EtcdClientTest, IdleConnectionsClosed_RequestsKeepTheNextBusy) {
  connect();
  for (int i = 0; i < 2; ++i) {
    engine.advance(5s);
    etcd.close_connections();
    engine.advance(20ms);
  }
  EXPECT_EQ(etcd.transactions, 0);
  engine.advance(31s);
  EXPECT_EQ(etcd.transactions, 8) << "one in three quarters of five seconds";
  etcd.close_connections();
  engine.advance(4s);
  EXPECT_EQ(etcd.transactions, 9);
}

TEST_F(EtcdClientTest, ConnectionsClosedAtRandom_AreNotKeptBusy) {
  connect();
  for (const auto idle : {3s, 9s, 5s, 20s}) {
    engine.advance(idle);
    etcd.close_connections();
    engine.advance(20ms);
  }
  engine.advance(30s);
  EXPECT_EQ(etcd.transactions, 0);
}

// Hazard: a member forgets a login: one more login, one more try
TEST_F(EtcdLoginTest, TokenForgotten_OneLoginServesAllCallsAndIsNotReported) {
  connect();
  forget_the_token(10);
  std::vector<std::shared_ptr<Outcome>> all;
  for (int i = 0; i < 10; ++i) all.push_back(call());
  engine.run();
  for (const auto& each : all) EXPECT_TRUE(each->told == 1 && !each->failure.code) << each->failure.detail;
  EXPECT_EQ(etcd.users.size(), 2U);
  forget_the_token(2);
  EXPECT_EQ(result().code, errc::access_denied) << "a call is repeated once";
  EXPECT_EQ(etcd.users.size(), 3U);
  engine.advance(10s);
  EXPECT_EQ(times_ready, 1);
  EXPECT_TRUE(downs.empty());
}

// It would carry no token.
TEST_F(EtcdLoginTest, LoginRepeated_NoStreamIsOpenedBefore) {
  struct Ignored final : Client::Stream {
    void stream_message(std::string_view) override {}
    void stream_ended(const GrpcStatus&) override {}
  } stream;
  connect();
  etcd.treat_next(method_authenticate, Fate::held);
  client->login_again();
  engine.run();
  EXPECT_EQ(client->open_stream(method_watch, stream), 0);
  EXPECT_EQ(logins_repeated, 0);
  etcd.answer_held();
  engine.run();
  EXPECT_EQ(logins_repeated, 1);
  EXPECT_NE(client->open_stream(method_watch, stream), 0);
  ASSERT_EQ(etcd.stream_metadata.size(), 1U);
  EXPECT_EQ(etcd.stream_metadata.front().back().first, "token");
}

}  // namespace
}  // namespace dlock::etcd
