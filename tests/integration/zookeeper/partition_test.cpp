// The network between us and the servers is gone for longer than the session timeout; hosts that accept connections and
// never answer.
#include <vector>

#include "torture/rig/socket.hpp"
#include "zookeeper/zookeeper_test.hpp"

namespace dlock::test {

namespace {

class PartitionTest : public ZooKeeperStrategyTest {};

TEST_P(PartitionTest, SessionLost_WaiterGetsTheLockInTheNext) {
  Contender ours(disturbed({}, short_session), "partition");
  Contender other_client(steady(), "partition");
  std::optional<Lease> lease = take(other_client.lock);
  Pending waiting(ours.lock, {});
  if (queued()) await_residue("partition", 2);
  cut();
  await_residue("partition", 1);
  heal();
  lease.reset();
  Lease granted = waiting.lease();
  EXPECT_TRUE(granted.held());
  EXPECT_TRUE(granted.release());
  await_no_residue("partition");
}

// By the client's own clock the outage lasts an hour, and afterwards hardly any time passes: the lock is valid from its
// first moment, not only when heartbeats have been answered for a quarter of the session timeout.
TEST_P(PartitionTest, LongOutage_WaiterHoldsTheLockAtOnce) {
  const auto clock = std::make_shared<ManualClock>();
  const auto log = std::make_shared<EventLog>();
  const Client client = disturbed({.observer = log, .clock = clock}, "session_timeout=60s");
  DistributedLock before = client.make_lock("before");
  const Lease lost = take(before);
  cut();
  server.stop();
  log->reconnecting.wait("the cut is not told");
  clock->advance(1h);
  log->losses.wait("the loss is not told");
  DistributedLock lock = client.make_lock("after");
  Pending waiting(lock, {});
  clock->advance(10s);  // the pause before a session that was lost is made anew
  {
    Pending behind_it(before, {});  // what was due has been done before this
    behind_it.cancel();
    EXPECT_EQ(behind_it.get().error, errc::cancelled);
  }
  clock->advance(1h);
  server.start();
  heal();
  // Pauses between attempts, if there are any, end.
  for (int i = 0; i < 5 && !waiting.event().wait_for(2s); ++i) clock->advance(1s);
  EXPECT_TRUE(waiting.lease().held());
}

INSTANTIATE_TEST_SUITE_P(, PartitionTest, all_strategies(), Room::strategy_name);

// --- Silent hosts ----------------------------------------------------------------------------------------------------

// Far less than the two thirds of the session timeout for which the client library stays with a silent host.
constexpr auto patient = 30s;

class SilentHostTest : public ZooKeeperTest {
 protected:
  [[nodiscard]] static std::string url(const std::vector<std::uint16_t>& ports) {
    std::string hosts;
    for (const auto port : ports) hosts += (hosts.empty() ? "" : ",") + ("127.0.0.1:" + std::to_string(port));
    return "zookeeper://" + hosts + "?session_timeout=100s";
  }
  const rig::Listener silent;  // nobody ever accepts: the system does
  const rig::Listener silent_too;
};

// Which host a client begins with is drawn at random, so that each order occurs.
TEST_F(SilentHostTest, OneHostAnswers_EachClientFindsIt) {
  const std::vector<std::uint16_t> lists[] = {{silent.port(), server.port()},
                                              {server.port(), silent.port()},
                                              {silent.port(), server.port(), silent_too.port()}};
  std::vector<Client> clients;
  std::vector<DistributedLock> locks;
  std::vector<Pending> acquires;
  for (int i = 0; i < 12; ++i) {
    clients.push_back(connect_patiently(url(lists[i % 3]), {.connect_timeout = 600ms}));
    locks.push_back(clients.back().make_lock("n" + std::to_string(i)));
  }
  for (DistributedLock& lock : locks) acquires.emplace_back(lock, AcquireOptions{.wait = patient});
  for (Pending& acquire : acquires) EXPECT_TRUE(acquire.lease().held());
}

// The server never sees what was sent while nothing passed, so that only another attempt can be answered.
TEST_F(SilentHostTest, NoHostAnswers_IsUnavailableUntilOneDoes) {
  proxy.set({.mode = rig::Traffic::Mode::swallow});
  Contender ours(connect_patiently(url({proxy.port()}), {.response_timeout = 300ms, .connect_timeout = 200ms}),
                 "alone");
  std::error_code error;
  EXPECT_FALSE(ours.lock.try_acquire({}, error).has_value());
  EXPECT_EQ(error, errc::unavailable);
  Pending waiting(ours.lock, {.wait = patient});
  proxy.pass();
  EXPECT_TRUE(waiting.lease().held());
}

}  // namespace

}  // namespace dlock::test
