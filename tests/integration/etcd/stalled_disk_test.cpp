// A leader whose disk stands still is deposed, and goes on saying that leases are kept alive: etcd's own trap for
// whoever believes a keep-alive.
#include <unistd.h>

#include <atomic>
#include <filesystem>

#include "etcd/etcd_test.hpp"

namespace dlock::test {

namespace {

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
