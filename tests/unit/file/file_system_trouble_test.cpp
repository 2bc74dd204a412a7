// Full, read-only, forbidden and missing: on real file systems, mounted in a mount namespace of the test's own.
#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backends/file/lock_file.hpp"
#include "support.hpp"
#include "util/unique_fd.hpp"

namespace dlock::file::test {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

void require_failure(const Failure& failure, errc code, const std::string& path, const std::string& text) {
  require(failure.code == code, "another code: " + failure.code.message() + ": " + failure.detail);
  require(failure.detail.find(path) != std::string::npos, "no path: " + failure.detail);
  require(failure.detail.find(text) != std::string::npos, "another text: " + failure.detail);
}

Failure try_failure(const Client& client, const std::string& name) {
  return failure_of([&] { (void)client.make_lock(name).try_acquire(); });
}

void fill(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  const std::string page(4096, 'x');
  while (::write(fd, page.data(), page.size()) > 0) {
  }
  require(errno == ENOSPC, "not full");
  ::close(fd);
}

class FileSystemTroubleTest : public testing::Test {
 protected:
  FileSystemTroubleTest() { fs::create_directory(scratch_.locks()); }
  [[nodiscard]] std::string locks() const { return scratch_.locks(); }

  ScratchDirectory scratch_;
};

TEST_F(FileSystemTroubleTest, AFullDiskIsUnavailableAndGrantsNothing) {
  EXPECT_WELL(in_child([&] {
    enter_mount_namespace();
    mount_tmpfs(locks(), "size=64k");
    const auto client = connect(scratch_.url());
    auto held = client.make_lock("held").acquire();
    fill(locks() + "/filler");
    require_failure(try_failure(client, "new"), errc::unavailable, locks() + "/new.lock", "No space left");
    require(read_file(locks() + "/new.lock").empty(), "half a record stayed behind");
    const auto other = connect(scratch_.url());
    require(!other.inspect("new").held, "half a grant stayed behind");
    require_failure(try_failure(other, "new"), errc::unavailable, locks() + "/new.lock", "No space left");
    require(held.held() && held.release(), "the holder was disturbed");
    require(client.make_lock("held").try_acquire().has_value(), "an old lock needs no new room");
    fs::remove(locks() + "/filler");
    require(client.make_lock("new").try_acquire().has_value(), "did not recover");
  }));
}

TEST_F(FileSystemTroubleTest, AWaiterOutlastsAFullDiskWithoutATurmoil) {
  EXPECT_WELL(in_child([&] {
    enter_mount_namespace();
    mount_tmpfs(locks(), "size=64k");
    std::promise<bool> granted;
    OpenBackend one(scratch_.url());
    OpenBackend two(scratch_.url());
    fill(locks() + "/filler");
    for (auto* open : {&one, &two}) {
      const Failure failure = failure_of([&] { (void)open->client.make_lock("a").acquire({.wait = 300ms}); });
      require_failure(failure, errc::unavailable, locks() + "/a.lock", "No space left");
    }
    one.client.make_lock("a").async_acquire({}, [&](std::error_code ec, const Lease&) { granted.set_value(!ec); });
    (void)failure_of([&] { (void)two.client.make_lock("a").acquire({.wait = 300ms}); });
    // Each backs off on its own; neither wakes the other into failing again.
    require(one.backend->kernel_tries() < 50, "tries: " + std::to_string(one.backend->kernel_tries()));
    require(two.backend->kernel_tries() < 50, "tries: " + std::to_string(two.backend->kernel_tries()));
    fs::remove(locks() + "/filler");
    auto future = granted.get_future();
    require(future.wait_for(hang_guard) == std::future_status::ready && future.get(), "did not recover");
  }));
}

TEST_F(FileSystemTroubleTest, WaitersThatMeetAFullDiskDoNotWakeEachOther) {
  EXPECT_WELL(in_child([&] {
    enter_mount_namespace();
    mount_tmpfs(locks(), "size=64k");
    // Held by a program without a record, so that there is still everything to be written.
    const std::string file = locks() + "/a.lock";
    util::UniqueFd stranger(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    require(take_lock(stranger.get(), file).ok(), "take_lock");
    fill(locks() + "/filler");
    OpenBackend one(scratch_.url());
    OpenBackend two(scratch_.url());
    for (auto* open : {&one, &two}) {
      open->client.make_lock("a").async_acquire({}, [](std::error_code, const Lease&) {});
      (void)open->client.inspect("a");
    }
    drop_lock(stranger.get());
    stranger.reset();
    // Time for a few tries of each, 20 ms apart and more; a storm makes thousands.
    (void)failure_of([&] { (void)one.client.make_lock("b").acquire({.wait = 500ms}); });
    require(one.backend->kernel_tries() + two.backend->kernel_tries() < 100,
            "tries: " + std::to_string(one.backend->kernel_tries() + two.backend->kernel_tries()));
  }));
}

TEST_F(FileSystemTroubleTest, AHalfWrittenRecordIsTakenBack) {
  EXPECT_WELL(in_child([&] {
    const auto client = connect(scratch_.url());
    const auto first = client.make_lock("old").acquire().token();
    const std::string before = read_file(locks() + "/old.lock");
    // The kernel writes up to the limit and refuses the rest.
    rlimit limit{};
    require(::getrlimit(RLIMIT_FSIZE, &limit) == 0, "getrlimit");
    const rlim_t unlimited = std::exchange(limit.rlim_cur, 100);
    require(::setrlimit(RLIMIT_FSIZE, &limit) == 0, "setrlimit");
    require_failure(try_failure(client, "new"), errc::access_denied, locks() + "/new.lock", "File too large");
    require_failure(try_failure(client, "old"), errc::access_denied, locks() + "/old.lock", "File too large");
    require(read_file(locks() + "/new.lock").empty(), "half a record stayed in the new file");
    require(read_file(locks() + "/old.lock") == before, "half a record stayed in the old file");
    limit.rlim_cur = unlimited;
    require(::setrlimit(RLIMIT_FSIZE, &limit) == 0, "setrlimit");
    require(client.make_lock("old").acquire().token() > first, "the token did not grow");
    require(client.make_lock("new").try_acquire().has_value(), "did not recover");
  }));
}

// By default, the signal of the kernel would end the program.
TEST_F(FileSystemTroubleTest, ALimitOfFileSizesLeavesTheProgramsSignalsAlone) {
  EXPECT_WELL(in_child([&] {
    const rlimit none{};
    require(::setrlimit(RLIMIT_FSIZE, &none) == 0, "setrlimit");
    const auto client = connect(scratch_.url());
    sigset_t signal;
    ::sigemptyset(&signal);
    ::sigaddset(&signal, SIGXFSZ);
    sigset_t found;
    const auto pends = [&] { return ::sigpending(&found) == 0 && ::sigismember(&found, SIGXFSZ) == 1; };
    require(::sigprocmask(SIG_BLOCK, &signal, &found) == 0 && ::sigismember(&found, SIGXFSZ) == 0, "blocked before");
    require_failure(try_failure(client, "a"), errc::access_denied, locks() + "/a.lock", "File too large");
    require(!pends(), "the signal of the write is still pending");
    require(::raise(SIGXFSZ) == 0, "raise");
    require_failure(try_failure(client, "a"), errc::access_denied, locks() + "/a.lock", "File too large");
    require(pends(), "the signal of the program was taken");
    require(::sigprocmask(SIG_BLOCK, nullptr, &found) == 0 && ::sigismember(&found, SIGXFSZ) == 1, "unblocked");
  }));
}

TEST_F(FileSystemTroubleTest, ALimitOfFileSizesThatChangesDuringAnAcquireDoesNotEndTheProgram) {
  EXPECT_WELL(in_child([&] {
    const auto client = connect(scratch_.url());
    auto lock = client.make_lock("a");
    std::jthread changing([](const std::stop_token& stop) {
      rlimit limit{};
      require(::getrlimit(RLIMIT_FSIZE, &limit) == 0, "getrlimit");
      const rlim_t unlimited = limit.rlim_cur;
      while (!stop.stop_requested()) {
        limit.rlim_cur = limit.rlim_cur == 0 ? unlimited : 0;
        require(::setrlimit(RLIMIT_FSIZE, &limit) == 0, "setrlimit");
      }
    });
    for (int granted = 0, refused = 0; granted < 1000 || refused < 1000;) {
      const Failure failure = failure_of([&] { require(lock.try_acquire().has_value(), "busy"); });
      if (failure.code) require_failure(failure, errc::access_denied, locks() + "/a.lock", "File too large");
      ++(failure.code ? refused : granted);
    }
  }));
}

TEST_F(FileSystemTroubleTest, ADiskWithoutInodesIsUnavailable) {
  EXPECT_WELL(in_child([&] {
    enter_mount_namespace();
    mount_tmpfs(locks(), "size=1m,nr_inodes=3");
    const auto client = connect(scratch_.url());
    std::vector<Lease> leases;
    Failure failure;
    for (int i = 0; i < 5 && !failure.code; ++i) {
      failure = failure_of([&] { leases.push_back(client.make_lock("l" + std::to_string(i)).acquire({.wait = 0s})); });
    }
    require(!leases.empty(), "no lock at all");
    require_failure(failure, errc::unavailable, locks() + "/l", "No space left");
    for (const auto& finding : client.diagnose()) {
      if (finding.check == "free space") {
        require(finding.severity == Finding::Severity::warning, "diagnose() does not tell: " + finding.message);
        require(finding.message.ends_with(", 0 files: new locks will soon be refused"),
                "not of what: " + finding.message);
      }
    }
  }));
}

TEST_F(FileSystemTroubleTest, AReadOnlyFileSystemDeniesAccess) {
  EXPECT_WELL(in_child([&] {
    enter_mount_namespace();
    mount_tmpfs(locks(), "size=1m");
    const auto token = [&] {
      const auto writer = connect(scratch_.url());
      return writer.make_lock("a").acquire().token();
    }();
    require(::mount("tmpfs", locks().c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, "size=1m") == 0, "remount");
    const auto client = connect(scratch_.url());
    require_failure(try_failure(client, "a"), errc::access_denied, locks() + "/a.lock", "Read-only file system");
    require_failure(try_failure(client, "b"), errc::access_denied, locks() + "/b.lock", "Read-only file system");
    require(client.inspect("a").token == token, "inspect() needs no writing");
    const Failure failure = failure_of([&] { (void)connect("file://" + locks() + "/below"); });
    require_failure(failure, errc::access_denied, locks() + "/below", "Read-only file system");
  }));
}

TEST_F(FileSystemTroubleTest, AForbiddenDirectoryDeniesAccess) {
  ASSERT_EQ(::chmod(scratch_.path().c_str(), 0755), 0);
  ASSERT_EQ(::chmod(locks().c_str(), 0555), 0);
  EXPECT_WELL(in_child([&] {
    become_nobody();
    const auto client = connect(scratch_.url());
    require_failure(try_failure(client, "a"), errc::access_denied, locks() + "/a.lock", "Permission denied");
    const auto started = std::chrono::steady_clock::now();
    const Failure waiting = failure_of([&] { (void)client.make_lock("a").acquire({.wait = hang_guard}); });
    require_failure(waiting, errc::access_denied, locks() + "/a.lock", "Permission denied");
    require(std::chrono::steady_clock::now() - started < hang_guard, "retried what cannot help");
    const Failure failure = failure_of([&] { (void)connect("file://" + locks() + "/below"); });
    require_failure(failure, errc::access_denied, locks() + "/below", "Permission denied");
    for (const auto& finding : client.diagnose()) {
      if (finding.check == "directory") {
        require(finding.severity == Finding::Severity::error, "diagnose() does not tell: " + finding.message);
      }
    }
  }));
}

TEST_F(FileSystemTroubleTest, ADirectoryThatMayNotBeReadDeniesAccess) {
  ASSERT_EQ(::chmod(scratch_.path().c_str(), 0755), 0);
  ASSERT_EQ(::chmod(locks().c_str(), 0), 0);
  EXPECT_WELL(in_child([&] {
    become_nobody();
    const Failure failure = failure_of([&] { (void)connect(scratch_.url()); });
    require_failure(failure, errc::access_denied, locks(), "Permission denied");
  }));
  ASSERT_EQ(::chmod(locks().c_str(), 0755), 0);
}

TEST_F(FileSystemTroubleTest, WithoutTheRightToRemoveFilesNoNameIsForgotten) {
  const auto clock = std::make_shared<ManualClock>();
  const auto use = [&](const Client& client) { require(client.make_lock("a").acquire().release(), "lost"); };
  use(connect(scratch_.url(), {.clock = clock}));
  clock->advance(std::chrono::hours(1));
  ASSERT_EQ(::chmod(scratch_.path().c_str(), 0755), 0);
  ASSERT_EQ(::chmod(locks().c_str(), 0555), 0);
  ASSERT_EQ(::chmod((locks() + "/a.lock").c_str(), 0666), 0);
  EXPECT_WELL(in_child([&] {
    become_nobody();
    const auto client = connect(scratch_.url(), {.clock = clock});
    const Failure one = failure_of([&] { (void)client.forget("a"); });
    require_failure(one, errc::access_denied, locks() + "/a.lock", "cannot remove");
    const Failure all = failure_of([&] { (void)client.forget_idle(std::chrono::minutes(1)); });
    require_failure(all, errc::access_denied, locks() + "/a.lock", "cannot remove");
    use(client);
  }));
  ASSERT_EQ(::chmod(locks().c_str(), 0755), 0);
}

TEST_F(FileSystemTroubleTest, AFileOfAnotherUserDeniesAccess) {
  if (::getuid() != 0) GTEST_SKIP() << "needs privilege: root, to be two users";
  ASSERT_EQ(::chmod(scratch_.path().c_str(), 0755), 0);
  ASSERT_EQ(::chmod(locks().c_str(), 01777), 0);
  {
    const auto owner = connect(scratch_.url());
    const auto lease = owner.make_lock("a").acquire();
  }
  EXPECT_WELL(in_child([&] {
    become_nobody();
    const auto client = connect(scratch_.url());
    require_failure(try_failure(client, "a"), errc::access_denied, locks() + "/a.lock", "Permission denied");
    require(client.make_lock("b").try_acquire().has_value(), "their own is fine");
    require(client.list().size() == 1, "what they may not read is left out");
  }));
}

TEST_F(FileSystemTroubleTest, AGroupSharesItsLocksWhateverTheModeInTheUrl) {
  if (::getuid() != 0) GTEST_SKIP() << "needs privilege: root, to be two users";
  ASSERT_EQ(::chmod(scratch_.path().c_str(), 0755), 0);
  ASSERT_EQ(::chown(locks().c_str(), 0, nobody), 0);
  ASSERT_EQ(::chmod(locks().c_str(), 0770), 0);
  const auto before = ::umask(077);
  auto client = std::make_unique<Client>(connect(scratch_.url()));
  const auto first = client->make_lock("a").acquire().token();
  client.reset();
  ::umask(before);
  EXPECT_WELL(in_child([&] {
    become_nobody();
    const auto member = connect(scratch_.url());
    const auto mine = member.make_lock("a").acquire({.wait = 0s});
    require(mine.token() > first, "the token did not grow");
  }));
}

TEST_F(FileSystemTroubleTest, ANewFileGetsTheDirectorysGroupOrNone) {
  if (::getuid() != 0) GTEST_SKIP() << "needs privilege: root, to be another user";
  constexpr gid_t team = 4711;
  ASSERT_EQ(::chmod(scratch_.path().c_str(), 0755), 0);
  const auto make = [&](uid_t owner, mode_t mode, bool member, const std::string& name) {
    ASSERT_EQ(::chown(locks().c_str(), owner, team), 0);
    ASSERT_EQ(::chmod(locks().c_str(), mode), 0);
    EXPECT_WELL(in_child([&] {
      if (member) {
        require_permitted(::setgroups(1, &team) == 0 && ::setgid(nobody) == 0 && ::setuid(nobody) == 0, "a member");
      } else {
        become_nobody();
      }
      const auto client = connect(scratch_.url());
      require(client.make_lock(name).try_acquire().has_value(), "no lock");
    }));
  };
  const auto expect_file = [&](const std::string& name, gid_t group, mode_t mode) {
    struct stat status {};
    ASSERT_EQ(::stat((locks() + "/" + name + ".lock").c_str(), &status), 0) << name;
    EXPECT_EQ(status.st_gid, group) << name;
    EXPECT_EQ(status.st_mode & 07777, mode) << name;
  };
  make(0, 0770, true, "member");
  expect_file("member", team, 0660);
  make(nobody, 0770, false, "owner");  // who may not give files to a group that is not his: then to none
  expect_file("owner", nobody, 0600);
  make(nobody, 02770, false, "setgid");
  expect_file("setgid", team, 0660);
  make(nobody, 0777, false, "everybody");
  expect_file("everybody", nobody, 0666);
}

TEST_F(FileSystemTroubleTest, RunningOutOfDescriptorsIsUnavailableAndPasses) {
  EXPECT_WELL(in_child([&] {
    const auto client = connect(scratch_.url());
    std::vector<Lease> leases;
    leases.push_back(client.make_lock("first").acquire());
    const rlimit limit{.rlim_cur = open_descriptors() + 8, .rlim_max = open_descriptors() + 8};
    require(::setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
    Failure failure;
    for (int i = 0; i < 20 && !failure.code; ++i) {
      failure = failure_of([&] { leases.push_back(client.make_lock("l" + std::to_string(i)).acquire({.wait = 0s})); });
    }
    require_failure(failure, errc::unavailable, locks() + "/l", "Too many open files");
    for (auto& lease : leases) require(lease.held(), "a holder was disturbed");
    const Failure listing = failure_of([&] { (void)client.list(); });
    require_failure(listing, errc::unavailable, locks(), "Too many open files");
    const Failure forgetting = failure_of([&] { (void)client.forget_idle(std::chrono::minutes(1)); });
    require_failure(forgetting, errc::unavailable, locks(), "Too many open files");
    require(leases.back().release(), "the release failed");
    leases.pop_back();
    require(client.make_lock("another").try_acquire().has_value(), "did not recover");
  }));
}

TEST_F(FileSystemTroubleTest, AMountOverTheDirectoryIsFollowed) {
  EXPECT_WELL(in_child([&] {
    enter_mount_namespace();
    const auto client = connect(scratch_.url());
    const auto below = client.make_lock("a").acquire();
    mount_tmpfs(locks(), "size=1m");
    const auto other = connect(scratch_.url());
    const auto above = other.make_lock("b").acquire();
    require(!client.make_lock("b").try_acquire().has_value(), "two worlds of locks");
    require(wait_for_loss(below), "the lease in the world below was not lost");
  }));
}

TEST_F(FileSystemTroubleTest, AnUnmountFurtherUpIsNoticedWithinASecond) {
  EXPECT_WELL(in_child([&] {
    enter_mount_namespace();
    mount_tmpfs(locks(), "size=1m");
    const std::string url = scratch_.url() + "/app";
    const auto clock = std::make_shared<ManualClock>();
    const auto client = connect(url, {.clock = clock});
    const auto below = client.make_lock("a").acquire();
    require(::umount2(locks().c_str(), MNT_DETACH) == 0, "umount2");
    mount_tmpfs(locks(), "size=1m");
    const auto other = connect(url);
    const auto above = other.make_lock("a").acquire({.wait = 0s});
    clock->advance(1s);
    require(wait_for_loss(below), "two holders, and the first was not told");
    require(above.held(), "the second holder was disturbed");
  }));
}

TEST(SystemFailure, SortsErrorsByWhatTheCallerShouldDo) {
  const std::pair<int, errc> expected[] = {{EACCES, errc::access_denied},     {EPERM, errc::access_denied},
                                           {EROFS, errc::access_denied},      {ENOSPC, errc::unavailable},
                                           {EDQUOT, errc::unavailable},       {EMFILE, errc::unavailable},
                                           {ENFILE, errc::unavailable},       {ENOMEM, errc::unavailable},
                                           {EIO, errc::unavailable},          {ENODEV, errc::unavailable},
                                           {ENOTCONN, errc::unavailable},     {ESTALE, errc::unavailable},
                                           {ENOLCK, errc::unavailable},       {ENOENT, errc::unavailable},
                                           {ENOTDIR, errc::invalid_argument}, {ELOOP, errc::protocol},
                                           {EISDIR, errc::protocol},          {EOPNOTSUPP, errc::unsupported},
                                           {EINVAL, errc::unsupported},       {ENAMETOOLONG, errc::invalid_argument}};
  for (const auto& [error, code] : expected) {
    const Failure failure = system_failure("cannot do", "/it", error);
    EXPECT_EQ(failure.code, code) << std::strerror(error);
    EXPECT_EQ(failure.detail, std::string("cannot do /it: ") + std::strerror(error));
  }
}

}  // namespace
}  // namespace dlock::file::test
