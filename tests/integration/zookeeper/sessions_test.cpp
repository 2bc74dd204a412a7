// How many sessions a client has, by the servers' own count.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>

#include "zookeeper/zookeeper_test.hpp"

namespace dlock::test {

namespace {

constexpr int many = 64;

// Threads that take and release a lock each, until they are told to stop.
class Crowd {
 public:
  explicit Crowd(const Client& client) {
    for (int i = 0; i < many; ++i) locks_.push_back(client.make_lock("crowd/" + std::to_string(i)));
    for (DistributedLock& lock : locks_) {
      threads_.emplace_back([this, &lock](const std::stop_token& stop) {
        while (!stop.stop_requested()) {
          std::error_code error;
          Lease lease = lock.acquire({.wait = conformance::guard()}, error);
          if (error || !lease.release()) ++failures_;
          if (++pairs_ == 20 * many) progress_.set();
        }
      });
    }
  }
  // Of all of them together.
  void await_progress() const { progress_.wait("the crowd makes no progress"); }
  [[nodiscard]] int failures() const { return failures_; }

 private:
  std::atomic<int> pairs_ = 0;
  std::atomic<int> failures_ = 0;
  Event progress_;
  std::vector<DistributedLock> locks_;
  std::vector<std::jthread> threads_;
};

class SessionsTest : public ZooKeeperTest {
 protected:
  explicit SessionsTest(ZooKeeperConfig config = {}) : ZooKeeperTest(std::move(config)) {}

  [[nodiscard]] std::int64_t connections() const { return server.figure("zk_num_alive_connections"); }
};

TEST_F(SessionsTest, BusyClient_OpensAFew) {
  const Client client = steady();
  DistributedLock lock = client.make_lock("alone");
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(take(lock).release());
  const std::int64_t one = connections();
  std::int64_t most = one;
  {
    const Crowd crowd(client);
    const auto give_up = std::chrono::steady_clock::now() + conformance::guard();
    while (most < one + 2) {
      ASSERT_LT(std::chrono::steady_clock::now(), give_up) << most << " after " << one;
      most = std::max(most, connections());
    }
    crowd.await_progress();
    most = std::max(most, connections());
    EXPECT_EQ(crowd.failures(), 0);
  }
  EXPECT_LE(most, one + 3);
  EXPECT_TRUE(take(lock).release());
}

// One for the test's own session, one for the client.
class FewConnectionsTest : public SessionsTest {
 protected:
  FewConnectionsTest() : SessionsTest({.lines = {"maxClientCnxns=2"}}) {}
};

TEST_F(FewConnectionsTest, ManyLocks_ShareOneConnection) {
  const Client client = steady();
  std::vector<DistributedLock> locks;
  std::vector<Lease> leases;
  for (int i = 0; i < 50; ++i) {
    locks.push_back(client.make_lock("shared/" + std::to_string(i)));
    leases.push_back(take(locks.back()));
  }
  EXPECT_TRUE(std::all_of(leases.begin(), leases.end(), [](const Lease& each) { return each.held(); }));
}

TEST_F(FewConnectionsTest, FurtherSessionsRefused_OneServesAll) {
  const auto log = std::make_shared<EventLog>();
  const Client client = steady({.observer = log});
  DistributedLock kept = client.make_lock("kept");
  const Lease lease = take(kept);
  {
    const Crowd crowd(client);
    crowd.await_progress();
    EXPECT_EQ(crowd.failures(), 0);
  }
  EXPECT_TRUE(lease.held());
  EXPECT_FALSE(log->reconnecting.happened());
}

}  // namespace

}  // namespace dlock::test
