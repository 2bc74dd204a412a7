// A server that dies and comes back without its data.
#include "redis/redis_test.hpp"

namespace dlock::test {

namespace {

class ForgetfulServerTest : public RedisStrategyTest {};

TEST_P(ForgetfulServerTest, AHolderIsToldThatTheServerForgotTheLock) {
  const auto log = std::make_shared<EventLog>();
  const Client client = steady({.observer = log}, strategy());
  DistributedLock lock = client.make_lock("held");
  Lease lease = take(lock, {.lease = 6s});
  const LossEvent loss(lease);
  server.kill();
  server.start();
  loss.event().wait("the loss is not signalled");
  EXPECT_FALSE(lease.held());
  EXPECT_FALSE(lease.release());
  log->losses.wait("the observer is not told");
  EXPECT_EQ(value("held"), "") << "a renewal must not bring a lock back";
}

TEST_P(ForgetfulServerTest, AWaiterIsServedByTheServerThatForgotTheHolder) {
  const Client holding = steady({.close_timeout = 100ms}, strategy());
  const Client waiting_client = steady({}, strategy());
  DistributedLock lock = holding.make_lock("waited-for");
  DistributedLock others = waiting_client.make_lock("waited-for");
  const Lease lease = take(lock, {.lease = long_lease, .renew = false});
  Pending waiting(others, {});
  EXPECT_FALSE(others.try_acquire().has_value());
  server.kill();
  server.start();
  const Lease next = waiting.lease();
  EXPECT_GT(next.token(), lease.token());
  EXPECT_TRUE(is_held_by("waited-for", next));
}

TEST_P(ForgetfulServerTest, TokensGrowAcrossARestartAndFlushAll) {
  const Client client = steady({}, strategy());
  DistributedLock lock = client.make_lock("counted");
  FencingToken last = take(lock).token();
  const auto expect_growth = [&](const std::string& after) {
    const FencingToken token = take(lock).token();
    EXPECT_GT(token, last) << after;
    last = token;
  };
  (void)server.command({"FLUSHALL"});
  expect_growth("FLUSHALL");
  (void)server.command({"SCRIPT", "FLUSH"});
  expect_growth("SCRIPT FLUSH");
  server.kill();
  server.start();
  expect_growth("kill -9");
  (void)server.command({"DEL", keys("counted").fence});
  expect_growth("DEL");
}

TEST_P(ForgetfulServerTest, AScriptFlushIsNotNoticedByAnybody) {
  const Client client = steady({}, strategy());
  DistributedLock lock = client.make_lock("scripted");
  for (int i = 0; i < 5; ++i) {
    Lease lease = take(lock);
    (void)server.command({"SCRIPT", "FLUSH"});
    EXPECT_TRUE(lease.release());
    (void)server.command({"SCRIPT", "FLUSH"});
  }
}

INSTANTIATE_TEST_SUITE_P(, ForgetfulServerTest, all_strategies(), Room::strategy_name);

}  // namespace

}  // namespace dlock::test
