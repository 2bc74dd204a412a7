// A lease is lost when other processes would no longer find its file.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <string>

#include "support.hpp"

namespace dlock::file::test {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

class FileLossTest : public testing::Test {
 protected:
  // Takes lock "a", does that to its file or directory, and expects what must follow.
  void expect_loss(const std::function<void()>& misfortune, const std::string& text) {
    const auto client = connect(scratch_.url(), {.observer = recorder_});
    auto lock = client.lock("a");
    auto lease = lock.acquire();
    const auto first = lease.token();
    misfortune();
    EXPECT_TRUE(wait_for_loss(lease));
    EXPECT_FALSE(lease.held());
    EXPECT_FALSE(lease.release());
    (void)client.inspect("a");
    ASSERT_EQ(recorder_->losses().size(), 1U);
    EXPECT_EQ(recorder_->losses()[0].reason.code, errc::lost);
    EXPECT_NE(recorder_->losses()[0].reason.detail.find(text), std::string::npos)
        << recorder_->losses()[0].reason.detail;
    // The client goes on, on the path that everybody else uses now.
    auto again = lock.acquire({.wait = 20s});
    EXPECT_GT(again.token(), first);
    const auto other = connect(scratch_.url());
    EXPECT_FALSE(other.lock("a").try_acquire().has_value());
    EXPECT_TRUE(again.release());
  }

  [[nodiscard]] std::string file() const { return scratch_.locks() + "/a.lock"; }

  ScratchDirectory scratch_;
  std::shared_ptr<Recorder> recorder_ = std::make_shared<Recorder>();
};

TEST_F(FileLossTest, IsSignalledWhenTheFileIsRemoved) {
  expect_loss([&] { fs::remove(file()); }, "was removed");
}

TEST_F(FileLossTest, IsSignalledWhenTheFileIsRenamed) {
  expect_loss([&] { fs::rename(file(), scratch_.locks() + "/b"); }, "was removed");
}

TEST_F(FileLossTest, IsSignalledWhenTheFileIsMovedOutOfTheDirectory) {
  expect_loss([&] { fs::rename(file(), scratch_.path() + "/b"); }, "was removed");
}

TEST_F(FileLossTest, IsSignalledWhenAnotherFileTakesItsPlace) {
  write_file(scratch_.path() + "/b", "");
  expect_loss([&] { fs::rename(scratch_.path() + "/b", file()); }, "was replaced");
}

TEST_F(FileLossTest, IsSignalledWhenTheDirectoryIsMoved) {
  expect_loss([&] { fs::rename(scratch_.locks(), scratch_.path() + "/moved"); }, "was removed");
}

TEST_F(FileLossTest, IsSignalledWhenTheDirectoryIsRemoved) {
  expect_loss([&] { fs::remove_all(scratch_.locks()); }, "was removed");
}

TEST_F(FileLossTest, IsSignalledWhenAnotherDirectoryTakesItsPlace) {
  expect_loss(
      [&] {
        fs::rename(scratch_.locks(), scratch_.path() + "/moved");
        fs::create_directory(scratch_.locks());
      },
      "was removed");
}

TEST_F(FileLossTest, LeavesOtherLeasesAlone) {
  const auto client = connect(scratch_.url());
  const auto a = client.lock("a").acquire();
  auto b = client.lock("b").acquire();
  ASSERT_EQ(::chmod((scratch_.locks() + "/b.lock").c_str(), 0640), 0);
  fs::remove(file());
  EXPECT_TRUE(wait_for_loss(a));
  EXPECT_TRUE(b.held());
  EXPECT_TRUE(b.release());
}

TEST_F(FileLossTest, IsSeenByAReleaseThatComesBeforeTheSignal) {
  // Whether the kernel's news or the release comes first differs from turn to turn; the answer must not.
  const auto client = connect(scratch_.url());
  auto lock = client.lock("a");
  for (int i = 0; i < 20; ++i) {
    auto lease = lock.acquire();
    fs::remove(file());
    EXPECT_FALSE(lease.release());
  }
}

TEST_F(FileLossTest, NeverTouchesTheNextHolder) {
  const auto client = connect(scratch_.url());
  const auto other = connect(scratch_.url());
  auto lease = client.lock("a").acquire();
  fs::remove(file());
  const auto next = other.lock("a").acquire({.wait = 20s});
  EXPECT_TRUE(wait_for_loss(lease));
  EXPECT_FALSE(lease.release());
  EXPECT_TRUE(next.held());
  EXPECT_FALSE(client.lock("a").try_acquire().has_value());
}

TEST_F(FileLossTest, AWaiterFollowsTheNewFile) {
  std::promise<std::error_code> granted;
  const auto holder = connect(scratch_.url());
  const auto client = connect(scratch_.url());
  const auto lease = holder.lock("a").acquire();
  client.lock("a").async_acquire({}, [&](std::error_code ec, const Lease&) { granted.set_value(ec); });
  fs::remove(file());
  auto future = granted.get_future();
  ASSERT_EQ(future.wait_for(hang_guard), std::future_status::ready);
  EXPECT_FALSE(future.get());
  EXPECT_TRUE(wait_for_loss(lease));
}

TEST_F(FileLossTest, AWaiterFollowsTheNewDirectory) {
  std::promise<std::error_code> granted;
  const auto holder = connect(scratch_.url());
  const auto client = connect(scratch_.url());
  const auto lease = holder.lock("a").acquire();
  client.lock("a").async_acquire({}, [&](std::error_code ec, const Lease&) { granted.set_value(ec); });
  fs::rename(scratch_.locks(), scratch_.path() + "/moved");
  auto future = granted.get_future();
  ASSERT_EQ(future.wait_for(hang_guard), std::future_status::ready);
  EXPECT_FALSE(future.get());
  EXPECT_TRUE(wait_for_loss(lease));
  EXPECT_TRUE(fs::exists(file()));
}

}  // namespace
}  // namespace dlock::file::test
