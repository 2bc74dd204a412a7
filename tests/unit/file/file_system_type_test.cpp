#include "backends/file/file_system_type.hpp"

#include <gtest/gtest.h>
#include <sys/vfs.h>

#include "backends/file/lock_directory.hpp"

namespace dlock::file {
namespace {

TEST(FileSystemType, DistrustsNetworkFileSystems) {
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
    EXPECT_NE(problem->detail.find(std::string("type ") + name), std::string::npos) << problem->detail;
    EXPECT_NE(problem->detail.find("/mnt/locks"), std::string::npos) << problem->detail;
  }
}

TEST(FileSystemType, TrustsLocalOnesAndThoseItDoesNotKnow) {
  for (const std::uint32_t magic : {0xef53U, 0x01021994U, 0x58465342U, 0x9123683eU, 0x794c7630U}) {
    EXPECT_EQ(file_system_type(magic).trust, LockTrust::local) << std::hex << magic;
    EXPECT_FALSE(problem_with_file_system(magic, "/d").has_value());
  }
  EXPECT_EQ(file_system_type(0x12345678).trust, LockTrust::unknown);
  EXPECT_FALSE(problem_with_file_system(0x12345678, "/d").has_value());
}

TEST(FileSystemType, MatchesWhatTheKernelSays) {
  struct statfs status {};
  ASSERT_EQ(::statfs("/dev/shm", &status), 0);
  EXPECT_EQ(file_system_type(static_cast<std::uint32_t>(status.f_type)).name, "tmpfs");
}

}  // namespace
}  // namespace dlock::file
