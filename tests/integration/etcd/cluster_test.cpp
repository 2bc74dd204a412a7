// Three servers, of which some fail: what only etcd does. The rest is in tests/integration/network.
#include <unistd.h>

#include <atomic>
#include <filesystem>
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
  [[nodiscard]] std::size_t lose_leader() const {
    const std::size_t leader = ensemble.leader();
    GetParam().happen(ensemble, leader);
    return leader;
  }
  // The old one may say that it leads, but serves nobody.
  [[nodiscard]] bool another_leads(std::size_t former) const {
    for (std::size_t i = 0; i < ensemble.size(); ++i) {
      if (i != former && ensemble.server(i).figure("etcd_server_is_leader") == 1) return true;
    }
    return false;
  }
};

TEST_P(LeaderChangeTest, HolderKeepsItsLockAndWaiterIsGranted) {
  Contender holder(this->client(), "held");
  // Whoever waits at a member that stands still finds out by the next keep-alive.
  Contender other(this->client("session_ttl=12s"), "waited-for");
  DistributedLock released = holder.client.make_lock("waited-for");
  DistributedLock behind = other.client.make_lock("held");
  Lease kept = take(holder.lock);
  Lease lease = take(released);
  const LossEvent loss(kept);
  Pending waiting(other.lock, {});
  await_residue("waited-for", 2);
  const std::size_t former = lose_leader();
  std::error_code error;  // there may be no leader yet; it is released all the same
  (void)lease.release(error);
  await("there is no other leader", [&] { return another_leads(former); });
  const Lease next = waiting.lease();
  EXPECT_FALSE(lease.held());
  EXPECT_GT(next.token(), lease.token());
  Pending pending(behind, {});
  await("nobody waits", [&] { return waiters(holder.client, "held") == 1U; });
  EXPECT_TRUE(kept.held());
  EXPECT_FALSE(loss.happened());
  EXPECT_FALSE(pending.done());
  (void)kept.release(error);
  EXPECT_GT(pending.lease().token(), kept.token());
  EXPECT_FALSE(kept.held());
}

INSTANTIATE_TEST_SUITE_P(
    , LeaderChangeTest,
    ::testing::Values(
        Change{"killed", [](const EtcdCluster& cluster, std::size_t leader) { cluster.server(leader).kill(); }},
        Change{"stopped", [](const EtcdCluster& cluster, std::size_t leader) { cluster.server(leader).freeze(); }},
        Change{"moved", [](const EtcdCluster& cluster, std::size_t leader) { cluster.move_leader((leader + 1) % 3); }}),
    [](const auto& test) { return std::string(test.param.name); });

// --- Members that stand still ---------------------------------------------------------------------------------------

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

// --- A leader whose disk stands still is deposed, and goes on saying that leases are kept alive ---

// A file system of its own, which can be made to stand still.
class LoopDisk {
 public:
  LoopDisk() {
    const std::string image = directory_.path() + "/image";
    (void)rig::run_command({"truncate", "-s", "256M", image});  // etcd reserves 64 MB a file
    (void)rig::run_command({"mkfs.ext4", "-q", "-F", image});
    std::filesystem::create_directory(path());
    (void)rig::run_command({"mount", "-o", "loop", image, path()});
    mounted_ = true;
  }
  LoopDisk(const LoopDisk&) = delete;
  LoopDisk& operator=(const LoopDisk&) = delete;
  ~LoopDisk() {
    try {
      if (frozen_) thaw();
      if (mounted_) (void)rig::run_command({"umount", path()});
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
  [[nodiscard]] std::string path() const { return directory_.path() + "/mounted"; }
  void freeze() {
    (void)rig::run_command({"fsfreeze", "-f", path()});
    frozen_ = true;
  }
  void thaw() {
    frozen_ = false;
    (void)rig::run_command({"fsfreeze", "-u", path()});
  }

 private:
  rig::ScratchDirectory directory_;
  bool mounted_ = false;
  bool frozen_ = false;
};

std::unique_ptr<LoopDisk> disk_or_why(std::string& why) {
  if (::geteuid() != 0) {
    why = "mounting takes root";
    return nullptr;
  }
  try {
    auto disk = std::make_unique<LoopDisk>();
    disk->freeze();
    disk->thaw();
    return disk;
  } catch (const std::exception& error) {
    why = error.what();
    return nullptr;
  }
}

TEST(StalledDiskTest, DeposedLeader_HolderIsToldBeforeTheNextGrant) {
  std::string why;
  const auto disk = disk_or_why(why);
  if (!disk) GTEST_SKIP() << "no file system can be made and frozen here: " << why;
  const EtcdCluster cluster({.log_directory = disk->path()});
  if (cluster.leader() != 0) cluster.move_leader(0);
  EtcdServer& stalled = cluster.server(0);
  Contender holder(connect_patiently(stalled.url(short_session)), "stalled");
  Contender other(connect_patiently(cluster.server(1).url_of(
                      cluster.server(1).address() + "," + cluster.server(2).address(), short_session)),
                  "stalled");
  const Lease lease = take(holder.lock);
  const LossEvent loss(lease);
  std::atomic<bool> overlap = false;
  Pending waiting(other.lock, {},
                  [&](Lease& /*granted*/) { overlap = lease.held() || !lease.lost().stop_requested(); });
  Keys(cluster.server(1)).await_residue("stalled", 2);
  await_renewal(lease);
  disk->freeze();
  const TimePoint since = LeaseClock::now();
  // Something has to be written for it to stand still.
  const auto put = stalled.ctl_process({"put", "others", "1", "--command-timeout=1s"});
  const Lease next = waiting.lease();
  EXPECT_FALSE(overlap);
  EXPECT_TRUE(loss.happened());
  EXPECT_GT(next.token(), lease.token());
  // It served nobody that a majority had not agreed to since: what it was told before counts for so long.
  EXPECT_LE(lease.valid_until(), since + short_ttl + 1s);
  disk->thaw();
  stalled.await_serving();
  EXPECT_FALSE(lease.held());
}

}  // namespace

}  // namespace dlock::test
