// Three servers, of which some fail.
#include <atomic>
#include <optional>
#include <thread>

#include "etcd/etcd_test.hpp"

namespace dlock::test {

namespace {

// nullopt: nobody can say.
std::optional<std::size_t> waiters(const Client& client, const std::string& name) {
  try {
    return client.inspect(name).waiters;
  } catch (const Error&) {
    return std::nullopt;
  }
}

// --- Another leader --------------------------------------------------------------------------------------------------

struct Change {
  const char* name;
  void (*happen)(const EtcdCluster& cluster, std::size_t leader);
};

class LeaderChangeTest : public EtcdClusterTest, public ::testing::WithParamInterface<Change> {
 protected:
  // Returns which it was.
  [[nodiscard]] std::size_t lose_leader() const {
    const std::size_t leader = cluster.leader();
    GetParam().happen(cluster, leader);
    return leader;
  }
  void await_another(std::size_t former) const {
    await("there is no other leader", [&] { return another_leads(former); });
  }
  void change_leader() const { await_another(lose_leader()); }

 private:
  // The old one may say that it leads, but serves nobody.
  [[nodiscard]] bool another_leads(std::size_t former) const {
    for (std::size_t i = 0; i < cluster.size(); ++i) {
      if (i != former && cluster.server(i).figure("etcd_server_is_leader") == 1) return true;
    }
    return false;
  }
};

TEST_P(LeaderChangeTest, HolderKeepsItsLock) {
  const Client client = this->client();
  const Client other = this->client();
  DistributedLock lock = client.make_lock("held");
  DistributedLock others = other.make_lock("held");
  Lease lease = take(lock);
  const LossEvent loss(lease);
  change_leader();
  Pending waiting(others, {});
  await("nobody waits", [&] { return waiters(client, "held") == 1U; });
  EXPECT_TRUE(lease.held());
  EXPECT_FALSE(loss.happened());
  EXPECT_FALSE(waiting.done());
  std::error_code error;
  (void)lease.release(error);
  Lease next = waiting.lease();
  EXPECT_FALSE(lease.held());
  EXPECT_GT(next.token(), lease.token());
}

TEST_P(LeaderChangeTest, WaiterIsGranted) {
  // Whoever waits at a member that stands still finds out by the next keep-alive.
  const Client client = this->client("session_ttl=12s");
  const Client other = this->client("session_ttl=12s");
  DistributedLock lock = client.make_lock("waited-for");
  DistributedLock others = other.make_lock("waited-for");
  Lease lease = take(lock);
  Pending waiting(others, {});
  Keys(cluster.server(0)).await_residue("waited-for", 2);
  const std::size_t former = lose_leader();
  std::error_code error;  // there may be no leader yet; it is released all the same
  (void)lease.release(error);
  await_another(former);
  Lease next = waiting.lease();
  EXPECT_FALSE(lease.held());
  EXPECT_GT(next.token(), lease.token());
}

TEST_P(LeaderChangeTest, TokensGrow) {
  const Client client = this->client();
  DistributedLock lock = client.make_lock("tokens");
  FencingToken last;
  for (int i = 0; i < 2; ++i) {
    const FencingToken token = take(lock).token();
    EXPECT_GT(token, last);
    last = token;
    change_leader();
    thaw_all();
    cluster.start();
  }
  EXPECT_GT(take(lock).token(), last);
}

INSTANTIATE_TEST_SUITE_P(
    , LeaderChangeTest,
    ::testing::Values(
        Change{"killed", [](const EtcdCluster& cluster, std::size_t leader) { cluster.server(leader).kill(); }},
        Change{"stopped", [](const EtcdCluster& cluster, std::size_t leader) { cluster.server(leader).freeze(); }},
        Change{"moved", [](const EtcdCluster& cluster, std::size_t leader) { cluster.move_leader((leader + 1) % 3); }}),
    [](const auto& test) { return std::string(test.param.name); });

class EtcdLeaderDeathTest : public EtcdClusterTest {};

// Many acquires, and the leader dies in the middle: each of them ends with the lock, never two at a time.
TEST_F(EtcdLeaderDeathTest, HundredAcquires_AllEndWithTheLock) {
  constexpr int clients = 4;
  constexpr int acquires_each = 25;
  std::atomic<int> inside{0};
  std::atomic<int> overlaps{0};
  std::atomic<int> backwards{0};
  std::atomic<std::uint64_t> last_token{0};
  Event acquired;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < clients; ++i) {
      threads.emplace_back([&] {
        const Client own = client();
        DistributedLock lock = own.make_lock("hundred");
        for (int n = 0; n < acquires_each; ++n) {
          Lease lease = take(lock);
          if (inside.fetch_add(1) != 0) overlaps.fetch_add(1);
          if (last_token.exchange(lease.token().value()) >= lease.token().value()) backwards.fetch_add(1);
          inside.fetch_sub(1);
          std::error_code error;  // it is released all the same
          (void)lease.release(error);
          acquired.set();
        }
      });
    }
    acquired.wait("nobody gets the lock", 30);
    cluster.server(cluster.leader()).kill();
  }
  EXPECT_EQ(acquired.count(), static_cast<std::size_t>(clients) * acquires_each);
  EXPECT_EQ(overlaps, 0);
  EXPECT_EQ(backwards, 0);
  cluster.start();
  Keys(cluster.server(0)).await_no_residue("hundred");
}

// --- No majority -----------------------------------------------------------------------------------------------------

class MajorityTest : public EtcdClusterTest {};

TEST_F(MajorityTest, WithoutMajority_AcquireIsUnavailableByItsDeadline) {
  const Client client = this->client();
  DistributedLock held = client.make_lock("held");
  DistributedLock lock = client.make_lock("another");
  Lease lease = take(held);
  freeze_all_but(cluster.follower());
  std::error_code error;
  const auto start = std::chrono::steady_clock::now();
  (void)lock.acquire({.wait = 1s}, error);
  expect_unanswered(error);
  EXPECT_FALSE(lock.try_acquire({}, error).has_value());
  expect_unanswered(error);
  EXPECT_LT(std::chrono::steady_clock::now() - start, far_too_long);
  Pending waiting(lock, {});
  EXPECT_TRUE(lease.held()) << "its session is long";
  thaw_all();
  EXPECT_TRUE(waiting.lease().release());
  EXPECT_TRUE(lease.held());
  EXPECT_TRUE(lease.release());
  const Keys keys(cluster.server(0));
  keys.await_no_residue("another");
  keys.await_no_residue("held");
}

// A member alone goes on answering what it can, also where it has led the others. That is no ground to believe in a
// session.
TEST_F(MajorityTest, MemberWithoutMajority_KeepsNoLockAlive) {
  for (const bool leads : {false, true}) {
    const std::size_t survivor = leads ? cluster.leader() : cluster.follower();
    const Client one = client_of(survivor, short_session);
    const Client two = client(short_session);
    DistributedLock lock = one.make_lock("alone");
    DistributedLock others = two.make_lock("alone");
    const Lease lease = take(lock);
    const LossEvent loss(lease);
    std::atomic<bool> overlap = false;
    Pending waiting(others, {}, [&](Lease& /*granted*/) { overlap = lease.held() || !lease.lost().stop_requested(); });
    Keys(cluster.server(survivor)).await_residue("alone", 2);
    freeze_all_but(survivor);
    const TimePoint alone = LeaseClock::now();
    loss.event().wait("a lock is believed to be held without a majority");
    EXPECT_LE(lease.valid_until(), alone + short_ttl);
    EXPECT_FALSE(waiting.done());
    thaw_all();
    EXPECT_GT(waiting.lease().token(), lease.token());
    EXPECT_FALSE(overlap);
    EXPECT_TRUE(take(lock).held());
  }
}

// The other two go on without it.
TEST_F(MajorityTest, MemberFrozen_ClientMovesToAnother) {
  const Client client = this->client("session_ttl=6s");
  const Client other = this->client();
  DistributedLock lock = client.make_lock("moved");
  DistributedLock others = other.make_lock("moved");
  Lease lease = take(lock);
  const LossEvent loss(lease);
  Pending waiting(others, {});
  Keys(cluster.server(0)).await_residue("moved", 2);
  // Wherever they are: each in turn stands still until the holder has been heard elsewhere.
  for (std::size_t i = 0; i < cluster.size(); ++i) {
    cluster.server(i).freeze();
    await_renewal(lease);
    cluster.server(i).thaw();
    cluster.await_serving();
  }
  EXPECT_TRUE(lease.held());
  EXPECT_FALSE(loss.happened());
  EXPECT_FALSE(waiting.done());
  EXPECT_TRUE(lease.release());
  EXPECT_TRUE(waiting.lease().release());
}

// Two stand still, and then the one that was left.
TEST_F(MajorityTest, OthersBack_ClientLeavesTheLastMember) {
  const Client client = this->client();
  DistributedLock lock = client.make_lock("left");
  Lease lease = take(lock);
  const std::size_t survivor = cluster.follower();
  freeze_all_but(survivor);
  EXPECT_FALSE(waiters(client, "left").has_value()) << "it looks for others, in vain";
  thaw_all();
  cluster.await_serving();
  cluster.server(survivor).freeze();
  DistributedLock another = client.make_lock("another");
  EXPECT_TRUE(take(another).release());
  EXPECT_TRUE(lease.held());
  EXPECT_TRUE(lease.release());
}

}  // namespace

}  // namespace dlock::test
