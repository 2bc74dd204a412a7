// A lease is lost when other processes would no longer find its file.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "member.hpp"
#include "poll_executor.hpp"
#include "support.hpp"
#include "util/unique_fd.hpp"

namespace dlock::file::test {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

class FileLossTest : public testing::Test {
 protected:
  // Takes lock "a", does that to its file or directory, and expects what must follow.
  void expect_loss(const std::function<void()>& misfortune, const std::string& text) {
    const auto client = connect(scratch_.url(), {.observer = recorder_});
    auto lock = client.make_lock("a");
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
    EXPECT_FALSE(other.make_lock("a").try_acquire().has_value());
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
  const auto a = client.make_lock("a").acquire();
  auto b = client.make_lock("b").acquire();
  ASSERT_EQ(::chmod((scratch_.locks() + "/b.lock").c_str(), 0640), 0);
  fs::remove(file());
  EXPECT_TRUE(wait_for_loss(a));
  EXPECT_TRUE(b.held());
  EXPECT_TRUE(b.release());
}

TEST_F(FileLossTest, IsSeenByAReleaseThatComesBeforeTheSignal) {
  // Whether the kernel's news or the release comes first differs from turn to turn; the answer must not.
  const auto client = connect(scratch_.url());
  auto lock = client.make_lock("a");
  for (int i = 0; i < 20; ++i) {
    auto lease = lock.acquire();
    fs::remove(file());
    EXPECT_FALSE(lease.release());
  }
}

TEST_F(FileLossTest, NeverTouchesTheNextHolder) {
  const auto client = connect(scratch_.url());
  const auto other = connect(scratch_.url());
  auto lease = client.make_lock("a").acquire();
  fs::remove(file());
  const auto next = other.make_lock("a").acquire({.wait = 20s});
  EXPECT_TRUE(wait_for_loss(lease));
  EXPECT_FALSE(lease.release());
  EXPECT_TRUE(next.held());
  EXPECT_FALSE(client.make_lock("a").try_acquire().has_value());
}

TEST_F(FileLossTest, AWaiterFollowsTheNewFile) {
  std::promise<std::error_code> granted;
  const auto holder = connect(scratch_.url());
  const auto client = connect(scratch_.url());
  const auto lease = holder.make_lock("a").acquire();
  client.make_lock("a").async_acquire({}, [&](std::error_code ec, const Lease&) { granted.set_value(ec); });
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
  const auto lease = holder.make_lock("a").acquire();
  client.make_lock("a").async_acquire({}, [&](std::error_code ec, const Lease&) { granted.set_value(ec); });
  fs::rename(scratch_.locks(), scratch_.path() + "/moved");
  auto future = granted.get_future();
  ASSERT_EQ(future.wait_for(hang_guard), std::future_status::ready);
  EXPECT_FALSE(future.get());
  EXPECT_TRUE(wait_for_loss(lease));
  EXPECT_TRUE(fs::exists(file()));
}

// --- Programs that remove old files ---

TEST_F(FileLossTest, SystemdTmpfilesSkipsTheDirectoryOfAHeldLock) {
  const ScratchDirectory settings;
  write_file(settings.path() + "/clean.conf", "d " + scratch_.path() + " - - - 0\n");  // everything, however young
  const std::string clean = "systemd-tmpfiles --clean " + settings.path() + "/clean.conf";
  {
    const auto client = connect(scratch_.url());
    const auto lease = client.make_lock("a").acquire();
    ASSERT_EQ(std::system(clean.c_str()), 0);
    EXPECT_TRUE(fs::exists(file()));
    (void)client.inspect("a");  // the kernel's news would have come by now
    EXPECT_TRUE(lease.held());
  }
  ASSERT_EQ(std::system(clean.c_str()), 0);
  EXPECT_FALSE(fs::exists(scratch_.locks())) << "these settings clean nothing";
}

TEST_F(FileLossTest, TheDirectoryMayBeCleanedOnlyWhileNoLockInItIsHeld) {
  Member holder(scratch_.locks(), LockKind::lock, 1);
  const auto may_be_cleaned = [&] {
    const util::UniqueFd directory(::open(scratch_.locks().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return ::flock(directory.get(), LOCK_EX | LOCK_NB) == 0;
  };
  ASSERT_TRUE(holder.enter());
  EXPECT_FALSE(may_be_cleaned());
  ASSERT_TRUE(holder.leave());
  holder.executor.advance(2s);
  EXPECT_TRUE(may_be_cleaned());
  ASSERT_TRUE(holder.enter());
  fs::remove_all(scratch_.locks());
  LockRequest another = holder.request();
  another.name = "another";
  ASSERT_EQ(holder.ask(another).status, TryOutcome::Status::granted);
  holder.executor.advance(2s);
  EXPECT_FALSE(may_be_cleaned()) << "the new directory";
}

TEST_F(FileLossTest, HeldFilesAreTouchedOnceADay) {
  for (const LockKind kind : {LockKind::lock, LockKind::semaphore}) {
    Member holder(scratch_.locks(), kind, 1);
    ASSERT_TRUE(holder.enter());
    const std::string path = scratch_.locks() + subdirectory(kind) + "/a.lock";
    const auto is_old = [&] {
      struct stat status {};
      return ::stat(path.c_str(), &status) == 0 && status.st_atime == 0 && status.st_mtime == 0;
    };
    const std::array<timespec, 2> long_ago{};
    for (int day = 0; day < 2; ++day) {
      ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), long_ago.data(), 0), 0);
      holder.executor.advance(23h);
      EXPECT_TRUE(is_old());
      holder.executor.advance(1h + 1s);
      EXPECT_FALSE(is_old());
    }
  }
}

// Where inotify is silent: the way to the directory changes. The backend alone, driven step by step on one thread.
class FilePathTest : public testing::Test {
 protected:
  OwnerId acquire(const std::string& name) { return acquire(backend_, name); }
  OwnerId acquire(FileBackend& backend, const std::string& name) {
    const LockRequest request{
        .name = name, .owner = host_.new_owner_id(), .holder = "h:1:l", .lease = 1s, .wait = false};
    backend.try_acquire(request, [](const TryOutcome& outcome) {
      EXPECT_EQ(outcome.status, TryOutcome::Status::granted) << outcome.failure.detail;
    });
    return request.owner;
  }
  void release(const std::string& name, OwnerId owner) {
    backend_.release({.name = name, .owner = owner, .token = {}, .valid_until = {}}, [](const ReleaseOutcome&) {});
  }
  void rename_further_up() {
    fs::rename(scratch_.path() + "/up", scratch_.path() + "/moved");
    executor_.run();
  }
  [[nodiscard]] std::string locks() const { return scratch_.path() + "/up/locks"; }

  ScratchDirectory scratch_;
  PollExecutor executor_;
  BareHost host_{executor_};
  FileBackend backend_{host_, {.path = scratch_.path() + "/up/locks"}};
};

TEST_F(FilePathTest, ALossIsSignalledWithinASecondWhenADirectoryFurtherUpIsRenamed) {
  const OwnerId owner = acquire("a");
  rename_further_up();
  EXPECT_TRUE(host_.losses().empty()) << "the kernel told after all";
  executor_.advance(1s);
  ASSERT_EQ(host_.losses().size(), 1U);
  EXPECT_NE(host_.losses()[0].detail.find("/up/locks/a.lock, was removed"), std::string::npos)
      << host_.losses()[0].detail;
  release("a", owner);
  (void)acquire("a");
  EXPECT_TRUE(fs::exists(scratch_.path() + "/up/locks/a.lock")) << "the path that everybody else uses now";
}

TEST_F(FilePathTest, ALossIsSignalledWhenAnotherDirectoryFurtherUpTakesItsPlace) {
  (void)acquire("a");
  rename_further_up();
  fs::create_directories(scratch_.path() + "/up/locks");
  write_file(scratch_.path() + "/up/locks/a.lock", "");
  executor_.advance(1s);
  ASSERT_EQ(host_.losses().size(), 1U);
  EXPECT_NE(host_.losses()[0].detail.find("was replaced"), std::string::npos) << host_.losses()[0].detail;
}

TEST_F(FilePathTest, NothingIsMadeAnyMoreInADirectoryWhereALeaseWasLost) {
  (void)acquire("a");
  rename_further_up();
  executor_.advance(1s);
  (void)acquire("b");
  EXPECT_TRUE(fs::exists(locks() + "/b.lock"));
  EXPECT_FALSE(fs::exists(scratch_.path() + "/moved/locks/b.lock"));
}

TEST_F(FilePathTest, QuestionsGoWhereItsPathLeads) {
  (void)acquire("a");
  rename_further_up();
  PollExecutor executor;
  BareHost host(executor);
  FileBackend other(host, {.path = locks()});
  (void)acquire(other, "b");
  std::vector<std::string> answered;
  backend_.inspect(LockKind::lock, "b", [&](const Result<LockInfo>& info) {
    ASSERT_TRUE(info.ok());
    EXPECT_TRUE(info.value().held);
    answered.emplace_back("inspect");
  });
  backend_.list(LockKind::lock, [&](const Result<std::vector<LockInfo>>& locks) {
    ASSERT_TRUE(locks.ok());
    ASSERT_EQ(locks.value().size(), 1U);
    EXPECT_EQ(locks.value()[0].name, "b");
    answered.emplace_back("list");
  });
  EXPECT_EQ(answered.size(), 2U);
}

TEST_F(FilePathTest, AQuestionFailsWhereItsPathLeadsToNoDirectory) {
  (void)acquire("a");
  rename_further_up();
  write_file(scratch_.path() + "/up", "no directory");
  std::vector<Failure> failures;
  backend_.inspect(LockKind::lock, "a", [&](const Result<LockInfo>& info) {
    ASSERT_FALSE(info.ok());
    failures.push_back(info.failure());
  });
  backend_.list(LockKind::lock, [&](const Result<std::vector<LockInfo>>& locks) {
    ASSERT_FALSE(locks.ok());
    failures.push_back(locks.failure());
  });
  ASSERT_EQ(failures.size(), 2U);
  for (const auto& failure : failures) EXPECT_EQ(failure.code, errc::invalid_argument) << failure.detail;
}

TEST_F(FilePathTest, ALossIsSignalledAtOnceWhenTheDirectoryIsMoved) {
  (void)acquire("a");
  fs::rename(locks(), scratch_.path() + "/moved");
  executor_.run();
  EXPECT_EQ(host_.losses().size(), 1U);
}

TEST_F(FilePathTest, ALossIsSignalledAtOnceInADirectoryThatHadToBeMadeAnew) {
  fs::remove_all(locks());
  (void)acquire("a");
  executor_.run();
  EXPECT_TRUE(host_.losses().empty());
  fs::remove(locks() + "/a.lock");
  executor_.run();
  EXPECT_EQ(host_.losses().size(), 1U);
}

TEST_F(FilePathTest, ALossIsSignalledAtOnceInADirectoryThatWasAwayForAMoment) {
  (void)acquire("a");
  fs::rename(locks(), scratch_.path() + "/away");
  fs::rename(scratch_.path() + "/away", locks());
  executor_.run();
  EXPECT_TRUE(host_.losses().empty());
  fs::remove(locks() + "/a.lock");
  executor_.run();
  EXPECT_EQ(host_.losses().size(), 1U);
}

TEST_F(FilePathTest, AWaiterBehindALeaseOfItsOwnClientIsWokenByTheLoss) {
  (void)acquire("a");
  int woken = 0;
  const auto watch = backend_.watch(LockKind::lock, "a", [&woken] { ++woken; });
  rename_further_up();
  EXPECT_EQ(woken, 0);
  executor_.advance(1s);
  EXPECT_GE(woken, 1);
}

TEST_F(FilePathTest, EachLeaseIsLookedForOnceASecondAndNothingElseIs) {
  const OwnerId a = acquire("a");
  const OwnerId b = acquire("b");
  executor_.advance(10s);
  EXPECT_EQ(backend_.path_looks(), 20U);
  EXPECT_TRUE(host_.losses().empty());
  release("a", a);
  executor_.advance(10s);
  EXPECT_EQ(backend_.path_looks(), 30U);
  release("b", b);
  executor_.advance(1h);
  EXPECT_EQ(backend_.path_looks(), 30U);
  EXPECT_EQ(backend_.looks(), 0U);
}

TEST_F(FilePathTest, ManyLeasesAreLookedForInParts) {
  constexpr std::size_t leases = 600;
  for (std::size_t i = 0; i < leases; ++i) (void)acquire(std::to_string(i));
  rename_further_up();
  executor_.advance(1s);
  EXPECT_GT(host_.losses().size(), 0U);
  EXPECT_LT(host_.losses().size(), leases / 2) << "other work waits meanwhile";
  executor_.advance(10ms);
  EXPECT_EQ(host_.losses().size(), leases);
}

TEST_F(FileLossTest, AWaiterFollowsWhenADirectoryFurtherUpIsRenamed) {
  std::promise<std::error_code> granted;
  const auto clock = std::make_shared<ManualClock>();
  const std::string url = "file://" + scratch_.path() + "/up/locks";
  const auto holder = connect(url, {.clock = clock});
  const auto client = connect(url, {.clock = clock});
  const auto lease = holder.make_lock("a").acquire();
  client.make_lock("a").async_acquire({}, [&](std::error_code ec, const Lease&) { granted.set_value(ec); });
  (void)client.inspect("a");  // by now the acquire has been tried
  fs::rename(scratch_.path() + "/up", scratch_.path() + "/moved");
  clock->advance(1s);
  EXPECT_TRUE(wait_for_loss(lease));
  auto future = granted.get_future();
  ASSERT_EQ(future.wait_for(hang_guard), std::future_status::ready);
  EXPECT_FALSE(future.get());
  EXPECT_TRUE(fs::exists(scratch_.path() + "/up/locks/a.lock"));
}

}  // namespace
}  // namespace dlock::file::test
