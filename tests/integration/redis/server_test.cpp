// States that a real server can be in, and what it may forget.
#include <functional>

#include "redis/redis_test.hpp"

namespace dlock::test {

namespace {

class ServerStateTest : public RedisTest {
 protected:
  void set(const std::string& option, const std::string& value) {
    (void)server.command({"CONFIG", "SET", option, value});
  }
};

TEST_F(ServerStateTest, OutOfMemory_RefusesAcquiresOnly) {
  const auto log = std::make_shared<EventLog>();
  const Client client = steady({.observer = log});
  Lease held = take(client, "held", {.lease = 6s});
  Lease lease = take(client, "another", {.lease = long_lease});
  set("maxmemory", "1");
  EXPECT_EQ(try_error(client), errc::unavailable);
  EXPECT_TRUE(lease.release());
  await_renewals(*log, 1);
  EXPECT_TRUE(held.release());
  set("maxmemory", "0");
  EXPECT_TRUE(take(client, "tried").release());
  for (const char* each : {"held", "another", "tried"}) await_no_residue(each);
}

// Shows: hole redis-eviction
// Hazard: H21 eviction: a warning
TEST_F(ServerStateTest, Eviction_IsWarnedOf) {
  for (const bool evicts : {false, true}) {
    if (evicts) {
      set("maxmemory-policy", "volatile-lru");
      set("maxmemory", "1gb");
    }
    const auto log = std::make_shared<EventLog>();
    const Client client = steady({.observer = log});
    EXPECT_TRUE(take(client, "evictable").release());
    if (evicts) log->warned.wait("eviction of locks is not warned of");
    EXPECT_TRUE(mentions(client.diagnose(), Finding::Severity::ok, ""));
    EXPECT_EQ(mentions(client.diagnose(), Finding::Severity::warning, evicts ? "volatile-lru" : "evict"), evicts);
    EXPECT_EQ(log->warnings_with("volatile-lru"), evicts ? 1U : 0U);
    EXPECT_EQ(log->warned.count(), evicts ? 1U : 0U);
  }
}

// Hazard: H15, H16 late answers: close the connection
TEST_F(ServerStateTest, Paused_GrantsLate) {
  const Client client = steady();
  (void)server.command({"CLIENT", "PAUSE", "300", "WRITE"});
  Lease lease = take(client, "paused", {.lease = 10s});
  EXPECT_TRUE(lease.held());
  EXPECT_TRUE(is_held_by(server, "paused", lease));
  EXPECT_TRUE(lease.release());
}

// Keys of other programs at the place of a lock.
TEST_F(ServerStateTest, KeyOfAnotherType_IsRefusedAndNotTouched) {
  const Client client = steady();
  (void)server.command({"SET", "dlock.rw:x", "data"});
  (void)server.command({"ZADD", "dlock.sem:x", "1", "data"});
  ReadWriteLock lock = client.make_read_write_lock("x");
  Semaphore semaphore = client.make_semaphore("x", 2);
  std::error_code error;
  EXPECT_FALSE(lock.acquire({.wait = 1min}, error).held());  // waiting does not help
  EXPECT_EQ(error, errc::protocol);
  EXPECT_FALSE(semaphore.acquire({.wait = 1min}, error).held());
  EXPECT_EQ(error, errc::protocol);
  EXPECT_TRUE(client.list(LockKind::semaphore).empty());
  EXPECT_THROW((void)client.inspect("x", LockKind::semaphore), Error);
  EXPECT_THROW((void)client.break_lock("x", LockKind::semaphore), Error);
  EXPECT_EQ(server.command({"GET", "dlock.rw:x"}).text, "data");
  EXPECT_EQ(server.command({"ZCARD", "dlock.sem:x"}).integer, 1);
}

// --- A server that comes back without its data -----------------------------------------------------------------------

class ForgetfulServerTest : public RedisStrategyTest {
 protected:
  void restart() {
    server.kill();
    server.start();
  }
};

// Shows: hole redis-no-persistence
// Hazard: H20 a restart without persistence: the loss signal
TEST_P(ForgetfulServerTest, RestartedWithoutData_HolderIsToldOfTheLoss) {
  const auto log = std::make_shared<EventLog>();
  const Client client = steady({.observer = log}, strategy());
  Lease lease = take(client, "held", {.lease = 6s});
  const LossEvent loss(lease);
  restart();
  loss.event().wait("the loss is not signalled");
  EXPECT_FALSE(lease.release());
  log->losses.wait("the observer is not told");
  EXPECT_EQ(value(server, "held"), "") << "a renewal must not bring a lock back";
}

// Shows: hole redis-no-persistence
TEST_P(ForgetfulServerTest, RestartedWithoutData_WaiterIsGrantedTheLock) {
  const Client holding = steady({.close_timeout = 100ms}, strategy());
  Contender waiting_client(steady({}, strategy()), "waited-for");
  const Lease lease = take(holding, "waited-for", {.lease = long_lease, .renew = false});
  Pending waiting(waiting_client.lock, {});
  EXPECT_FALSE(waiting_client.lock.try_acquire().has_value());
  restart();
  const Lease next = waiting.lease();
  EXPECT_GT(next.token(), lease.token());
  EXPECT_TRUE(is_held_by(server, "waited-for", next));
}

// Shows: growing-tokens, hole redis-no-persistence
// Hazard: H10, H12 clients' clocks, lost tokens: counter and `TIME`
TEST_P(ForgetfulServerTest, DataOrScriptsForgotten_TokensGrow) {
  Contender ours(steady({}, strategy()), "counted");
  FencingToken last = take(ours.lock).token();
  const std::pair<const char*, std::function<void()>> losses[] = {
      {"FLUSHALL", [&] { (void)server.command({"FLUSHALL"}); }},
      {"SCRIPT FLUSH",
       [&] {
         (void)server.command({"SCRIPT", "FLUSH"});
       }},
      {"kill -9", [&] { restart(); }},
      {"DEL",
       [&] {
         (void)server.command({"DEL", keys("counted").fence});
       }},
  };
  for (const auto& [name, happen] : losses) {
    happen();
    Lease lease = take(ours.lock);
    EXPECT_GT(lease.token(), last) << name;
    last = lease.token();
    (void)server.command({"SCRIPT", "FLUSH"});
    EXPECT_TRUE(lease.release()) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(, ForgetfulServerTest, all_strategies(), Room::strategy_name);

}  // namespace

}  // namespace dlock::test
