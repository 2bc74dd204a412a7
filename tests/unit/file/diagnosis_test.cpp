#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>

#include "support.hpp"

namespace dlock::file::test {
namespace {

using Severity = Finding::Severity;

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

Finding finding_of(const std::string& check, const Client& client) {
  const auto findings = client.diagnose();
  const auto found =
      std::find_if(findings.begin(), findings.end(), [&](const Finding& each) { return each.check == check; });
  return found != findings.end() ? *found : Finding{Severity::error, check, "there is no such check"};
}

class FileDiagnosisTest : public testing::Test {
 protected:
  [[nodiscard]] Finding finding(const std::string& check) const { return finding_of(check, client_); }

  ScratchDirectory scratch_;
  Client client_ = connect(scratch_.url());
};

TEST_F(FileDiagnosisTest, IsContentWithAGoodDirectory) {
  (void)client_.make_lock("a").acquire();
  for (const std::string check : {"directory", "file system", "inotify", "free space", "lock files", "permissions"}) {
    EXPECT_EQ(finding(check).severity, Severity::ok) << check << ": " << finding(check).message;
  }
  EXPECT_NE(finding("directory").message.find(scratch_.locks()), std::string::npos);
  EXPECT_NE(finding("directory").message.find("0700"), std::string::npos);
  EXPECT_NE(finding("descriptors").message.find("at most"), std::string::npos);
}

TEST_F(FileDiagnosisTest, WarnsOfADirectoryWhereAnybodyMayRemoveFiles) {
  ASSERT_EQ(::chmod(scratch_.locks().c_str(), 0777), 0);
  EXPECT_EQ(finding("directory").severity, Severity::warning);
  EXPECT_NE(finding("directory").message.find("every user"), std::string::npos);
}

TEST_F(FileDiagnosisTest, WarnsOfADirectoryWhereAnybodyMayMakeALocksFileFirst) {
  ASSERT_EQ(::chmod(scratch_.locks().c_str(), 01777), 0);
  EXPECT_EQ(finding("directory").severity, Severity::warning);
  EXPECT_NE(finding("directory").message.find("first"), std::string::npos) << finding("directory").message;
}

TEST_F(FileDiagnosisTest, WarnsOfLockFilesOfOtherUsers) {
  if (::getuid() != 0) GTEST_SKIP() << "needs privilege: root, to give a file away";
  (void)client_.make_lock("a").acquire();
  (void)client_.make_lock("b").acquire();
  const std::string file = scratch_.locks() + "/b.lock";
  ASSERT_EQ(::chown(file.c_str(), 4711, 0), 0);
  EXPECT_EQ(finding("permissions").severity, Severity::warning);
  EXPECT_NE(
      finding("permissions").message.find("1 of 2 lock files belong to other users, e.g. " + file + ", owner 4711"),
      std::string::npos)
      << finding("permissions").message;
  ASSERT_EQ(::chmod(scratch_.locks().c_str(), 0770), 0);
  EXPECT_EQ(finding("permissions").severity, Severity::note) << "in a group's directory that is as it should be";
}

TEST_F(FileDiagnosisTest, WarnsOfAccessControlLists) {
  (void)client_.make_lock("a").acquire();
  const std::string file = scratch_.locks() + "/a.lock";
  if (!let_another_user_write(file)) GTEST_SKIP() << "no access control lists on this file system";
  EXPECT_EQ(finding("permissions").severity, Severity::ok) << "nobody else comes into the directory";
  ASSERT_EQ(::chmod(scratch_.locks().c_str(), 0711), 0);
  EXPECT_EQ(finding("permissions").severity, Severity::warning);
  EXPECT_NE(finding("permissions").message.find(file), std::string::npos) << finding("permissions").message;
  EXPECT_NE(finding("permissions").message.find("access control list"), std::string::npos);
  EXPECT_EQ(finding("directory").severity, Severity::ok);
  ASSERT_TRUE(let_another_user_write(scratch_.locks()));
  EXPECT_EQ(finding("directory").severity, Severity::warning);
  EXPECT_NE(finding("directory").message.find("access control list"), std::string::npos)
      << finding("directory").message;
}

TEST_F(FileDiagnosisTest, WarnsOfADirectoryOfAnotherUser) {
  if (::getuid() != 0) GTEST_SKIP() << "needs privilege: root, to give a directory away";
  ASSERT_EQ(::chown(scratch_.locks().c_str(), 4711, 0), 0);
  EXPECT_EQ(finding("directory").severity, Severity::warning);
  EXPECT_NE(finding("directory").message.find("belongs to another user"), std::string::npos);
}

TEST_F(FileDiagnosisTest, WarnsOfLockFilesThatAreOpenToAll) {
  (void)client_.make_lock("a").acquire();
  (void)client_.make_lock("b").acquire();
  const std::string file = scratch_.locks() + "/b.lock";
  ASSERT_EQ(::chmod(file.c_str(), 0604), 0);
  EXPECT_EQ(finding("permissions").severity, Severity::ok) << "nobody else comes into the directory";
  ASSERT_EQ(::chmod(scratch_.locks().c_str(), 0711), 0);
  EXPECT_EQ(finding("permissions").severity, Severity::warning);
  EXPECT_NE(finding("permissions").message.find("1 of 2"), std::string::npos) << finding("permissions").message;
  EXPECT_NE(finding("permissions").message.find(file), std::string::npos);
  ASSERT_EQ(::chmod(file.c_str(), 0660), 0);
  EXPECT_EQ(finding("permissions").severity, Severity::ok);
}

TEST_F(FileDiagnosisTest, WhatIsNoPlainFileIsOpenToNobody) {
  (void)client_.make_lock("a").acquire();
  ASSERT_EQ(::chmod(scratch_.locks().c_str(), 0711), 0);
  std::filesystem::create_symlink("a.lock", scratch_.locks() + "/link.lock");  // its mode says 0777, as that of each
  EXPECT_EQ(finding("permissions").severity, Severity::ok) << finding("permissions").message;
}

TEST_F(FileDiagnosisTest, NotesALimitOfDescriptorsThatLeavesRoomForFewLocks) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  if (before.rlim_max < 1024) return;
  const auto severity_with = [&](rlim_t descriptors) {
    const rlimit limit{descriptors, before.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
    const auto severity = finding("descriptors").severity;
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    return severity;
  };
  EXPECT_EQ(severity_with(1024), Severity::ok);
  EXPECT_EQ(severity_with(1023), Severity::note);
}

TEST_F(FileDiagnosisTest, WarnsOfADirectoryThatWasMovedAway) {
  std::filesystem::rename(scratch_.locks(), scratch_.path() + "/moved");
  EXPECT_EQ(finding("directory").severity, Severity::warning);
}

TEST_F(FileDiagnosisTest, WarnsOfFilesThatAreNotLocks) {
  write_file(scratch_.locks() + "/a.lock", "not a lock\n");
  EXPECT_EQ(finding("lock files").severity, Severity::warning);
  EXPECT_NE(finding("lock files").message.find("/a.lock"), std::string::npos) << finding("lock files").message;
  write_file(scratch_.locks() + "/b.txt", "not a lock\n");
  EXPECT_NE(finding("lock files").message.find("1 of them"), std::string::npos) << finding("lock files").message;
}

// Without a client, whose thread its children would lack.
class FileReachTest : public ::testing::Test {
 protected:
  ScratchDirectory scratch_;
};

// As PrivateTmp= of systemd makes one, and as it makes one whose content is that of the host (BindPaths=).
TEST_F(FileReachTest, WarnsOfADirectoryThatIsPrivateToAMountNameSpace) {
  const std::string below = scratch_.path() + "/a b\\c";
  std::filesystem::create_directory(below);
  EXPECT_EQ(finding_of("reach", connect("file://" + scratch_.path() + "/a%20b%5Cc/locks")).message.find("private"),
            std::string::npos);
  EXPECT_WELL(in_child([&] {
    enter_mount_namespace();
    const auto reach = [&] { return finding_of("reach", connect("file://" + scratch_.path() + "/a%20b%5Cc/locks")); };
    require(reach().message.starts_with("process 1 finds the same") || reach().severity == Severity::note,
            "only unshared: " + reach().message);
    require(::mount(below.c_str(), below.c_str(), nullptr, MS_BIND, nullptr) == 0, "bind");
    require(reach().message.find("private") == std::string::npos, "the same directory: " + reach().message);
    mount_tmpfs(scratch_.path(), "size=1m");
    require(::mkdir(below.c_str(), 0700) == 0, "mkdir");
    require(reach().severity == Severity::warning && reach().message.starts_with("private to this mount name space"),
            "another directory: " + reach().message);
  }));
}

TEST_F(FileReachTest, WarnsOfADirectoryThatEndsWithALogin) {
  EXPECT_WELL(in_child([] {
    enter_mount_namespace();
    mount_tmpfs("/run/user", "size=1m");
    const Finding reach = finding_of("reach", connect("file:///run/user/1000/dlock"));
    require(reach.severity == Severity::warning && reach.message.find("last session of its user") != std::string::npos,
            reach.message);
  }));
}

}  // namespace
}  // namespace dlock::file::test
