// Together with lockers in other languages, which use plain SET NX PX and compare-and-delete on the same key: by
// redis-py itself (python3-redis), and by their commands where these are to fail or to be out of the ordinary.
#include <future>
#include <string>
#include <vector>

#include "network/foreign_client.hpp"
#include "redis/redis_test.hpp"

namespace dlock::test {

namespace {

constexpr const char* redis_py_locks = R"py(
import redis
server = redis.Redis(port=int(address))
kinds = {"Lock": lambda path: server.lock(path, timeout=600, sleep=0.01)}

def nobody_else_is_at(node):
  if not server.set(node, "x", nx=True):
    return False
  server.delete(node)
  return True
)py";

class InteroperationTest : public RedisStrategyTest {
 protected:
  [[nodiscard]] Client client() const { return steady({}, strategy() + "&prefix="); }
  // SET name token NX PX ms; whether that took the lock.
  bool foreign_acquire(const std::string& name, const std::string& token, const std::string& ms) {
    return !foreign_.command({"SET", name, token, "NX", "PX", ms}).is_nil();
  }
  // What all of them use to release; 1 if it was theirs.
  std::int64_t foreign_release(const std::string& name, const std::string& token) {
    return foreign_
        .command({"EVAL",
                  "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0", "1",
                  name, token})
        .integer;
  }
  RedisReply foreign(const std::vector<std::string>& words) { return foreign_.command(words); }
  [[nodiscard]] ForeignClient::Command redis_py() const {
    return python(redis_py_locks, std::to_string(server.port()));
  }

 private:
  RedisConnection foreign_{rig::Endpoint::loopback(server.port())};
};

TEST_P(InteroperationTest, AForeignLockIsBusyUntilItIsReleased) {
  const Client client = this->client();
  DistributedLock lock = client.make_lock("shared");
  ASSERT_TRUE(foreign_acquire("shared", "foreign-token", "600000"));
  EXPECT_FALSE(lock.try_acquire().has_value());
  Pending waiting(lock, {});
  EXPECT_FALSE(lock.try_acquire().has_value());
  EXPECT_EQ(foreign({"GET", "shared"}).text, "foreign-token");
  EXPECT_EQ(foreign_release("shared", "foreign-token"), 1);
  EXPECT_TRUE(waiting.lease().held());
}

TEST_P(InteroperationTest, LocksOfRedisPyAndOursExcludeEachOther) {
  const Client client = this->client();
  DistributedLock lock = client.make_lock("shared");
  ForeignClient redis_py(this->redis_py());
  const ForeignLock theirs = redis_py.lock("Lock", "shared");
  ASSERT_EQ(theirs.ask("acquire"), "held");
  EXPECT_FALSE(lock.try_acquire().has_value());
  Pending waiting(lock, {});
  EXPECT_TRUE(client.inspect("shared").held);
  EXPECT_FALSE(waiting.done());
  EXPECT_EQ(theirs.ask("release"), "free");
  Lease lease = waiting.lease();
  EXPECT_EQ(theirs.ask("try"), "busy");
  const ForeignAnswer answer = theirs.begin("acquire");
  EXPECT_TRUE(lease.held());
  EXPECT_FALSE(answer.given());
  EXPECT_TRUE(lease.release());
  EXPECT_EQ(answer.get(), "held");
  EXPECT_EQ(theirs.ask("release"), "free");
}

// Whoever has the lock sets a key that nobody else may have set.
TEST_P(InteroperationTest, NoTwoAreEverInTheirCriticalSections) {
  constexpr int rounds = 25;
  const Client client = this->client();
  ForeignClient redis_py(this->redis_py());
  const std::string request = "rounds " + std::to_string(rounds) + " alone";
  const ForeignAnswer one = redis_py.lock("Lock", "shared").begin(request);
  const ForeignAnswer other = redis_py.lock("Lock", "shared").begin(request);
  std::future<int> ours = std::async(std::launch::async, [&] {
    DistributedLock lock = client.make_lock("shared");
    RedisConnection witness(rig::Endpoint::loopback(server.port()));
    int alone = 0;
    for (int round = 0; round < rounds; ++round) {
      const Lease lease = take(lock);
      if (witness.command({"SET", "alone", "x", "NX"}).is_nil()) continue;
      ++alone;
      (void)witness.command({"DEL", "alone"});
    }
    return alone;
  });
  EXPECT_EQ(ours.get(), rounds);
  EXPECT_EQ(one.get(), std::to_string(rounds) + " alone");
  EXPECT_EQ(other.get(), std::to_string(rounds) + " alone");
}

TEST_P(InteroperationTest, AForeignLockIsBusyUntilItExpires) {
  const Client client = this->client();
  DistributedLock lock = client.make_lock("shared");
  ASSERT_TRUE(foreign_acquire("shared", "foreign-token", "200"));
  Lease lease = take(lock);
  EXPECT_TRUE(lease.held());
  EXPECT_NE(foreign({"GET", "shared"}).text, "foreign-token");
}

TEST_P(InteroperationTest, OurLockIsBusyForOthers) {
  const Client client = this->client();
  DistributedLock lock = client.make_lock("shared");
  Lease lease = take(lock);
  EXPECT_FALSE(foreign_acquire("shared", "foreign-token", "600000"));
  EXPECT_EQ(foreign_release("shared", "foreign-token"), 0);
  EXPECT_TRUE(lease.held());
  EXPECT_NE(foreign({"GET", "shared"}).text.find(lease.owner().to_string()), std::string::npos);
  EXPECT_GT(foreign({"PTTL", "shared"}).integer, 0);
  EXPECT_TRUE(lease.release());
  EXPECT_TRUE(foreign_acquire("shared", "foreign-token", "600000"));
}

TEST_P(InteroperationTest, AForeignLockWithoutAnEndIsNeverStolen) {
  const Client client = this->client();
  DistributedLock lock = client.make_lock("eternal");
  ASSERT_EQ(foreign({"SET", "eternal", "foreign-token", "NX"}).text, "OK");
  EXPECT_FALSE(lock.try_acquire().has_value());
  Pending waiting(lock, {});
  EXPECT_FALSE(lock.try_acquire_for(700ms).has_value());
  EXPECT_EQ(foreign({"GET", "eternal"}).text, "foreign-token");
  EXPECT_EQ(foreign({"PTTL", "eternal"}).integer, -1);
  EXPECT_FALSE(waiting.done());
  EXPECT_EQ(foreign({"DEL", "eternal"}).integer, 1);
  EXPECT_TRUE(waiting.lease().held());
}

TEST_P(InteroperationTest, ALockThatSomebodyDeletedAndTookIsLost) {
  const auto log = std::make_shared<EventLog>();
  const Client client = steady({.observer = log}, strategy() + "&prefix=");
  DistributedLock lock = client.make_lock("shared");
  Lease lease = take(lock, {.lease = 1s});
  const LossEvent loss(lease);
  (void)foreign({"DEL", "shared"});
  ASSERT_TRUE(foreign_acquire("shared", "foreign-token", "600000"));
  loss.event().wait("the loss is not signalled");
  EXPECT_FALSE(lease.release());
  EXPECT_EQ(foreign({"GET", "shared"}).text, "foreign-token");
  EXPECT_GT(foreign({"PTTL", "shared"}).integer, 60000) << "a late renewal must not touch the next holder's lock";
}

TEST_P(InteroperationTest, BothSidesTakeTurnsAndNeverOverlap) {
  const Client client = this->client();
  DistributedLock lock = client.make_lock("shared");
  for (int i = 0; i < 20; ++i) {
    Lease lease = take(lock);
    EXPECT_FALSE(foreign_acquire("shared", "foreign-token", "600000"));
    EXPECT_TRUE(lease.release());
    ASSERT_TRUE(foreign_acquire("shared", "foreign-token", "600000"));
    EXPECT_FALSE(lock.try_acquire().has_value());
    EXPECT_EQ(foreign_release("shared", "foreign-token"), 1);
  }
}

TEST_P(InteroperationTest, AKeyOfAnotherTypeIsAnErrorAndIsNotTouched) {
  const Client client = this->client();
  DistributedLock lock = client.make_lock("hash");
  (void)foreign({"HSET", "hash", "uuid:1", "1"});
  std::error_code error;
  EXPECT_FALSE(lock.try_acquire({}, error).has_value());
  EXPECT_EQ(error, errc::protocol) << error.message();
  (void)lock.acquire({.wait = 1min}, error);  // waiting does not help
  EXPECT_EQ(error, errc::protocol) << error.message();
  EXPECT_EQ(foreign({"HGET", "hash", "uuid:1"}).text, "1");
}

TEST_P(InteroperationTest, TheCommandLineOfRedisSeesTheLock) {
  const Client client = this->client();
  DistributedLock lock = client.make_lock("seen by redis-cli");
  Lease lease = take(lock);
  const std::string port = std::to_string(server.port());
  const std::string seen = rig::run_command({"redis-cli", "-p", port, "GET", "seen by redis-cli"});
  EXPECT_NE(seen.find(lease.owner().to_string()), std::string::npos);
  EXPECT_EQ(rig::run_command({"redis-cli", "-p", port, "SET", "seen by redis-cli", "x", "NX", "PX", "1000"}), "\n");
}

INSTANTIATE_TEST_SUITE_P(, InteroperationTest, all_strategies(), Room::strategy_name);

}  // namespace

}  // namespace dlock::test
