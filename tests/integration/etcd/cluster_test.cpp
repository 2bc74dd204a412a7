// Three servers, of which some fail: what only etcd does. The rest is in tests/integration/network.
#include <optional>

#include "network/ensemble_room.hpp"

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

class LeaderChangeTest : public EnsembleTest, public ::testing::WithParamInterface<Change> {
 protected:
  // Returns which it was.
  [[nodiscard]] std::size_t lose_leader() const {
    const std::size_t leader = ensemble.leader();
    GetParam().happen(ensemble, leader);
    return leader;
  }
  void await_another(std::size_t former) const {
    await("there is no other leader", [&] { return another_leads(former); });
  }
  void change_leader() const { await_another(lose_leader()); }

 private:
  // The old one may say that it leads, but serves nobody.
  [[nodiscard]] bool another_leads(std::size_t former) const {
    for (std::size_t i = 0; i < ensemble.size(); ++i) {
      if (i != former && ensemble.server(i).figure("etcd_server_is_leader") == 1) return true;
    }
    return false;
  }
};

TEST_P(LeaderChangeTest, HolderKeepsItsLock) {
  Contender ours(this->client(), "held");
  Contender other(this->client(), "held");
  Lease lease = take(ours.lock);
  const LossEvent loss(lease);
  change_leader();
  Pending waiting(other.lock, {});
  await("nobody waits", [&] { return waiters(ours.client, "held") == 1U; });
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
  Contender own(this->client("session_ttl=12s"), "waited-for");
  Contender other(this->client("session_ttl=12s"), "waited-for");
  Lease lease = take(own.lock);
  Pending waiting(other.lock, {});
  await_residue("waited-for", 2);
  const std::size_t former = lose_leader();
  std::error_code error;  // there may be no leader yet; it is released all the same
  (void)lease.release(error);
  await_another(former);
  Lease next = waiting.lease();
  EXPECT_FALSE(lease.held());
  EXPECT_GT(next.token(), lease.token());
}

INSTANTIATE_TEST_SUITE_P(
    , LeaderChangeTest,
    ::testing::Values(
        Change{"killed", [](const EtcdCluster& cluster, std::size_t leader) { cluster.server(leader).kill(); }},
        Change{"stopped", [](const EtcdCluster& cluster, std::size_t leader) { cluster.server(leader).freeze(); }},
        Change{"moved", [](const EtcdCluster& cluster, std::size_t leader) { cluster.move_leader((leader + 1) % 3); }}),
    [](const auto& test) { return std::string(test.param.name); });

// --- Members that stand still
// -----------------------------------------------------------------------------------------------------

class MajorityTest : public EnsembleTest {};

// The other two go on without it.
TEST_F(MajorityTest, MemberFrozen_ClientMovesToAnother) {
  Contender ours(this->client("session_ttl=6s"), "moved");
  Contender other(this->client(), "moved");
  Lease lease = take(ours.lock);
  const LossEvent loss(lease);
  Pending waiting(other.lock, {});
  await_residue("moved", 2);
  // Wherever they are: each in turn stands still until the holder has been heard elsewhere.
  for (std::size_t i = 0; i < ensemble.size(); ++i) {
    ensemble.server(i).freeze();
    await_renewal(lease);
    ensemble.server(i).thaw();
    ensemble.await_serving();
  }
  EXPECT_TRUE(lease.held());
  EXPECT_FALSE(loss.happened());
  EXPECT_FALSE(waiting.done());
  EXPECT_TRUE(lease.release());
  EXPECT_TRUE(waiting.lease().release());
}

}  // namespace

}  // namespace dlock::test
