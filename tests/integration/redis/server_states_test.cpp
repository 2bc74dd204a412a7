// States that a real server can be in, and what they mean for those who lock.
#include "redis/redis_test.hpp"

namespace dlock::test {

namespace {

class ServerStateTest : public RedisTest {
 protected:
  void set(const std::string& option, const std::string& value) {
    (void)server.command({"CONFIG", "SET", option, value});
  }
};

TEST_F(ServerStateTest, WithoutMemoryNothingIsAcquiredButEverythingIsReleased) {
  const Client client = steady(impatient());
  DistributedLock lock = client.make_lock("held");
  DistributedLock another = client.make_lock("another");
  Lease lease = take(lock, {.lease = long_lease});
  set("maxmemory", "1");
  std::error_code error;
  EXPECT_FALSE(another.try_acquire({}, error).has_value());
  EXPECT_EQ(error, errc::unavailable) << error.message();
  EXPECT_TRUE(lease.release());
  set("maxmemory", "0");
  EXPECT_TRUE(take(another).release());
  await_no_residue("held");
  await_no_residue("another");
}

TEST_F(ServerStateTest, AHolderRenewsWithoutMemory) {
  const auto log = std::make_shared<EventLog>();
  const Client client = steady({.observer = log});
  DistributedLock lock = client.make_lock("held");
  Lease lease = take(lock, {.lease = 6s});
  set("maxmemory", "1");
  await_renewals(*log, 1);
  EXPECT_TRUE(lease.held());
  EXPECT_TRUE(lease.release());
}

TEST_F(ServerStateTest, EvictionIsWarnedOf) {
  set("maxmemory-policy", "volatile-lru");
  set("maxmemory", "1gb");
  const auto log = std::make_shared<EventLog>();
  const Client client = steady({.observer = log});
  DistributedLock lock = client.make_lock("evictable");
  EXPECT_TRUE(take(lock).release());
  log->warned.wait("eviction of locks is not warned of");
  EXPECT_EQ(log->warnings_with("volatile-lru"), 1U);
  EXPECT_TRUE(mentions(client.diagnose(), Finding::Severity::warning, "volatile-lru"));
}

TEST_F(ServerStateTest, AServerThatKeepsLocksIsNotWarnedOf) {
  const auto log = std::make_shared<EventLog>();
  const Client client = steady({.observer = log});
  DistributedLock lock = client.make_lock("safe");
  EXPECT_TRUE(take(lock).release());
  const auto findings = client.diagnose();
  EXPECT_FALSE(findings.empty());
  EXPECT_FALSE(mentions(findings, Finding::Severity::warning, "evict"));
  EXPECT_EQ(log->warned.count(), 0U);
}

TEST_F(ServerStateTest, ABusyScriptIsWaitedFor) {
  set("busy-reply-threshold", "1");
  const Client client = steady();
  DistributedLock lock = client.make_lock("patient");
  RedisConnection culprit = server.connect();
  culprit.send({"EVAL", "while true do end", "0"});
  // The server says that it is busy as soon as the script has run for the threshold.
  RedisConnection witness = server.connect();
  while (!witness.command({"PING"}).is_error()) {
  }
  std::error_code error;
  EXPECT_FALSE(lock.try_acquire({}, error).has_value());
  EXPECT_EQ(error, errc::unavailable) << error.message();
  Pending waiting(lock, {});
  EXPECT_EQ(witness.command({"SCRIPT", "KILL"}).text, "OK");
  EXPECT_TRUE(waiting.lease().release());
}

TEST_F(ServerStateTest, APausedServerGrantsLate) {
  const Client client = steady();
  DistributedLock lock = client.make_lock("paused");
  (void)server.command({"CLIENT", "PAUSE", "300", "WRITE"});
  Lease lease = take(lock, {.lease = 10s});
  EXPECT_TRUE(lease.held());
  EXPECT_TRUE(is_held_by("paused", lease));
  EXPECT_TRUE(lease.release());
}

TEST_F(ServerStateTest, ADeletedLockIsLostAtTheNextRenewal) {
  const Client client = steady();
  DistributedLock lock = client.make_lock("deleted");
  Lease lease = take(lock, {.lease = 1s});
  const LossEvent loss(lease);
  (void)server.command({"DEL", keys("deleted").lock});
  loss.event().wait("the loss is not signalled");
  EXPECT_FALSE(lease.held());
  EXPECT_EQ(value("deleted"), "") << "a renewal must not bring a lock back";
}

TEST_F(ServerStateTest, WaitersCostOneSubscriptionAProcess) {
  const Client holding = steady();
  const Client client = steady();
  std::vector<DistributedLock> locks;
  std::vector<Lease> leases;
  std::vector<DistributedLock> waited_for;
  std::vector<Pending> waiting;
  for (int i = 0; i < 50; ++i) {
    const std::string name = "many/" + std::to_string(i);
    locks.push_back(holding.make_lock(name));
    leases.push_back(take(locks.back()));
    waited_for.push_back(client.make_lock(name));
    waiting.emplace_back(waited_for.back(), AcquireOptions{});
  }
  for (int i = 0; i < 50; ++i) await_waiters("many/" + std::to_string(i), 1);
  EXPECT_LE(server.command({"PUBSUB", "CHANNELS"}).elements.size(), 2U);
  EXPECT_LE(std::stoi(server.info("clients", "connected_clients")), 2 + 2 + 1);
  leases.clear();
  for (Pending& each : waiting) EXPECT_TRUE(each.lease().held());
}

TEST_F(ServerStateTest, NothingIsSentThatBlocksTheConnectionOrWalksAllKeys) {
  {
    const Client client = steady();
    const Client other_client = steady();
    DistributedLock lock = client.make_lock("watched");
    DistributedLock others = other_client.make_lock("watched");
    std::optional<Lease> lease = take(lock);
    Pending waiting(others, {});
    await_waiters("watched", 1);
    lease.reset();
    EXPECT_TRUE(waiting.lease().release());
    (void)client.list();
    (void)client.inspect("watched");
    (void)client.diagnose();
  }
  const std::string stats = server.command({"INFO", "commandstats"}).text;
  for (const char* command : {"keys", "blpop", "flushall", "flushdb", "setnx"}) {
    EXPECT_EQ(stats.find("cmdstat_" + std::string(command) + ":"), std::string::npos) << command;
  }
}

}  // namespace

}  // namespace dlock::test
