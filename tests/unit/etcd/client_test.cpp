// Calls over connections that break, members that refuse, and logins that are forgotten.
#include "backends/etcd/connection/client.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "client_fixture.hpp"

namespace dlock::etcd {
namespace {

using namespace std::chrono_literals;

class EtcdClientTest : public EtcdClientFixture {};

class EtcdLoginTest : public EtcdClientFixture {
 protected:
  EtcdLoginTest() : EtcdClientFixture("etcd://u:p@a,b,c") {}
  void forget_the_token(int times) {
    etcd.status = [left = times](std::string_view method) mutable {
      if (method != method_transaction || left-- <= 0) return GrpcStatus{};
      return GrpcStatus{.code = 16, .message = "etcdserver: invalid auth token"};
    };
  }
};

// --- Answers ---------------------------------------------------------------------------------------------------------

TEST_F(EtcdClientTest, ACallConnectsAndIsAnsweredOnce) {
  const auto outcome = call();
  EXPECT_EQ(outcome->told, 0);
  engine.advance(10s);
  EXPECT_EQ(outcome->told, 1);
  EXPECT_FALSE(outcome->failure.code);
}

TEST_F(EtcdClientTest, WhatWasSentWhenAConnectionBreaksIsAmbiguousAndWhatWasNotIsSentLater) {
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

TEST_F(EtcdClientTest, WhatWasNotSentFailsOnceAllMembersWereTried) {
  etcd.refuses = true;
  const auto outcome = call();
  engine.run();
  EXPECT_EQ(outcome->failure.code, errc::unavailable);
  EXPECT_EQ(etcd.dialled, 3);
  EXPECT_EQ(downs.size(), 1U);
}

TEST_F(EtcdClientTest, AMemberThatDoesNotAnswerIsLeft) {
  connect();
  etcd.silent = true;
  const auto outcome = call();
  engine.advance(2s);
  EXPECT_EQ(outcome->failure.code, errc::ambiguous);
  EXPECT_EQ(downs.size(), 1U);
}

TEST_F(EtcdClientTest, AMemberThatCannotServeIsLeftAndTheCallMayHaveHadAnEffect) {
  connect();
  etcd.status = [](std::string_view) { return GrpcStatus{.code = 14, .message = "etcdserver: request timed out"}; };
  const auto outcome = call();
  engine.run();
  EXPECT_EQ(outcome->failure.code, errc::ambiguous);
  EXPECT_EQ(downs.size(), 1U);
  etcd.status = nullptr;
  engine.advance(1s);
  EXPECT_EQ(times_ready, 2);
}

TEST_F(EtcdClientTest, NothingIsToldOnceItIsStopped) {
  connect();
  const auto sent = call();
  client->stop();
  engine.advance(1min);
  EXPECT_EQ(sent->told, 0);
  EXPECT_TRUE(downs.empty());
}

// --- Members ---------------------------------------------------------------------------------------------------------

TEST_F(EtcdClientTest, MembersThatRefuseForGoodAreTriedAgainWhenTheyAreWanted) {
  etcd.refuses_at = [](const common::Host&) { return Failure{errc::protocol, "the server speaks HTTP/1.1"}; };
  client->want();
  engine.advance(1min);
  EXPECT_EQ(etcd.dialled, 1);
  const auto outcome = call();
  engine.run();
  EXPECT_EQ(etcd.dialled, 2);
  EXPECT_EQ(outcome->failure.code, errc::protocol);
}

TEST_F(EtcdClientTest, AClusterThatIsDownIsNotDialledWithoutAPause) {
  etcd.refuses = true;
  client->want();
  engine.advance(1min);
  EXPECT_GT(etcd.dialled, 3 * 50);
  EXPECT_LT(etcd.dialled, 3 * 140);
}

TEST_F(EtcdClientTest, MembersThatServeNothingAreNotConnectedToWithoutAPause) {
  etcd.status = [](std::string_view) { return GrpcStatus{.code = 14, .message = "etcdserver: no leader"}; };
  when_ready = [this] { (void)call(); };
  client->want();
  engine.advance(1min);
  EXPECT_GT(etcd.dialled, 50);
  EXPECT_LT(etcd.dialled, 140);
}

// --- Logins ----------------------------------------------------------------------------------------------------------

TEST_F(EtcdLoginTest, ATokenThatIsForgottenIsRenewedAndTheCallRepeatedWithoutNews) {
  connect();
  forget_the_token(1);
  const auto outcome = call();
  engine.run();
  EXPECT_EQ(outcome->told, 1);
  EXPECT_FALSE(outcome->failure.code);
  EXPECT_EQ(etcd.users.size(), 2U);
  EXPECT_EQ(times_ready, 1);
  engine.advance(10s);
  EXPECT_TRUE(downs.empty());
}

TEST_F(EtcdLoginTest, ACallIsRepeatedOnlyOnce) {
  connect();
  forget_the_token(2);
  const auto outcome = call();
  engine.run();
  EXPECT_EQ(outcome->failure.code, errc::access_denied);
  EXPECT_EQ(etcd.users.size(), 2U);
}

TEST_F(EtcdLoginTest, ManyCallsWithAForgottenTokenLogInOnce) {
  connect();
  forget_the_token(10);
  std::vector<std::shared_ptr<Outcome>> all;
  for (int i = 0; i < 10; ++i) all.push_back(call());
  engine.run();
  for (const auto& each : all) EXPECT_FALSE(each->failure.code) << each->failure.detail;
  EXPECT_EQ(etcd.users.size(), 2U);
}

TEST_F(EtcdLoginTest, AMemberThatDoesNotAnswerALoginThatIsRepeatedIsLeft) {
  connect();
  forget_the_token(1);
  etcd.fate = [](std::string_view method) { return method == method_authenticate ? Fate::lost : Fate::answered; };
  const auto outcome = call();
  engine.advance(2s);
  EXPECT_EQ(downs.size(), 1U);
  EXPECT_EQ(outcome->failure.code, errc::unavailable);
  etcd.fate = nullptr;
  engine.advance(5s);
  EXPECT_TRUE(client->ready());
}

TEST_F(EtcdLoginTest, WhatWaitsForALoginThatNoMemberCanAnswerIsNotInDoubt) {
  etcd.status = [](std::string_view) { return GrpcStatus{.code = 14, .message = "etcdserver: request timed out"}; };
  const auto outcome = call();
  engine.run();
  EXPECT_EQ(outcome->told, 1);
  EXPECT_EQ(outcome->failure.code, errc::unavailable);
}

TEST_F(EtcdLoginTest, AMemberThatDoesNotAnswerTheFirstLoginIsLeft) {
  etcd.fate = [](std::string_view) { return Fate::lost; };
  client->want();
  engine.advance(3s);
  EXPECT_EQ(etcd.dialled, 3);
  EXPECT_EQ(downs.size(), 1U);
}

// --- Handlers that end it --------------------------------------------------------------------------------------------

TEST_F(EtcdClientTest, MayBeDestroyedByWhoeverIsTold) {
  const auto end = [this](const Result<std::string>&, TimePoint) { client.reset(); };
  const auto ask = [&](TimePoint by) { (void)client->call(method_transaction, Transaction().request(), by, end); };
  const auto anew = [&] {
    engine.run();
    EXPECT_FALSE(client);
    etcd.refuses = etcd.silent = false;
    etcd.fate = nullptr;
    client = std::make_unique<Client>(engine, options, etcd.members(), *this);
  };
  ask(client->answer_by());  // by an answer
  anew();
  ask(client->answer_by());
  etcd.refuses = true;  // because all members refuse
  anew();
  connect();
  etcd.silent = true;
  for (int i = 0; i < 3; ++i) ask(client->answer_by());
  engine.run();
  etcd.break_connections();  // because it broke
  anew();
  connect();
  etcd.silent = true;
  ask(engine.now() + 1s);
  engine.advance(1s);  // because it is late
  anew();
  connect();
  when_down = [this] { client.reset(); };
  etcd.break_connections();
  anew();
  when_ready = [this] { client.reset(); };
  client->want();
  engine.run();
  EXPECT_FALSE(client);
}

}  // namespace
}  // namespace dlock::etcd
