#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "tests/unit/file/member.hpp"
#include "tests/unit/file/support.hpp"

namespace dlock::file::test {
namespace {

using Severity = Finding::Severity;
using testing::HasSubstr;
using testing::Not;

// setfacl -m u:4711:rwx, as the kernel takes it (acl(5), little-endian): false where there are no such lists.
bool let_another_user_write(const std::string& path) {
  struct Entry {
    std::uint16_t tag;
    std::uint16_t permissions;
    std::uint32_t id;
  };
  constexpr std::uint32_t nobody = 0xffffffff;
  struct {
    std::uint32_t version = 2;
    Entry owner{0x01, 7, nobody};
    Entry user{0x02, 7, 4711};
    Entry group{0x04, 0, nobody};
    Entry mask{0x10, 7, nobody};
    Entry others{0x20, 1, nobody};
  } const list;
  return ::setxattr(path.c_str(), "system.posix_acl_access", &list, sizeof list, 0) == 0;
}

class FileDiagnosisTest : public testing::Test {
 protected:
  void expect(const std::string& check, Severity severity, const std::string& text = {}) {
    const Finding finding = member_.finding(check);
    EXPECT_EQ(finding.severity, severity) << finding.message;
    EXPECT_THAT(finding.message, HasSubstr(text));
  }
  void set_mode(const std::string& path, mode_t mode) { ASSERT_EQ(::chmod(path.c_str(), mode), 0); }
  // Two locks that were used.
  void make_files() {
    for (const std::string name : {"a", "b"}) EXPECT_TRUE(member_.enter(Mode::exclusive, name) && member_.leave());
  }

  ScratchDirectory scratch_;
  const std::string locks_ = scratch_.locks();
  const std::string file_ = locks_ + "/b.lock";
  Member member_{locks_, LockKind::lock, 1};
};

TEST_F(FileDiagnosisTest, GoodDirectory_HasNoWarnings) {
  make_files();
  for (const std::string check : {"file system", "inotify", "free space", "lock files"}) expect(check, Severity::ok);
  expect("directory", Severity::ok, locks_ + ", mode 0700, owner ");
  expect("permissions", Severity::ok, "no lock file is open to all users of this machine or belongs to another user");
  EXPECT_THAT(member_.finding("descriptors").message, HasSubstr("at most"));
}

// Shows: hole file-other-user
TEST_F(FileDiagnosisTest, OthersMayRemoveFiles_IsWarnedOf) {
  set_mode(locks_, 0777);
  expect("directory", Severity::warning, "; every user can remove or replace the files of held locks");
  set_mode(locks_, 01777);
  expect("directory", Severity::warning, "; any user can create a lock's file first");
  std::filesystem::rename(locks_, scratch_.path() + "/moved");
  expect("directory", Severity::warning, " was moved or removed since it was opened");
}

// Shows: hole file-other-user
TEST_F(FileDiagnosisTest, FilesOfOtherUsers_AreWarnedOf) {
  if (::getuid() != 0) GTEST_SKIP() << "needs privilege: root, to give files away";
  make_files();
  ASSERT_EQ(::chown(file_.c_str(), 4711, 0), 0);
  expect("permissions", Severity::warning,
         "1 of 2 lock files belong to other users, e.g. " + file_ + ", owner 4711: an owner can hold such a lock");
  set_mode(locks_, 0770);
  expect("permissions", Severity::note);  // in a group's directory that is as it should be
  ASSERT_EQ(::chown(locks_.c_str(), 4711, 0), 0);
  expect("directory", Severity::warning, "; it belongs to another user");
}

// Shows: hole file-other-user
TEST_F(FileDiagnosisTest, AccessControlLists_AreWarnedOf) {
  make_files();
  if (!let_another_user_write(file_)) GTEST_SKIP() << "no access control lists on this file system";
  expect("permissions", Severity::ok);  // nobody else comes into the directory
  set_mode(locks_, 0711);
  expect("permissions", Severity::warning, "1 of 2 lock files have an access control list (getfacl), e.g. " + file_);
  expect("directory", Severity::ok);
  ASSERT_TRUE(let_another_user_write(locks_));
  expect("directory", Severity::warning, "; its access control list (getfacl) may let others write");
}

TEST_F(FileDiagnosisTest, FilesOpenToAll_AreWarnedOf) {
  make_files();
  std::filesystem::create_symlink("a.lock", locks_ + "/link.lock");  // its mode says 0777, as that of each
  set_mode(file_, 0604);
  expect("permissions", Severity::ok);  // nobody else comes into the directory
  set_mode(locks_, 0711);
  expect("permissions", Severity::warning,
         "1 of 3 lock files are open to all users of this machine, e.g. " + file_ + ", mode 0604: any of them can");
  set_mode(file_, 0660);
  expect("permissions", Severity::ok);
}

TEST_F(FileDiagnosisTest, FewDescriptors_AreNoted) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  if (before.rlim_max < 1024) return;
  for (const auto& [descriptors, severity] : {std::pair(1024, Severity::ok), std::pair(1023, Severity::note)}) {
    const rlimit limit{static_cast<rlim_t>(descriptors), before.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
    expect("descriptors", severity);
  }
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST_F(FileDiagnosisTest, FilesThatAreNoLocks_AreWarnedOf) {
  make_files();
  write_file(locks_ + "/c.lock", "not a lock\n");
  write_file(locks_ + "/d.txt", "not a lock\n");
  expect("lock files", Severity::warning, "3, 1 of them not readable, e.g. " + locks_ + "/c.lock");
}

class FileReachTest : public ::testing::Test {
 protected:
  static Finding reach(const std::string& path) { return Member(path, LockKind::lock, 1).finding("reach"); }

  ScratchDirectory scratch_;
};

// As PrivateTmp= of systemd makes one, and as it makes one whose content is that of the host (BindPaths=).
// Shows: hole file-other-directory
TEST_F(FileReachTest, DirectoryOfAMountNamespace_IsWarnedOf) {
  const std::string below = scratch_.path() + "/a b\\c";
  const std::string locks = below + "/locks";
  std::filesystem::create_directory(below);
  EXPECT_THAT(reach(locks).message, Not(HasSubstr("private")));
  EXPECT_WELL(in_child([&] {
    enter_mount_namespace();
    require(reach(locks).message.starts_with("process 1 finds the same") || reach(locks).severity == Severity::note,
            "only unshared: " + reach(locks).message);
    require(::mount(below.c_str(), below.c_str(), nullptr, MS_BIND, nullptr) == 0, "bind");
    require(reach(locks).message.find("private") == std::string::npos, "the same directory: " + reach(locks).message);
    mount_tmpfs(scratch_.path(), "size=1m");
    require(::mkdir(below.c_str(), 0700) == 0, "mkdir");
    require(reach(locks).severity == Severity::warning, "another directory: " + reach(locks).message);
    require(reach(locks).message.starts_with("private to this mount name space"), reach(locks).message);
  }));
}

TEST_F(FileReachTest, DirectoryOfALogin_IsWarnedOf) {
  EXPECT_WELL(in_child([] {
    enter_mount_namespace();
    mount_tmpfs("/run/user", "size=1m");
    const Finding finding = reach("/run/user/1000/dlock");
    require(finding.severity == Severity::warning, finding.message);
    require(finding.message.find("last session of its user") != std::string::npos, finding.message);
  }));
}

}  // namespace
}  // namespace dlock::file::test
