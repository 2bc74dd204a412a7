// A lease is lost when other processes would no longer find its file.
#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cstdlib>

#include "tests/unit/file/member.hpp"
#include "tests/unit/file/support.hpp"
#include "util/unique_fd.hpp"

namespace dlock::file::test {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;
using testing::HasSubstr;

class FileLossTest : public testing::Test {
 protected:
  [[nodiscard]] std::string up() const { return scratch_.path() + "/up"; }
  [[nodiscard]] std::string locks() const { return up() + "/locks"; }
  [[nodiscard]] std::string file() const { return locks() + "/a.lock"; }
  // inotify does not report it.
  void rename_further_up() {
    fs::rename(up(), scratch_.path() + "/moved");
    holder_.executor.run();
    waiting_.executor.run();
  }

  ScratchDirectory scratch_;
  Member holder_{locks(), LockKind::lock, 1};
  Member waiting_{locks(), LockKind::lock, 2};
};

// Shows: loss-signal, growing-tokens, hole file-replaced
TEST_F(FileLossTest, FileGone_LossAtOnceAndTheNextAcquireFollowsThePath) {
  const std::string aside = scratch_.path() + "/aside";
  const std::pair<std::function<void()>, const char*> misfortunes[] = {
      {[&] { fs::remove(file()); }, "was removed"},
      {[&] { fs::rename(file(), locks() + "/b"); }, "was removed"},
      {[&] { fs::rename(file(), aside); }, "was removed"},
      {[&] { fs::rename(aside, file()); }, "was replaced"},  // the file of the one before, with its token
      {[&] { fs::rename(locks(), aside); }, "was removed"},
      {[&] { fs::remove_all(locks()); }, "was removed"},
      {[&] {
         fs::remove_all(aside);
         fs::rename(locks(), aside);
         fs::create_directory(locks());
       },
       "was removed"},
      {[&] { fs::remove(file()); }, "was removed"},  // in the directory that was made anew
  };
  FencingToken last;
  for (const auto& [misfortune, text] : misfortunes) {
    for (Member* each : {&holder_, &waiting_}) each->executor.advance(1ms);
    ASSERT_TRUE(holder_.enter());
    EXPECT_GT(holder_.grants[0].token, last);
    last = holder_.grants[0].token;
    Waiting waiter(waiting_);
    EXPECT_FALSE(waiter.in());
    misfortune();
    holder_.executor.run();
    ASSERT_EQ(holder_.host.losses.size(), 1U);
    EXPECT_EQ(holder_.host.losses[0].owner, holder_.grants[0].owner);
    EXPECT_EQ(holder_.host.losses[0].why.code, errc::lost);
    EXPECT_THAT(holder_.host.losses[0].why.detail, HasSubstr("the file of lock \"a\", " + file() + ", " + text));
    EXPECT_FALSE(holder_.leave());
    EXPECT_TRUE(waiter.in()) << "a waiter follows";
    EXPECT_FALSE(holder_.enter());
    EXPECT_TRUE(waiter.leave());
    holder_.host.losses.clear();
  }
  EXPECT_TRUE(waiting_.host.losses.empty());
}

// Shows: release-reports
TEST_F(FileLossTest, ReleaseBeforeTheSignal_ReportsTheLoss) {
  for (const bool retaken : {false, true}) {
    ASSERT_TRUE(holder_.enter());
    fs::remove(file());
    EXPECT_EQ(retaken && waiting_.enter(), retaken);
    EXPECT_FALSE(holder_.leave());
    EXPECT_FALSE(retaken && holder_.enter()) << "the next holder was touched";
    holder_.executor.run();
    EXPECT_TRUE(holder_.host.losses.empty());
  }
  EXPECT_TRUE(waiting_.leave());
}

// Shows: hole file-replaced
TEST_F(FileLossTest, WithoutInotify_LossIsNoticedWithinASecond) {
  for (const bool available_again : {false, true}) {
    Member client(locks(), LockKind::lock, 3);
    client.executor.refuse_descriptors = true;
    ASSERT_TRUE(client.enter());
    if (available_again) {
      client.executor.refuse_descriptors = false;
      client.executor.advance(1s);
    }
    fs::remove(file());
    client.executor.advance(available_again ? 0ms : 999ms);
    EXPECT_EQ(client.host.losses.size(), available_again ? 1U : 0U);
    client.executor.advance(1ms);
    EXPECT_EQ(client.host.losses.size(), 1U);
  }
}

// --- Programs that remove old files ---

// Shows: hole file-replaced
TEST_F(FileLossTest, SystemdTmpfiles_SkipsTheDirectoryOfAHeldLock) {
  const ScratchDirectory settings;
  write_file(settings.path() + "/clean.conf", "d " + scratch_.path() + " - - - 0\n");  // everything, however young
  const std::string clean = "systemd-tmpfiles --clean " + settings.path() + "/clean.conf";
  {
    Member client(locks(), LockKind::lock, 3);
    ASSERT_TRUE(client.enter());
    ASSERT_EQ(std::system(clean.c_str()), 0);
    client.executor.run();
    EXPECT_TRUE(client.host.losses.empty());
    EXPECT_TRUE(fs::exists(file()));
  }
  ASSERT_EQ(std::system(clean.c_str()), 0);
  EXPECT_FALSE(fs::exists(locks())) << "these settings clean nothing";
}

TEST_F(FileLossTest, DirectoryLock_IsSharedWhileALockIsHeld) {
  const auto may_be_cleaned = [&] {
    const util::UniqueFd directory(::open(locks().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return ::flock(directory.get(), LOCK_EX | LOCK_NB) == 0;
  };
  ASSERT_TRUE(holder_.enter());
  EXPECT_FALSE(may_be_cleaned());
  ASSERT_TRUE(holder_.leave());
  holder_.executor.advance(2s);
  EXPECT_TRUE(may_be_cleaned());
  ASSERT_TRUE(holder_.enter());
  fs::remove_all(locks());
  ASSERT_TRUE(holder_.enter(Mode::exclusive, "another"));
  holder_.executor.advance(2s);
  EXPECT_FALSE(may_be_cleaned()) << "the new directory";
}

// Shows: hole file-replaced
TEST_F(FileLossTest, HeldFile_IsTouchedOnceADay) {
  for (const LockKind kind : {LockKind::lock, LockKind::semaphore}) {
    Member holder(locks(), kind, 1);
    ASSERT_TRUE(holder.enter());
    const std::string path = locks() + subdirectory(kind) + "/a.lock";
    const auto is_old = [&] {
      struct stat status {};
      return ::stat(path.c_str(), &status) == 0 && status.st_atime == 0 && status.st_mtime == 0;
    };
    const std::array<timespec, 2> long_ago{};
    for (int day = 0; day < 2; ++day) {
      ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), long_ago.data(), 0), 0);
      holder.executor.sleep_through(23h);
      EXPECT_TRUE(is_old());
      holder.executor.sleep_through(1h + 1s);
      EXPECT_FALSE(is_old());
    }
  }
}

// --- Changes that inotify does not report ---

// Shows: loss-signal, hole file-parent-changed
TEST_F(FileLossTest, DirectoryAboveRenamed_LossWithinASecond) {
  ASSERT_TRUE(holder_.enter());
  int woken = 0;
  const auto watch = holder_.watch(woken);
  Waiting waiter(waiting_);
  rename_further_up();
  EXPECT_TRUE(holder_.host.losses.empty()) << "the kernel told after all";
  EXPECT_EQ(woken, 0);
  holder_.executor.advance(1s);
  ASSERT_EQ(holder_.host.losses.size(), 1U);
  EXPECT_THAT(holder_.host.losses[0].why.detail, HasSubstr("/up/locks/a.lock, was removed"));
  EXPECT_GE(woken, 1) << "a waiter behind a lease of its own client";
  EXPECT_TRUE(waiter.in()) << "a waiter of a different client";
  EXPECT_TRUE(fs::exists(file())) << "the path that all others use now";
  EXPECT_FALSE(holder_.leave());
  EXPECT_TRUE(holder_.enter(Mode::exclusive, "b"));
  EXPECT_TRUE(fs::exists(locks() + "/b.lock"));
  EXPECT_FALSE(fs::exists(scratch_.path() + "/moved/locks/b.lock"));
}

TEST_F(FileLossTest, Inspection_FollowsThePath) {
  ASSERT_TRUE(holder_.enter());
  rename_further_up();
  Member other(locks(), LockKind::lock, 3);
  ASSERT_TRUE(other.enter(Mode::exclusive, "b"));
  EXPECT_FALSE(holder_.inspect().held);
  const auto all = holder_.list();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].name, "b");
}

// Shows: loss-signal
TEST_F(FileLossTest, EachLease_IsCheckedOnceASecond) {
  ASSERT_TRUE(holder_.enter() && holder_.enter(Mode::exclusive, "b"));
  holder_.executor.advance(10s);
  EXPECT_EQ(holder_.backend.path_looks(), 20U);
  EXPECT_TRUE(holder_.host.losses.empty());
  EXPECT_TRUE(holder_.leave());
  holder_.executor.advance(10s);
  EXPECT_EQ(holder_.backend.path_looks(), 30U);
  EXPECT_TRUE(holder_.leave());
  holder_.executor.advance(1h);
  EXPECT_EQ(holder_.backend.path_looks(), 30U);
  EXPECT_EQ(holder_.backend.looks(), 0U);
}

TEST_F(FileLossTest, ManyLeases_AreCheckedInParts) {
  constexpr std::size_t leases = 600;
  for (std::size_t i = 0; i < leases; ++i) ASSERT_TRUE(holder_.enter(Mode::exclusive, std::to_string(i)));
  rename_further_up();
  holder_.executor.advance(1s);
  EXPECT_GT(holder_.host.losses.size(), 0U);
  EXPECT_LT(holder_.host.losses.size(), leases / 2) << "other work waits meanwhile";
  holder_.executor.advance(10ms);
  EXPECT_EQ(holder_.host.losses.size(), leases);
}

}  // namespace
}  // namespace dlock::file::test
