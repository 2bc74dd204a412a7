// Connections that break and are set up again.
#include "redis/redis_test.hpp"

namespace dlock::test {

namespace {

RedisConfig with_user() {
  RedisConfig config;
  config.password = "administrator";
  config.user = RedisUser{};
  return config;
}

// With a password, so that every new connection has to authenticate again.
class ReconnectionTest : public RedisStrategyTest {
 protected:
  ReconnectionTest() : RedisStrategyTest(with_user()) {}

  // Ends connections from the server's side; how many.
  std::int64_t kill_connections(const std::vector<std::string>& filter) {
    std::vector<std::string> command = {"CLIENT", "KILL"};
    command.insert(command.end(), filter.begin(), filter.end());
    return server.command(command).integer;
  }
};

TEST_P(ReconnectionTest, AHolderAuthenticatesAgain) {
  const Client client = steady({}, strategy());
  DistributedLock lock = client.make_lock("held");
  Lease lease = take(lock);
  EXPECT_GE(kill_connections({"USER", "locker"}), 1);
  DistributedLock another = client.make_lock("another");
  EXPECT_TRUE(take(another).release());
  EXPECT_TRUE(lease.release());
}

TEST_P(ReconnectionTest, AWaiterMissesNothingWhileItsSubscriberIsAway) {
  const Client holding = steady({}, strategy());
  const Client waiting_client = disturbed({}, strategy());
  DistributedLock lock = holding.make_lock("waited-for");
  DistributedLock others = waiting_client.make_lock("waited-for");
  for (int i = 0; i < 5; ++i) {
    std::optional<Lease> lease = take(lock);
    Pending waiting(others, {});
    EXPECT_FALSE(others.try_acquire().has_value());
    (void)kill_connections({"TYPE", "pubsub"});
    lease.reset();
    EXPECT_TRUE(waiting.lease().release());
  }
}

TEST_P(ReconnectionTest, AWaiterWhoseSubscriberIsDeafStillGetsTheLock) {
  const Client holding = steady({}, strategy());
  const Client waiting_client = disturbed({.response_timeout = 500ms}, strategy());
  DistributedLock lock = holding.make_lock("waited-for");
  DistributedLock others = waiting_client.make_lock("waited-for");
  std::optional<Lease> lease = take(lock);
  Pending waiting(others, {});
  EXPECT_FALSE(others.try_acquire().has_value());
  // Half-open: the server believes to be heard on the connections after the first.
  for (std::size_t number = 1; number < proxy.counters().accepted; ++number) {
    proxy.set(number, rig::Direction::to_client, {.mode = rig::Traffic::Mode::swallow});
  }
  lease.reset();
  EXPECT_TRUE(waiting.lease().release());
}

class RefusedTest : public RedisTest {
 protected:
  RefusedTest() : RedisTest(with_user()) {}
  [[nodiscard]] std::size_t listeners() { return server.command({"PUBSUB", "CHANNELS", "dlock:w:*"}).elements.size(); }
  void set_password(const std::string& password) {
    ASSERT_EQ(server.command({"ACL", "SETUSER", RedisUser().name, "resetpass", ">" + password}).text, "OK");
  }
};

// As while passwords are being changed. The connection for commands stands meanwhile, so nobody asks for the other one.
TEST_F(RefusedTest, ASubscriberWhosePasswordWasRefusedForAWhileListensAgain) {
  const Client holding = steady();
  const Client waiting_client = steady();
  DistributedLock lock = holding.make_lock("waited-for");
  DistributedLock others = waiting_client.make_lock("waited-for");
  std::optional<Lease> lease = take(lock);
  Pending waiting(others, {});
  await("nobody listens", [&] { return listeners() == 1; });
  set_password("another");
  (void)server.command({"ACL", "LOG", "RESET"});
  (void)server.command({"CLIENT", "KILL", "TYPE", "pubsub"});
  await("the password is not refused", [&] { return !server.command({"ACL", "LOG"}).elements.empty(); });
  set_password(RedisUser().password);
  await("nobody listens again", [&] { return listeners() == 1; });
  lease.reset();
  EXPECT_TRUE(waiting.lease().release());
}

// In the queue. A release takes it for dead while it is away.
class CutWaiterTest : public RedisTest {};

TEST_F(CutWaiterTest, GetsItsPlaceBack) {
  const Client holding = steady();
  const Client cut = disturbed();
  DistributedLock lock = holding.make_lock("waited-for");
  DistributedLock theirs = cut.make_lock("waited-for");
  Lease lease = take(lock, {.lease = long_lease});
  Pending first(theirs, {.lease = long_lease});
  await_waiters("waited-for", 1);
  Pending second(lock, {.lease = long_lease});
  await_waiters("waited-for", 2);
  Pending third(lock, {.lease = long_lease});
  await_waiters("waited-for", 3);
  await("a waiter is not heard", [&] {
    return server.command({"ZCOUNT", keys("waited-for").alive, "-inf", "(0"}).integer == 0;
  });
  proxy.refuse(true);
  proxy.drop();
  await("the subscriber does not go", [&] {
    return server.command({"PUBSUB", "CHANNELS", "dlock:w:*"}).elements.size() == 1;
  });
  EXPECT_TRUE(lease.release());
  Lease next = second.lease();
  await_waiters("waited-for", 1);
  proxy.refuse(false);
  await_waiters("waited-for", 2);
  EXPECT_TRUE(next.release());
  const Lease given_back = first.lease();
  EXPECT_TRUE(given_back.held());
  EXPECT_FALSE(third.done());
}

INSTANTIATE_TEST_SUITE_P(, ReconnectionTest, all_strategies(), Room::strategy_name);

}  // namespace

}  // namespace dlock::test
