// Full, read-only, forbidden and missing: on real file systems, mounted in a mount namespace of the test's own.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <thread>

#include "backends/file/lock_file.hpp"
#include "backends/file/lock_record.hpp"
#include "tests/unit/file/member.hpp"
#include "tests/unit/file/support.hpp"
#include "util/unique_fd.hpp"

namespace dlock::file::test {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;
using testing::HasSubstr;

void require_failure(const Failure& failure, errc code, const std::string& path, const std::string& text) {
  require(failure.code == code, "another code: " + failure.code.message() + ": " + failure.detail);
  require(failure.detail.find(path) != std::string::npos, "no path: " + failure.detail);
  require(failure.detail.find(text) != std::string::npos, "another text: " + failure.detail);
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
  FileSystemTroubleTest() {
    fs::create_directory(locks());
    set_mode(scratch_.path(), 0755);
  }
  ~FileSystemTroubleTest() override { set_mode(locks(), 0755); }

  [[nodiscard]] std::string locks() const { return scratch_.locks(); }
  [[nodiscard]] std::string file(const std::string& name) const { return locks() + "/" + name + ".lock"; }
  static void set_mode(const std::string& path, mode_t mode) { ASSERT_EQ(::chmod(path.c_str(), mode), 0); }
  static void limit_file_sizes(rlim_t size) {
    rlimit limit{};
    require(::getrlimit(RLIMIT_FSIZE, &limit) == 0, "getrlimit");
    limit.rlim_cur = std::min(size, limit.rlim_max);
    require(::setrlimit(RLIMIT_FSIZE, &limit) == 0, "setrlimit");
  }
  // A try that fails, as does a wait.
  void require_refused(Member& member, const std::string& name, errc code, const std::string& text,
                       Mode mode = Mode::exclusive, const std::string& path = {}) const {
    for (const bool wait : {false, true}) {
      const TryOutcome outcome = member.ask(member.request(mode, wait, name));
      require(outcome.status == TryOutcome::Status::failed, "not refused");
      require_failure(outcome.failure, code, path.empty() ? file(name) : path, text);
      member.executor.run();
    }
  }
  static void require_granted(Member& member, const std::string& name) {
    require(member.enter(Mode::exclusive, name), "no lock " + name);
  }

  ScratchDirectory scratch_;
};

// Were a new lock half granted, the other member could not enter it once there is space.
// Shows: nothing-guessed
TEST_F(FileSystemTroubleTest, DiskFull_RefusesOnlyNewLocks) {
  EXPECT_WELL(in_child([&] {
    enter_mount_namespace();
    mount_tmpfs(locks(), "size=256k");
    std::array<Member, 2> members{Member(locks(), LockKind::lock, 1), Member(locks(), LockKind::lock, 2)};
    FencingToken newest;
    const auto require_use = [&](Member& member, const std::string& name) {
      require_granted(member, name);
      if (name == "a") require(member.grants[0].token > std::exchange(newest, member.grants[0].token), "token");
      require(member.leave(), "lost " + name);
    };
    for (int round = 0; round < 10; ++round) {
      const std::string fresh = "fresh" + std::to_string(round);
      require_use(members[0], "a");
      fill(locks() + "/filler");
      require_refused(members[0], fresh, errc::unavailable, "No space left on device");
      for (Member& each : members) require_use(each, "a");
      fs::remove(locks() + "/filler");
      require_use(members[1], fresh);
    }
  }));
}

TEST_F(FileSystemTroubleTest, DiskFull_WaitersDoNotWakeEachOther) {
  EXPECT_WELL(in_child([&] {
    enter_mount_namespace();
    mount_tmpfs(locks(), "size=64k");
    // Held by a program without a record, so that there is still everything to be written.
    util::UniqueFd stranger(::open(file("a").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    require(take_lock(stranger.get(), file("a")).ok(), "take_lock");
    fill(locks() + "/filler");
    std::array<Member, 2> members{Member(locks(), LockKind::lock, 1), Member(locks(), LockKind::lock, 2)};
    std::array<dlock::test::Attempt, 2> attempts;
    const auto tries_in = [&](std::chrono::milliseconds time) {
      std::uint64_t tries = 0;
      for (; time > 0ms; time -= 1ms) {
        for (Member& each : members) each.executor.advance(1ms);
      }
      for (Member& each : members) tries += each.backend.kernel_tries();
      return tries;
    };
    for (std::size_t i = 0; i < members.size(); ++i) {
      attempts[i].request = members[i].request(Mode::exclusive, true);
      attempts[i].contention = members[i].backend.contend(attempts[i].request, attempts[i]);
    }
    require(tries_in(500ms) < 10, "somebody tries without a reason");
    drop_lock(stranger.get());
    stranger.reset();
    // Time for a few tries of each, 20 ms apart and more; a storm makes thousands.
    const auto tries = tries_in(500ms);
    require(tries > 10 && tries < 100, "tries: " + std::to_string(tries));
    fs::remove(locks() + "/filler");
    (void)tries_in(2s);
    require(attempts[0].grant.has_value() != attempts[1].grant.has_value(), "did not recover");
  }));
}

// Shows: nothing-guessed
TEST_F(FileSystemTroubleTest, PartialWrite_IsUndone) {
  for (const LockKind kind : all_kinds) {
    const Mode mode = kind == LockKind::read_write ? Mode::shared : Mode::exclusive;
    const std::string directory = locks() + subdirectory(kind);
    EXPECT_WELL(in_child([&] {
      Member old(locks(), kind, 1);
      require(old.enter(mode), "no lock");
      const FencingToken token = old.grants[0].token;
      require(old.leave(), "not ours");
      const std::string before = read_file(directory + "/a.lock").substr(0, record_block);
      // The kernel writes up to the limit and refuses the rest. Of other kinds than plain locks, the record has room,
      // and what is written beside it has not.
      limit_file_sizes(kind == LockKind::lock ? 100 : record_end + 100);
      Member one(locks(), kind, 2);
      one.value = std::string(200, 'v');
      for (const std::string name : {"a", "new"}) {
        require_refused(one, name, errc::access_denied, "File too large", mode, directory + "/" + name + ".lock");
      }
      require(read_file(directory + "/new.lock").empty(), "something stayed in the new file");
      require(read_file(directory + "/a.lock").substr(0, record_block) == before, "another record");
      require(!one.inspect().held, "half a grant stayed behind");
      limit_file_sizes(RLIM_INFINITY);
      Member next(locks(), kind, 3);
      next.permits = 2;
      require(next.enter() && next.grants[0].token > token && next.enter(Mode::exclusive, "new"), "did not recover");
    }));
  }
}

// By default, the signal of the kernel would end the program.
TEST_F(FileSystemTroubleTest, FileSizeLimit_LeavesSignalsAlone) {
  EXPECT_WELL(in_child([&] {
    limit_file_sizes(0);
    Member member(locks(), LockKind::lock, 1);
    sigset_t signal;
    ::sigemptyset(&signal);
    ::sigaddset(&signal, SIGXFSZ);
    sigset_t found;
    const auto pends = [&] { return ::sigpending(&found) == 0 && ::sigismember(&found, SIGXFSZ) == 1; };
    require(::sigprocmask(SIG_BLOCK, &signal, &found) == 0 && ::sigismember(&found, SIGXFSZ) == 0, "blocked before");
    require_refused(member, "a", errc::access_denied, "File too large");
    require(!pends(), "the signal of the write is still pending");
    require(::raise(SIGXFSZ) == 0, "raise");
    require_refused(member, "a", errc::access_denied, "File too large");
    require(pends(), "the signal of the program was taken");
    require(::sigprocmask(SIG_BLOCK, nullptr, &found) == 0 && ::sigismember(&found, SIGXFSZ) == 1, "unblocked");
  }));
}

TEST_F(FileSystemTroubleTest, FileSizeLimitChanged_DoesNotEndTheProgram) {
  EXPECT_WELL(in_child([&] {
    Member member(locks(), LockKind::lock, 1);
    std::jthread changing([](const std::stop_token& stop) {
      for (bool low = true; !stop.stop_requested(); low = !low) limit_file_sizes(low ? 0 : RLIM_INFINITY);
    });
    for (int granted = 0, refused = 0; granted < 100 || refused < 100;) {
      const TryOutcome outcome = member.ask(member.request());
      const bool failed = outcome.status == TryOutcome::Status::failed;
      if (failed) require_failure(outcome.failure, errc::access_denied, file("a"), "File too large");
      require(failed || member.release(outcome.grant), "lost");
      ++(failed ? refused : granted);
    }
  }));
}

TEST_F(FileSystemTroubleTest, NoInodes_IsUnavailable) {
  EXPECT_WELL(in_child([&] {
    enter_mount_namespace();
    mount_tmpfs(locks(), "size=1m,nr_inodes=3");
    Member member(locks(), LockKind::lock, 1);
    for (const std::string name : {"one", "two"}) require_granted(member, name);
    require_refused(member, "three", errc::unavailable, "No space left");
    const Finding space = member.finding("free space");
    require(space.severity == Finding::Severity::warning, "diagnose() does not tell: " + space.message);
    require(space.message.ends_with(", 0 files: new locks will soon be refused"), "not of what: " + space.message);
  }));
}

TEST_F(FileSystemTroubleTest, ReadOnlyFileSystem_DeniesAccess) {
  EXPECT_WELL(in_child([&] {
    enter_mount_namespace();
    mount_tmpfs(locks(), "size=1m");
    Member member(locks(), LockKind::lock, 1);
    require_granted(member, "a");
    const FencingToken token = member.grants[0].token;
    require(member.leave(), "lost");
    require(::mount("tmpfs", locks().c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, "size=1m") == 0, "remount");
    for (const std::string name : {"a", "b"}) {
      require_refused(member, name, errc::access_denied, "Read-only file system");
    }
    require(member.inspect().token == token, "inspect() needs no writing");
    const Failure failure = thrown_by([&] { (void)connect("file://" + locks() + "/below"); });
    require_failure(failure, errc::access_denied, locks() + "/below", "Read-only file system");
  }));
}

TEST_F(FileSystemTroubleTest, ForbiddenDirectory_DeniesAccess) {
  set_mode(locks(), 0555);
  EXPECT_WELL(in_child([&] {
    become_nobody();
    Member member(locks(), LockKind::lock, 1);
    require_refused(member, "a", errc::access_denied, "Permission denied");
    const Failure failure = thrown_by([&] { (void)connect("file://" + locks() + "/below"); });
    require_failure(failure, errc::access_denied, locks() + "/below", "Permission denied");
    const Finding directory = member.finding("directory");
    require(directory.severity == Finding::Severity::error, "diagnose() does not tell: " + directory.message);
  }));
  set_mode(locks(), 0);
  EXPECT_WELL(in_child([&] {
    become_nobody();
    const Failure failure = thrown_by([&] { (void)connect(scratch_.url()); });
    require_failure(failure, errc::access_denied, locks(), "Permission denied");
  }));
}

TEST_F(FileSystemTroubleTest, KindDirectoryRemoved_IsReportedAndMadeAgain) {
  for (const LockKind kind : {LockKind::read_write, LockKind::semaphore, LockKind::election}) {
    const std::string directory = locks() + subdirectory(kind);
    Member one(locks(), kind, 1);
    EXPECT_TRUE(one.enter());
    EXPECT_EQ(one.finding("lock files").severity, Finding::Severity::ok);
    write_file(directory + "/b.lock", "not a lock\n");
    EXPECT_EQ(one.finding("lock files").severity, Finding::Severity::warning);
    EXPECT_THAT(one.finding("lock files").message, HasSubstr(directory + "/b.lock"));
    fs::remove_all(directory);
    one.executor.run();
    ASSERT_EQ(one.host.losses.size(), 1U);
    EXPECT_THAT(one.host.losses[0].why.detail, HasSubstr(std::string(to_string(kind)) + " \"a\""));
    EXPECT_FALSE(one.leave());
    EXPECT_TRUE(one.enter());
    EXPECT_TRUE(fs::exists(directory + "/a.lock"));
  }
}

TEST_F(FileSystemTroubleTest, MayNotRemoveFiles_ForgetsNothing) {
  const auto clock = std::make_shared<ManualClock>();
  const auto use = [&](const Client& client) { require(client.make_lock("a").acquire().release(), "lost"); };
  use(connect(scratch_.url(), {.clock = clock}));
  clock->advance(std::chrono::hours(1));
  set_mode(locks(), 0555);
  set_mode(file("a"), 0666);
  EXPECT_WELL(in_child([&] {
    become_nobody();
    const auto client = connect(scratch_.url(), {.clock = clock});
    const Failure one = thrown_by([&] { (void)client.forget("a"); });
    require_failure(one, errc::access_denied, file("a"), "cannot remove");
    const Failure all = thrown_by([&] { (void)client.forget_idle(std::chrono::minutes(1)); });
    require_failure(all, errc::access_denied, file("a"), "cannot remove");
    use(client);
  }));
}

TEST_F(FileSystemTroubleTest, FileOfAnotherUser_DeniesAccess) {
  if (::getuid() != 0) GTEST_SKIP() << "needs privilege: root, to be two users";
  set_mode(locks(), 01777);
  EXPECT_TRUE(Member(locks(), LockKind::lock, 1).enter());
  EXPECT_WELL(in_child([&] {
    become_nobody();
    Member member(locks(), LockKind::lock, 2);
    require_refused(member, "a", errc::access_denied, "Permission denied");
    require_granted(member, "b");
    require(member.list().size() == 1, "what they may not read is left out");
  }));
}

TEST_F(FileSystemTroubleTest, NewFile_GetsTheDirectorysGroupOrNone) {
  if (::getuid() != 0) GTEST_SKIP() << "needs privilege: root, to be another user";
  constexpr gid_t team = 4711;
  struct Row {
    const char* name;
    uid_t owner;
    mode_t mode;
    bool member;
    gid_t group_of_file;
    mode_t mode_of_file;
  };
  // An owner may not give files to a group that is not his: then to none.
  for (const Row& row :
       {Row{"member", 0, 0770, true, team, 0660}, Row{"owner", nobody, 0770, false, nobody, 0600},
        Row{"setgid", nobody, 02770, false, team, 0660}, Row{"everybody", nobody, 0777, false, nobody, 0666}}) {
    ASSERT_EQ(::chown(locks().c_str(), row.owner, team), 0);
    set_mode(locks(), row.mode);
    EXPECT_WELL(in_child([&] {
      if (row.member) {
        require_permitted(::setgroups(1, &team) == 0 && ::setgid(nobody) == 0 && ::setuid(nobody) == 0, "a member");
      } else {
        become_nobody();
      }
      Member member(locks(), LockKind::lock, 1);
      require_granted(member, row.name);
    }));
    struct stat status {};
    ASSERT_EQ(::stat(file(row.name).c_str(), &status), 0) << row.name;
    EXPECT_EQ(status.st_gid, row.group_of_file) << row.name;
    EXPECT_EQ(status.st_mode & 07777, row.mode_of_file) << row.name;
  }
}

// Shows: hole file-parent-changed
TEST_F(FileSystemTroubleTest, MountOverTheDirectory_IsFollowed) {
  EXPECT_WELL(in_child([&] {
    enter_mount_namespace();
    Member below(locks(), LockKind::lock, 1);
    require_granted(below, "a");
    mount_tmpfs(locks(), "size=1m");
    Member above(locks(), LockKind::lock, 2);
    require_granted(above, "b");
    require(!below.enter(Mode::exclusive, "b"), "two worlds of locks");
    below.executor.run();
    require(below.host.losses.size() == 1, "the lease in the world below was not lost");
  }));
}

// Shows: hole file-parent-changed
TEST_F(FileSystemTroubleTest, UnmountAbove_IsNoticedWithinASecond) {
  EXPECT_WELL(in_child([&] {
    enter_mount_namespace();
    mount_tmpfs(locks(), "size=1m");
    Member below(locks() + "/app", LockKind::lock, 1);
    require_granted(below, "a");
    require(::umount2(locks().c_str(), MNT_DETACH) == 0, "umount2");
    mount_tmpfs(locks(), "size=1m");
    Member above(locks() + "/app", LockKind::lock, 2);
    require_granted(above, "a");
    below.executor.advance(1s);
    require(below.host.losses.size() == 1, "two holders, and the first was not told");
    above.executor.advance(1s);
    require(above.host.losses.empty() && above.leave(), "the second holder was disturbed");
  }));
}

TEST(SystemFailure, Errors_AreSortedByRemedy) {
  const std::pair<errc, std::vector<int>> expected[] = {
      {errc::access_denied, {EACCES, EPERM, EROFS, EFBIG}},
      {errc::invalid_argument, {ENOTDIR, ENAMETOOLONG}},
      {errc::protocol, {ELOOP, EISDIR, ENXIO}},
      {errc::unsupported, {EOPNOTSUPP, EINVAL, ENOSYS}},
      {errc::unavailable, {ENOSPC, EDQUOT, EMFILE, ENFILE, ENOMEM, EIO, ENODEV, ENOTCONN, ESTALE, ENOLCK, ENOENT}}};
  for (const auto& [code, errors] : expected) {
    for (const int error : errors) {
      const Failure failure = system_failure("cannot do", "/it", error);
      EXPECT_EQ(failure.code, code) << std::strerror(error);
      EXPECT_EQ(failure.detail, std::string("cannot do /it: ") + std::strerror(error));
    }
  }
}

}  // namespace
}  // namespace dlock::file::test
