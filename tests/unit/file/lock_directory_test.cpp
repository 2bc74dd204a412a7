#include "backends/file/lock_directory.hpp"

#include <gmock/gmock.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <ios>

#include "backends/file/file_name.hpp"
#include "backends/file/file_system_type.hpp"
#include "support.hpp"

namespace dlock::file::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class LockDirectoryTest : public testing::Test {
 protected:
  LockDirectoryTest() : umask_(::umask(077)) {}
  ~LockDirectoryTest() override { ::umask(umask_); }

  [[nodiscard]] std::string at(const std::string& path) const { return scratch_.path() + path; }
  [[nodiscard]] struct stat status_of(const std::string& path) const {
    struct stat status {};
    EXPECT_EQ(::lstat(at(path).c_str(), &status), 0) << path;
    status.st_mode &= 07777;
    return status;
  }
  [[nodiscard]] mode_t mode_of(const std::string& path) const { return status_of(path).st_mode; }
  void set_mode(const std::string& path, mode_t mode) const { ASSERT_EQ(::chmod(at(path).c_str(), mode), 0); }
  [[nodiscard]] LockDirectory open(const std::string& path = "/locks", mode_t mode = 0700, bool below = false) const {
    return LockDirectory(at(path), mode, below);
  }
  void expect_refused(const std::string& path, const std::string& text = {}, bool below = false) const {
    const Failure failure = thrown_by([&] { const LockDirectory directory(path, 0700, below); });
    EXPECT_EQ(failure.code, errc::invalid_argument) << path.substr(0, 100);
    EXPECT_THAT(failure.detail, HasSubstr(text));
  }

  ScratchDirectory scratch_;

 private:
  mode_t umask_;
};

TEST_F(LockDirectoryTest, MissingPath_IsMadeWithItsMode) {
  const mode_t before = mode_of("");
  EXPECT_EQ(open("/a/b//c/./d/", 0750).path(), at("/a/b/c/d"));
  for (const char* made : {"/a", "/a/b", "/a/b/c", "/a/b/c/d"}) EXPECT_EQ(mode_of(made), 0750U);
  EXPECT_EQ(mode_of(""), before);
  (void)open("/a", 0700);
  EXPECT_EQ(mode_of("/a"), 0750U) << "an existing directory is left as it is";
}

TEST_F(LockDirectoryTest, Subdirectory_HasTheModeOfItsParent) {
  (void)open("/locks", 0770);
  set_mode("/locks", 01777);
  (void)open("/locks/.rw", 0700, true);
  EXPECT_EQ(mode_of("/locks/.rw"), 01777U);
  (void)open("/new/.rw", 0750, true);
  EXPECT_EQ(mode_of("/new"), 0750U);
  EXPECT_EQ(mode_of("/new/.rw"), 0750U);
  fs::create_directory_symlink(at("/new"), at("/link"));
  expect_refused(at("/link/.rw"), "is a symbolic link", true);
}

TEST_F(LockDirectoryTest, Subdirectory_HasTheGroupOfItsParentOrNone) {
  if (::getuid() != 0) GTEST_SKIP() << "needs privilege: root, to give a directory away";
  constexpr gid_t team = 4711;
  (void)open("/locks", 0770);
  ASSERT_EQ(::chown(scratch_.locks().c_str(), nobody, team), 0);
  set_mode("", 0755);
  EXPECT_WELL(in_child([&] {
    become_nobody();
    (void)open("/locks/.sem", 0700, true);
  }));
  (void)open("/locks/.rw", 0700, true);
  EXPECT_EQ(status_of("/locks/.rw").st_gid, team);
  EXPECT_EQ(mode_of("/locks/.rw"), 0770U);
  EXPECT_EQ(status_of("/locks/.sem").st_gid, nobody) << "who is no member cannot give it away";
  EXPECT_EQ(mode_of("/locks/.sem"), 0700U) << "and so lets no other group in";
}

TEST_F(LockDirectoryTest, NewFile_IsForWritersOfTheDirectory) {
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

TEST_F(LockDirectoryTest, NewFile_IgnoresTheUmask) {
  LockDirectory directory = open("/locks", 02770);
  EXPECT_EQ(mode_of("/locks"), 02770U);
  const std::pair<mode_t, mode_t> expected[] = {{0755, 0600}, {02770, 0660}};
  for (const auto& [mode, file] : expected) {
    set_mode("/locks", mode);
    const std::string name = std::to_string(mode) + ".lock";
    ASSERT_TRUE(directory.open_or_create(name).ok());
    EXPECT_EQ(mode_of("/locks/" + name), file);
    set_mode("/locks", 0777);
    ASSERT_TRUE(directory.open_or_create(name).ok());
    EXPECT_EQ(mode_of("/locks/" + name), file) << "a file that exists is left as it is";
  }
  ::umask(0);
  set_mode("/locks", 0700);
  ASSERT_TRUE(directory.open_or_create("private.lock").ok());
  EXPECT_EQ(mode_of("/locks/private.lock"), 0600U);
}

TEST_F(LockDirectoryTest, UnfitPath_IsRefused) {
  fs::create_directory(at("/real"));
  fs::create_directory_symlink(at("/real"), at("/link"));
  write_file(at("/file"), "x");
  fs::create_symlink("nowhere", at("/dangling"));
  fs::create_symlink("circle", at("/circle"));
  (void)open("/link/locks");
  EXPECT_TRUE(fs::is_directory(at("/real/locks"))) << "on the way, a symbolic link is followed";
  expect_refused(at("/link"), at("/link is a symbolic link"));
  expect_refused(at("/file"), at("/file is not a directory"));
  expect_refused(at("/file/below"), at("/file is not a directory"));
  expect_refused(at("/dangling"));
  expect_refused(at("/circle/locks"), at("/circle is a symbolic link"));
  const std::string too_long = std::string(PATH_MAX, '/') + std::string(PATH_MAX - 100, 'x');
  for (const std::string& path : {std::string(), std::string("relative"), std::string("/"), std::string("//./"),
                                  "/" + std::string(300, 'x'), too_long}) {
    expect_refused(path);
  }
}

TEST_F(LockDirectoryTest, LongestPath_FitsTheLongestFileName) {
  const std::string file(max_file_name, 'f');
  const std::size_t longest = PATH_MAX - 1 - file.size() - 1;  // without the NUL at the end and the '/' between
  std::string path = scratch_.path();
  while (path.size() + 202 < longest) path += "/" + std::string(200, 'd');
  path += "/" + std::string(longest - path.size() - 1, 'd');
  LockDirectory directory(path, 0700);
  const auto opened = directory.open_or_create(file);
  ASSERT_TRUE(opened.ok()) << opened.failure().detail;
  EXPECT_EQ(find_file(directory.path_of(file)).value(), opened.value().identity);
  expect_refused(path + "d");
  EXPECT_FALSE(fs::exists(path + "d"));
}

TEST_F(LockDirectoryTest, Query_MakesNoFile) {
  LockDirectory directory = open();
  const std::string path = directory.path_of("a.lock");
  EXPECT_FALSE(find_file(path).value().has_value());
  EXPECT_FALSE(directory.open_existing("a.lock").value().has_value());
  EXPECT_FALSE(directory.open_to_lock("a.lock").value().fd);
  EXPECT_FALSE(fs::exists(path));
  auto first = directory.open_or_create("a.lock");
  auto second = directory.open_or_create("a.lock");
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first.value().identity, second.value().identity);
  EXPECT_EQ(find_file(path).value(), first.value().identity);
  EXPECT_EQ(directory.open_to_lock("a.lock").value().identity, first.value().identity);
  EXPECT_TRUE(directory.open_existing("a.lock").value().has_value());
}

TEST_F(LockDirectoryTest, PathWithoutDirectory_HasNoFile) {
  write_file(at("/file"), "x");
  fs::create_symlink("circle", at("/circle"));
  for (const char* path : {"/nowhere/a.lock", "/file/a.lock", "/circle/a.lock"}) {
    const auto found = find_file(at(path));
    ASSERT_TRUE(found.ok()) << found.failure().detail;
    EXPECT_FALSE(found.value().has_value()) << path;
  }
  EXPECT_FALSE(find_file(at("/" + std::string(300, 'x'))).ok()) << "an error says nothing of the file";
}

TEST_F(LockDirectoryTest, NotAPlainFile_IsRefused) {
  LockDirectory directory = open();
  const std::string in = scratch_.locks() + "/";
  write_file(at("/victim"), "precious");
  fs::create_symlink(at("/victim"), in + "link.lock");
  fs::create_symlink(at("/new"), in + "dangling.lock");
  fs::create_directory(in + "directory.lock");
  ASSERT_EQ(::mkfifo((in + "fifo.lock").c_str(), 0600), 0);
  write_file(in + "one.lock", "");
  fs::create_hard_link(in + "one.lock", in + "two.lock");
  for (const std::string file : {"link.lock", "dangling.lock", "directory.lock", "fifo.lock", "one.lock", "two.lock"}) {
    const auto opened = directory.open_or_create(file);
    ASSERT_FALSE(opened.ok()) << file;
    EXPECT_EQ(opened.failure().code, errc::protocol) << file << ": " << opened.failure().detail;
    EXPECT_THAT(opened.failure().detail, HasSubstr(in + file));
    EXPECT_FALSE(directory.open_existing(file).ok()) << file;
  }
  EXPECT_EQ(read_file(at("/victim")), "precious");
  EXPECT_FALSE(fs::exists(at("/new")));
}

// --- File systems ---

// Shows: hole file-unknown-share
TEST(FileSystemType, NetworkFileSystems_AreRefused) {
  const std::pair<std::uint32_t, const char*> shared[] = {
      {0x6969, "nfs"},        {0x517b, "smb"},        {0xff534d42, "cifs"},  {0xfe534d42, "smb2"},
      {0x01021997, "9p"},     {0x5346414f, "afs"},    {0x73757245, "coda"},  {0xc36400, "ceph"},
      {0x0bd00bd0, "lustre"}, {0x47504653, "gpfs"},   {0x65735546, "fuse"},  {0x7461636f, "ocfs2"},
      {0x01161970, "gfs2"},   {0x786f4256, "vboxsf"}, {0x19830326, "beegfs"}};
  for (const auto& [magic, name] : shared) {
    EXPECT_EQ(file_system_type(magic).name, name);
    EXPECT_EQ(file_system_type(magic).trust, LockTrust::shared) << name;
    const auto problem = problem_with_file_system(magic, "/mnt/locks");
    ASSERT_TRUE(problem.has_value()) << name;
    EXPECT_EQ(problem->code, errc::unsupported);
    EXPECT_THAT(problem->detail, HasSubstr("/mnt/locks is on a file system of type " + std::string(name)));
  }
}

// Shows: hole file-unknown-share
TEST(FileSystemType, LocalAndUnknown_AreAccepted) {
  struct statfs status {};
  ASSERT_EQ(::statfs("/dev/shm", &status), 0);
  EXPECT_EQ(file_system_type(static_cast<std::uint32_t>(status.f_type)).name, "tmpfs");
  for (const std::uint32_t magic : {0xef53U, 0x01021994U, 0x58465342U, 0x9123683eU, 0x794c7630U}) {
    EXPECT_EQ(file_system_type(magic).trust, LockTrust::local) << std::hex << magic;
    EXPECT_FALSE(problem_with_file_system(magic, "/d").has_value());
  }
  EXPECT_EQ(file_system_type(0x12345678).trust, LockTrust::unknown);
  EXPECT_FALSE(problem_with_file_system(0x12345678, "/d").has_value());
}

}  // namespace
}  // namespace dlock::file::test
