#include "backends/file/lock_directory.hpp"

#include <gtest/gtest.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <ios>
#include <string>
#include <utility>

#include "backends/file/file_name.hpp"
#include "support.hpp"

namespace dlock::file::test {
namespace {

namespace fs = std::filesystem;

mode_t mode_of(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(::lstat(path.c_str(), &status), 0) << path;
  return status.st_mode & 07777;
}

class Umask {
 public:
  explicit Umask(mode_t mask) : before_(::umask(mask)) {}
  Umask(const Umask&) = delete;
  Umask& operator=(const Umask&) = delete;
  ~Umask() { ::umask(before_); }

 private:
  mode_t before_;
};

TEST(LockDirectory, MakesAllThatIsMissingOfItsPathWithItsMode) {
  const ScratchDirectory scratch;
  const mode_t before = mode_of(scratch.path());
  const LockDirectory directory(scratch.path() + "/a/b//c/./d/", 0750);
  EXPECT_EQ(directory.path(), scratch.path() + "/a/b/c/d");
  for (const char* made : {"/a", "/a/b", "/a/b/c", "/a/b/c/d"}) EXPECT_EQ(mode_of(scratch.path() + made), 0750U);
  EXPECT_EQ(mode_of(scratch.path()), before);
}

TEST(LockDirectory, ItsModeGoesBeforeTheUmask) {
  const ScratchDirectory scratch;
  const Umask mask(077);
  LockDirectory directory(scratch.locks(), 02770);
  EXPECT_EQ(mode_of(scratch.locks()), 02770U);
  ASSERT_TRUE(directory.open_or_create("a.lock").ok());
  EXPECT_EQ(mode_of(scratch.locks() + "/a.lock"), 0660U);
}

TEST(LockDirectory, OneBelowIsForThoseWhoUseTheOneAbove) {
  const ScratchDirectory scratch;
  const Umask mask(077);
  const LockDirectory above(scratch.locks(), 0770);
  ASSERT_EQ(::chmod(scratch.locks().c_str(), 01777), 0);
  const LockDirectory below(scratch.locks() + "/.rw", 0700, true);
  EXPECT_EQ(mode_of(scratch.locks() + "/.rw"), 01777U);
  const LockDirectory both(scratch.path() + "/new/.rw", 0750, true);
  EXPECT_EQ(mode_of(scratch.path() + "/new"), 0750U);
  EXPECT_EQ(mode_of(scratch.path() + "/new/.rw"), 0750U);
}

TEST(LockDirectory, OneBelowHasTheGroupOfTheOneAboveOrNone) {
  if (::getuid() != 0) GTEST_SKIP() << "needs privilege: root, to give a directory away";
  constexpr gid_t team = 4711;
  const ScratchDirectory scratch;
  const LockDirectory above(scratch.locks(), 0770);
  ASSERT_EQ(::chown(scratch.locks().c_str(), 65534, team), 0);
  ASSERT_EQ(::chmod(scratch.path().c_str(), 0755), 0);
  EXPECT_EQ(in_child([&] {
              if (::setgid(65534) != 0 || ::setuid(65534) != 0) return;
              const LockDirectory strangers(scratch.locks() + "/.sem", 0700, true);
            }),
            "");
  const LockDirectory below(scratch.locks() + "/.rw", 0700, true);
  struct stat status {};
  ASSERT_EQ(::stat((scratch.locks() + "/.rw").c_str(), &status), 0);
  EXPECT_EQ(status.st_gid, team);
  EXPECT_EQ(mode_of(scratch.locks() + "/.rw"), 0770U);
  ASSERT_EQ(::stat((scratch.locks() + "/.sem").c_str(), &status), 0);
  EXPECT_EQ(status.st_gid, 65534U) << "who is no member cannot give it away";
  EXPECT_EQ(mode_of(scratch.locks() + "/.sem"), 0700U) << "and so lets no other group in";
}

TEST(LockDirectory, OneBelowIsRefusedBehindALink) {
  const ScratchDirectory scratch;
  fs::create_directory(scratch.path() + "/real");
  fs::create_directory_symlink(scratch.path() + "/real", scratch.locks());
  EXPECT_EQ(failure_of([&] { const LockDirectory below(scratch.locks() + "/.rw", 0700, true); }).code,
            errc::invalid_argument);
}

TEST(LockDirectory, LockFilesArePrivateByDefault) {
  const ScratchDirectory scratch;
  const Umask mask(0);
  LockDirectory directory(scratch.locks(), 0700);
  ASSERT_TRUE(directory.open_or_create("a.lock").ok());
  EXPECT_EQ(mode_of(scratch.locks() + "/a.lock"), 0600U);
}

TEST(LockDirectory, NewFilesAreForThoseWhoMayWriteToIt) {
  const std::pair<mode_t, mode_t> expected[] = {
      {0700, 0600}, {0711, 0600}, {0750, 0600},  {0755, 0600},  {0720, 0600},  // to write takes the x, too
      {0770, 0660}, {0775, 0660}, {0730, 0660},  {02770, 0660}, {01770, 0660}, {0777, 0666}, {0773, 0666},
      {0707, 0606}, {0776, 0660}, {01777, 0600}, {03777, 0600}, {01773, 0600},  // shared by strangers, such as /tmp
  };
  for (const auto& [directory, file] : expected) {
    EXPECT_EQ(new_file_mode(directory), file) << std::oct << directory;
    EXPECT_EQ(new_file_mode(S_IFDIR | directory), file) << std::oct << directory;
  }
}

TEST(LockDirectory, TheModeOfNewFilesIsThatOfTheDirectoryAsItIsNow) {
  const ScratchDirectory scratch;
  const Umask mask(077);
  fs::create_directory(scratch.locks());
  LockDirectory directory(scratch.locks(), 02777);
  ASSERT_EQ(::chmod(scratch.locks().c_str(), 0755), 0);
  ASSERT_TRUE(directory.open_or_create("a.lock").ok());
  EXPECT_EQ(mode_of(scratch.locks() + "/a.lock"), 0600U);
  ASSERT_EQ(::chmod(scratch.locks().c_str(), 0770), 0);
  ASSERT_TRUE(directory.open_or_create("b.lock").ok());
  EXPECT_EQ(mode_of(scratch.locks() + "/b.lock"), 0660U);
  ASSERT_TRUE(directory.open_or_create("a.lock").ok());
  EXPECT_EQ(mode_of(scratch.locks() + "/a.lock"), 0600U) << "a file that exists is left as it is";
}

TEST(LockDirectory, LeavesAnExistingDirectoryAsItIs) {
  const ScratchDirectory scratch;
  fs::create_directory(scratch.locks());
  ASSERT_EQ(::chmod(scratch.locks().c_str(), 0755), 0);
  const LockDirectory directory(scratch.locks(), 0700);
  EXPECT_EQ(mode_of(scratch.locks()), 0755U);
}

TEST(LockDirectory, MayBeReachedOverASymbolicLinkButNotBeOne) {
  const ScratchDirectory scratch;
  fs::create_directory(scratch.path() + "/real");
  fs::create_directory_symlink(scratch.path() + "/real", scratch.path() + "/link");
  const LockDirectory behind(scratch.path() + "/link/locks", 0700);
  EXPECT_TRUE(fs::is_directory(scratch.path() + "/real/locks"));
  const Failure failure = failure_of([&] { const LockDirectory link(scratch.path() + "/link", 0700); });
  EXPECT_EQ(failure.code, errc::invalid_argument);
  EXPECT_NE(failure.detail.find(scratch.path() + "/link is a symbolic link"), std::string::npos) << failure.detail;
}

TEST(LockDirectory, IsRefusedWhenItIsSomethingElse) {
  const ScratchDirectory scratch;
  write_file(scratch.path() + "/file", "x");
  for (const std::string path : {"/file", "/file/below"}) {
    const Failure failure = failure_of([&] { const LockDirectory directory(scratch.path() + path, 0700); });
    EXPECT_EQ(failure.code, errc::invalid_argument);
    EXPECT_NE(failure.detail.find(scratch.path() + "/file is not a directory"), std::string::npos) << failure.detail;
  }
  fs::create_symlink("nowhere", scratch.path() + "/dangling");
  EXPECT_EQ(failure_of([&] { const LockDirectory directory(scratch.path() + "/dangling", 0700); }).code,
            errc::invalid_argument);
}

TEST(LockDirectory, IsRefusedWithoutAnAbsolutePathOfUsableLength) {
  for (const std::string& path :
       {std::string(), std::string("relative"), std::string("/"), std::string("//./"), "/" + std::string(300, 'x'),
        "/" + std::string(PATH_MAX, '/') + std::string(PATH_MAX - 100, 'x')}) {
    EXPECT_EQ(failure_of([&] { const LockDirectory directory(path, 0700); }).code, errc::invalid_argument)
        << path.substr(0, 20);
  }
}

TEST(LockDirectory, IsRefusedBehindSymbolicLinksThatLeadInACircle) {
  const ScratchDirectory scratch;
  fs::create_symlink("circle", scratch.path() + "/circle");
  const Failure failure = failure_of([&] { const LockDirectory directory(scratch.path() + "/circle/locks", 0700); });
  EXPECT_EQ(failure.code, errc::invalid_argument);
  EXPECT_NE(failure.detail.find(scratch.path() + "/circle is a symbolic link"), std::string::npos) << failure.detail;
}

TEST(LockDirectory, TheLongestPathThatItTakesLeavesRoomForTheLongestFileName) {
  const ScratchDirectory scratch;
  const std::string file(max_file_name, 'f');
  const std::size_t longest = PATH_MAX - 1 - file.size() - 1;  // without the NUL at the end and the '/' between
  std::string path = scratch.path();
  while (path.size() + 202 < longest) path += "/" + std::string(200, 'd');
  path += "/" + std::string(longest - path.size() - 1, 'd');
  LockDirectory directory(path, 0700);
  const auto opened = directory.open_or_create(file);
  ASSERT_TRUE(opened.ok()) << opened.failure().detail;
  EXPECT_EQ(find_file(directory.path_of(file)).value(), opened.value().identity);
  EXPECT_EQ(failure_of([&] { const LockDirectory longer(path + "d", 0700); }).code, errc::invalid_argument);
  EXPECT_FALSE(fs::exists(path + "d"));
}

TEST(LockDirectory, OpensTheSameFileTwiceAndFindsIt) {
  const ScratchDirectory scratch;
  LockDirectory directory(scratch.locks(), 0700);
  EXPECT_FALSE(find_file(directory.path_of("a.lock")).value().has_value());
  EXPECT_FALSE(directory.open_existing("a.lock").value().has_value());
  auto first = directory.open_or_create("a.lock");
  auto second = directory.open_or_create("a.lock");
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first.value().identity, second.value().identity);
  EXPECT_EQ(find_file(directory.path_of("a.lock")).value(), first.value().identity);
  EXPECT_TRUE(directory.open_existing("a.lock").value().has_value());
}

TEST(LockDirectory, OpensNothingToLockWhereThereIsNoFile) {
  const ScratchDirectory scratch;
  const LockDirectory directory(scratch.locks(), 0700);
  const auto opened = directory.open_to_lock("a.lock");
  ASSERT_TRUE(opened.ok()) << opened.failure().detail;
  EXPECT_FALSE(opened.value().fd);
  EXPECT_FALSE(fs::exists(scratch.locks() + "/a.lock"));
}

TEST(LockDirectory, AFileIsNotThereWhereThePathToItLeadsToNoDirectory) {
  const ScratchDirectory scratch;
  write_file(scratch.path() + "/file", "x");
  fs::create_symlink("circle", scratch.path() + "/circle");
  for (const char* path : {"/nowhere/a.lock", "/file/a.lock", "/circle/a.lock"}) {
    const auto found = find_file(scratch.path() + path);
    ASSERT_TRUE(found.ok()) << found.failure().detail;
    EXPECT_FALSE(found.value().has_value()) << path;
  }
  EXPECT_FALSE(find_file(scratch.path() + "/" + std::string(300, 'x')).ok()) << "an error says nothing of the file";
}

TEST(LockDirectory, RefusesWhateverIsNotAPlainFileOfOneName) {
  const ScratchDirectory scratch;
  LockDirectory directory(scratch.locks(), 0700);
  const std::string at = scratch.locks() + "/";
  write_file(scratch.path() + "/victim", "precious");
  fs::create_symlink(scratch.path() + "/victim", at + "link.lock");
  fs::create_symlink(scratch.path() + "/new", at + "dangling.lock");
  fs::create_directory(at + "directory.lock");
  ASSERT_EQ(::mkfifo((at + "fifo.lock").c_str(), 0600), 0);
  write_file(at + "one.lock", "");
  fs::create_hard_link(at + "one.lock", at + "two.lock");
  for (const std::string file : {"link.lock", "dangling.lock", "directory.lock", "fifo.lock", "one.lock", "two.lock"}) {
    const auto opened = directory.open_or_create(file);
    ASSERT_FALSE(opened.ok()) << file;
    EXPECT_EQ(opened.failure().code, errc::protocol) << file << ": " << opened.failure().detail;
    EXPECT_NE(opened.failure().detail.find(at + file), std::string::npos) << opened.failure().detail;
    EXPECT_FALSE(directory.open_existing(file).ok()) << file;
  }
  EXPECT_EQ(read_file(scratch.path() + "/victim"), "precious");
  EXPECT_FALSE(fs::exists(scratch.path() + "/new"));
}

TEST(LockDirectory, NoticesThatItsPathLeadsElsewhereAndFollows) {
  const ScratchDirectory scratch;
  LockDirectory directory(scratch.locks(), 0700);
  EXPECT_TRUE(directory.is_current());
  const auto generation = directory.generation();
  fs::rename(scratch.locks(), scratch.path() + "/moved");
  EXPECT_FALSE(directory.is_current());
  EXPECT_FALSE(directory.reopen().has_value());
  EXPECT_TRUE(directory.is_current());
  EXPECT_GT(directory.generation(), generation);
  EXPECT_TRUE(fs::is_directory(scratch.locks()));
}

TEST(LockDirectory, MakesItselfAnewWhenItWasRemoved) {
  const ScratchDirectory scratch;
  LockDirectory directory(scratch.locks(), 0700);
  fs::remove(scratch.locks());
  ASSERT_TRUE(directory.open_or_create("a.lock").ok());
  EXPECT_TRUE(directory.is_current());
  EXPECT_TRUE(fs::exists(scratch.locks() + "/a.lock"));
}

}  // namespace
}  // namespace dlock::file::test
