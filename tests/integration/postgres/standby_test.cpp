// A primary with a streaming standby: locks are the primary's, and tokens grow across a promotion.
#include <gmock/gmock.h>

#include <string>

#include "postgres/postgres_test.hpp"

namespace dlock::test {

namespace {

class StandbyTest : public PostgresStrategyTest {
 protected:
  // The primary is `server`.
  PostgresServer standby{{.primary = &server}};

  // Returns why. It is asked again until the time of a try is over, and then a question may be open.
  static std::string refusal(DistributedLock& lock) {
    try {
      (void)lock.try_acquire();
      ADD_FAILURE() << "a standby keeps no locks";
      return {};
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == errc::unavailable || error.code() == errc::ambiguous) << error.what();
      return error.detail();
    }
  }
  // Whichever of them is the primary.
  [[nodiscard]] std::string either() const {
    return std::string("postgresql://") + PostgresServer::user + ":" + PostgresServer::password +
           "@127.0.0.1:" + std::to_string(server.port()) + ",127.0.0.1:" + std::to_string(standby.port()) + "/" +
           PostgresServer::database + "?" + strategy();
  }
};

TEST_P(StandbyTest, AStandbyAloneIsUnavailableAndSaysWhy) {
  const Client primary = steady(patient());
  DistributedLock lock = primary.make_lock("replicated");
  EXPECT_TRUE(take(lock).release());
  server.await_standby();
  for (const char* hosts : {"", "target_session_attrs=any"}) {
    const Client client = connect_patiently(standby.url(strategy(hosts)), {.response_timeout = 3s});
    DistributedLock others = client.make_lock("replicated");
    EXPECT_THAT(refusal(others), testing::HasSubstr("standby"));
  }
}

TEST_P(StandbyTest, AWaitAtAStandbyEndsWithItsPromotion) {
  const Client primary = steady(impatient());
  DistributedLock lock = primary.make_lock("replicated");
  const FencingToken before = take(lock).token();
  server.await_standby();
  const Client first = connect_patiently(standby.url(strategy()), impatient());
  const Client second = connect_patiently(standby.url(strategy("target_session_attrs=any")), impatient());
  DistributedLock one = first.make_lock("replicated");
  DistributedLock two = second.make_lock("replicated/too");
  Pending waiting(one, {});
  Pending waiting_too(two, {});
  (void)refusal(one);
  (void)refusal(two);
  EXPECT_FALSE(waiting.done());
  server.kill();
  standby.promote();
  EXPECT_GT(waiting.lease().token(), before);
  EXPECT_TRUE(waiting_too.lease().release());
}

TEST_P(StandbyTest, OfTwoServersThePrimaryIsFoundAgainAfterAPromotion) {
  const Client client = connect_patiently(either(), {.lease = 18s});
  DistributedLock lock = client.make_lock("replicated");
  Lease lease = take(lock);
  server.await_standby();
  const LossEvent loss(lease);
  server.kill();
  standby.promote();
  if (in_session()) {
    loss.event().wait("the loss is not signalled");
    std::error_code error;
    EXPECT_FALSE(lease.release(error));
  } else {
    // The row was replicated, and the lease is renewed at the new primary.
    await_renewal(lease);
    EXPECT_TRUE(lease.held());
    EXPECT_TRUE(lease.release());
  }
  EXPECT_GT(take(lock).token(), lease.token());
}

TEST_P(StandbyTest, TokensGrowWhereThePromotedServerHasNotHeardOfTheLastOnes) {
  const Client client = connect_patiently(either(), impatient(short_lease));
  DistributedLock lock = client.make_lock("replicated");
  EXPECT_TRUE(take(lock).release());
  server.await_standby();
  standby.stop();
  FencingToken last;
  for (int i = 0; i < 20; ++i) last = take(lock).token();
  server.kill();
  standby.start();
  standby.promote();
  EXPECT_GT(take(lock).token(), last);
}

INSTANTIATE_TEST_SUITE_P(, StandbyTest, testing::ValuesIn(tested()), strategy_name);

}  // namespace

}  // namespace dlock::test
