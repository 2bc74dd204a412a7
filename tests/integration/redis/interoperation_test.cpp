// Together with lockers in other languages, which use plain SET NX PX and compare-and-delete on the same key: by
// redis-py itself (python3-redis), and by their commands where these are to fail or to be out of the ordinary.
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
  [[nodiscard]] Client client(ClientOptions options = {}) const {
    return steady(std::move(options), strategy() + "&prefix=");
  }
  // Whether that took the lock.
  bool foreign_acquire(const std::string& ms) {
    return !foreign({"SET", "shared", "foreign-token", "NX", "PX", ms}).is_nil();
  }
  RedisReply foreign(const std::vector<std::string>& words) { return foreign_.command(words); }
  [[nodiscard]] ForeignClient::Command redis_py() const {
    return python(redis_py_locks, std::to_string(server.port()));
  }

 private:
  RedisConnection foreign_{rig::Endpoint::loopback(server.port())};
};

// Shows: hole redis-foreign-locks
// Hazard: H31 another program's data: a prefix
TEST_P(InteroperationTest, LocksOfRedisPyAndOurs_ExcludeEachOther) {
  Contender ours(this->client(), "shared");
  ForeignClient redis_py(this->redis_py());
  const ForeignLock theirs = redis_py.lock("Lock", "shared");
  ASSERT_EQ(theirs.ask("acquire"), "held");
  EXPECT_FALSE(ours.lock.try_acquire().has_value());
  Pending waiting(ours.lock, {});
  EXPECT_TRUE(ours.client.inspect("shared").held);
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

// The holder sets a key that no other holder may have set.
TEST_P(InteroperationTest, ContendersOfBothSides_AreAloneInTheirCriticalSections) {
  constexpr int rounds = 25;
  const Client client = this->client();
  ForeignClient redis_py(this->redis_py());
  const std::string request = "rounds " + std::to_string(rounds) + " alone";
  const ForeignAnswer one = redis_py.lock("Lock", "shared").begin(request);
  const ForeignAnswer other = redis_py.lock("Lock", "shared").begin(request);
  RedisConnection witness(rig::Endpoint::loopback(server.port()));
  int alone = 0;
  for (int round = 0; round < rounds; ++round) {
    const Lease lease = take(client, "shared");
    if (witness.command({"SET", "alone", "x", "NX"}).is_nil()) continue;
    ++alone;
    (void)witness.command({"DEL", "alone"});
  }
  EXPECT_EQ(alone, rounds);
  EXPECT_EQ(one.get(), std::to_string(rounds) + " alone");
  EXPECT_EQ(other.get(), std::to_string(rounds) + " alone");
}

// Shows: hole redis-foreign-locks
TEST_P(InteroperationTest, ForeignLockWithoutAnEnd_IsNeverStolen) {
  Contender own(this->client(), "shared");
  ASSERT_EQ(foreign({"SET", "shared", "foreign-token", "NX"}).text, "OK");
  Pending waiting(own.lock, {});
  EXPECT_FALSE(own.lock.try_acquire_for(700ms).has_value());
  EXPECT_EQ(foreign({"GET", "shared"}).text, "foreign-token");
  EXPECT_EQ(foreign({"PTTL", "shared"}).integer, -1);
  EXPECT_FALSE(waiting.done());
  EXPECT_EQ(foreign({"DEL", "shared"}).integer, 1);
  EXPECT_TRUE(waiting.lease().held());
}

// Shows: loss-signal, hole broken-by-hand
TEST_P(InteroperationTest, LockDeletedAndTakenByAnother_IsLost) {
  const Client client = this->client();
  Lease lease = take(client, "shared", {.lease = 1s});
  const LossEvent loss(lease);
  const std::string seen = rig::run_command({"redis-cli", "-p", std::to_string(server.port()), "GET", "shared"});
  EXPECT_NE(seen.find(lease.owner().to_string()), std::string::npos);
  (void)foreign({"DEL", "shared"});
  ASSERT_TRUE(foreign_acquire("600000"));
  loss.event().wait("the loss is not signalled");
  EXPECT_FALSE(lease.release());
  EXPECT_EQ(foreign({"GET", "shared"}).text, "foreign-token");
  EXPECT_GT(foreign({"PTTL", "shared"}).integer, 60000) << "a late renewal must not touch the next holder's lock";
}

INSTANTIATE_TEST_SUITE_P(, InteroperationTest, all_strategies(), Room::strategy_name);

}  // namespace

}  // namespace dlock::test
