#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "backends/file/file_name.hpp"
#include "backends/file/lock_record.hpp"
#include "support.hpp"

namespace dlock::file::test {
namespace {

namespace fs = std::filesystem;

class FileInspectionTest : public testing::Test {
 protected:
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const auto& info : client_.list()) result.push_back(info.name);
    return result;
  }

  ScratchDirectory scratch_;
  Client client_ = connect(scratch_.url(), {.label = "inspector"});
  Client other_ = connect(scratch_.url(), {.label = "other"});
};

TEST_F(FileInspectionTest, OfANameNeverUsedIsFree) {
  const auto info = client_.inspect("a");
  EXPECT_EQ(info.name, "a");
  EXPECT_FALSE(info.held);
  EXPECT_EQ(info.token.value(), 0U);
  EXPECT_TRUE(info.holder.empty());
  EXPECT_FALSE(fs::exists(scratch_.locks() + "/a.lock")) << "looking made a file";
}

TEST_F(FileInspectionTest, TellsHolderAndTokenOfAHeldLock) {
  auto lease = other_.make_lock("a").acquire();
  for (const Client* client : {&client_, &other_}) {
    const auto info = client->inspect("a");
    EXPECT_TRUE(info.held);
    EXPECT_EQ(info.holder, other_.holder());
    EXPECT_EQ(info.token, lease.token());
    EXPECT_FALSE(info.remaining.has_value());
    EXPECT_FALSE(info.waiters.has_value());
  }
  EXPECT_TRUE(lease.release());
  const auto info = client_.inspect("a");
  EXPECT_FALSE(info.held);
  EXPECT_EQ(info.token, lease.token());
  EXPECT_TRUE(info.holder.empty());
}

TEST_F(FileInspectionTest, OfAStrangersFileIsAnError) {
  write_file(scratch_.locks() + "/a.lock", "not a lock\n");
  EXPECT_EQ(failure_of([&] { (void)client_.inspect("a"); }).code, errc::protocol);
  fs::create_directory(scratch_.locks() + "/b.lock");
  EXPECT_EQ(failure_of([&] { (void)client_.inspect("b"); }).code, errc::protocol);
}

TEST_F(FileInspectionTest, ListsAllLocksSortedHeldOrRemembered) {
  const std::string longest(512, '/');
  auto held = other_.make_lock("b/2").acquire();
  const auto token = other_.make_lock("a").acquire().token();
  (void)other_.make_lock(longest).acquire();
  const auto locks = client_.list();
  ASSERT_EQ(locks.size(), 3U);
  EXPECT_EQ(locks[0].name, longest);
  EXPECT_FALSE(locks[0].held);
  EXPECT_EQ(locks[1].name, "a");
  EXPECT_FALSE(locks[1].held);
  EXPECT_EQ(locks[1].token, token);
  EXPECT_EQ(locks[2].name, "b/2");
  EXPECT_TRUE(locks[2].held);
  EXPECT_EQ(locks[2].holder, other_.holder());
  EXPECT_EQ(locks[2].token, held.token());
}

TEST_F(FileInspectionTest, ListsNoStrangersFiles) {
  const std::string at = scratch_.locks() + "/";
  (void)other_.make_lock("mine").acquire();
  write_file(at + "notes.txt", "x");
  write_file(at + "empty.lock", "");
  write_file(at + "strange.lock", "not a lock\n");
  write_file(at + "a b.lock", "");
  write_file(at + ".hidden.lock", "");
  write_file(at + "bad%00name.lock", "");
  fs::create_directory(at + "directory.lock");
  fs::create_symlink(at + "mine.lock", at + "link.lock");
  ASSERT_EQ(::mkfifo((at + "fifo.lock").c_str(), 0600), 0);
  // Another lock's record under a name that is not its own.
  write_file(at + "moved.lock", format_block({.token = 5}, "elsewhere") + format_name_line("elsewhere"));
  const std::string shortened = encode_file_name(std::string(300, 'x'));
  write_file(at + shortened, format_block({.token = 5}, "elsewhere") + format_name_line("elsewhere"));
  EXPECT_EQ(names(), std::vector<std::string>{"mine"});
}

TEST_F(FileInspectionTest, ListsAHeldLockWithoutARecord) {
  const std::string file = scratch_.locks() + "/a.lock";
  write_file(file, "");
  const int fd = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_TRUE(take_lock(fd, file).ok());
  const auto locks = client_.list();
  ASSERT_EQ(locks.size(), 1U);
  EXPECT_TRUE(locks[0].held);
  EXPECT_EQ(locks[0].token.value(), 0U);
  ::close(fd);
}

TEST_F(FileInspectionTest, BreakIsRefusedAndNamesTheHolder) {
  const auto lease = other_.make_lock("a").acquire();
  const Failure held = failure_of([&] { (void)client_.break_lock("a"); });
  EXPECT_EQ(held.code, errc::unsupported);
  EXPECT_NE(held.detail.find("process " + std::to_string(::getpid())), std::string::npos) << held.detail;
  EXPECT_NE(held.detail.find(other_.holder()), std::string::npos) << held.detail;
  EXPECT_TRUE(lease.held());
  const Failure free = failure_of([&] { (void)client_.break_lock("b"); });
  EXPECT_EQ(free.code, errc::unsupported);
  EXPECT_EQ(free.detail.find("process " + std::to_string(::getpid())), std::string::npos) << free.detail;
}

}  // namespace
}  // namespace dlock::file::test
