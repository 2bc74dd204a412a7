// Locks in files on a disk that is full: whoever needs room is told, nobody gets half a lock, and all goes on when
// there is room again.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <dlock/dlock.hpp>

#include "tests/torture/breakage/small_disk.hpp"
#include "tests/torture/client/commanded_client.hpp"
#include "torture/rig/scratch_directory.hpp"

#ifdef DLOCK_FAULT_FILE

namespace dlock::torture {
namespace {

using namespace std::chrono_literals;

class FullDisk : public testing::Test {
 protected:
  void SetUp() override {
    std::string why_not;
    if (!SmallDisk::available(why_not)) GTEST_SKIP() << "needs privilege: " << why_not;
    disk_ = std::make_unique<SmallDisk>(directory_.path() + "/locks");
    url_ = "file://" + disk_->path();
    client_ = std::make_unique<Client>(connect(url_));
    other_ = std::make_unique<CommandedClient>(url_);
  }
  void TearDown() override {
    other_.reset();
    client_.reset();
  }

  // What an acquire says on the full disk.
  [[nodiscard]] std::string failure(const std::string& name, const AcquireOptions& options) const {
    try {
      (void)client_->make_lock(name).acquire(options);
      return "granted";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), errc::unavailable) << e.what();
      return e.detail();
    }
  }

  rig::ScratchDirectory directory_;
  std::unique_ptr<SmallDisk> disk_;
  std::string url_;
  std::unique_ptr<Client> client_;
  std::unique_ptr<CommandedClient> other_;
};

TEST_F(FullDisk, NewLock_IsRefused) {
  disk_->fill();
  for (const auto wait : {0ms, 300ms}) {
    const std::string said = failure("new", {.wait = wait});
    EXPECT_TRUE(said.ends_with(disk_->path() + "/new.lock: No space left on device")) << said;
  }
  EXPECT_NE(other_->tell("acquire new 0").find("No space left on device"), std::string::npos) << other_->said();
  EXPECT_FALSE(client_->inspect("new").held);
  disk_->free();
  // Were it half granted to either, the other could not have it.
  const std::string granted = other_->tell("acquire new 0");
  ASSERT_TRUE(granted.starts_with("granted new ")) << granted;
  EXPECT_EQ(other_->tell("release new"), "ours");
  EXPECT_GT(client_->make_lock("new").acquire({.wait = 10s}).token().value(), std::stoull(granted.substr(12)));
}

TEST_F(FullDisk, WaiterForANewLock_GetsItOnceTheDiskHasSpace) {
  disk_->fill();
  ASSERT_EQ(other_->tell("wait new"), "waiting");
  EXPECT_NE(failure("new", {.wait = 300ms}).find("No space left"), std::string::npos);
  EXPECT_FALSE(other_->had_event("")) << other_->said();
  disk_->free();
  (void)other_->await_event("granted new ");
  EXPECT_FALSE(client_->make_lock("new").try_acquire().has_value());
}

// As often as it fills up: tokens grow, and no lock stays taken.
TEST_F(FullDisk, DiskThatIsFullAgainAndAgain_LosesNoLock) {
  std::uint64_t newest = 0;
  for (int round = 0; round < 20; ++round) {
    const std::string fresh = "fresh" + std::to_string(round);
    Lease lease = client_->make_lock("a").acquire({.wait = 10s});
    EXPECT_GT(lease.token().value(), newest);
    newest = lease.token().value();
    disk_->fill();
    EXPECT_NE(failure(fresh, {.wait = 0s}), "granted");
    EXPECT_TRUE(lease.held());
    EXPECT_TRUE(lease.release());
    const std::string answer = other_->tell("acquire a 10000");
    ASSERT_TRUE(answer.starts_with("granted a ")) << answer;
    EXPECT_GT(std::stoull(answer.substr(10)), newest);
    newest = std::stoull(answer.substr(10));
    EXPECT_EQ(other_->tell("release a"), "ours");
    disk_->free();
    EXPECT_TRUE(client_->make_lock(fresh).try_acquire().has_value());
  }
}

}  // namespace
}  // namespace dlock::torture

#endif
