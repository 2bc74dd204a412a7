// A process that can open nothing any more.
#include "torture/nemesis/used_up_descriptors.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "tests/torture/client/commanded_client.hpp"
#include "torture/rig/scratch_directory.hpp"
#include "util/unique_fd.hpp"

namespace dlock::torture {
namespace {

class UsedUpDescriptorsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string why_not;
    if (!UsedUpDescriptors::available(why_not)) GTEST_SKIP() << "needs privilege: " << why_not;
  }

  // The error, or 0.
  static int open_something() {
    const util::UniqueFd file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    return file ? 0 : errno;
  }
};

TEST_F(UsedUpDescriptorsTest, NothingCanBeOpenedWhileTheyAre) {
  const util::UniqueFd before(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
  int during = 0;
  char byte = 'x';
  ssize_t still_read = 0;
  {
    const UsedUpDescriptors none_left(::getpid());
    during = open_something();
    still_read = ::read(before.get(), &byte, 1);
  }
  EXPECT_EQ(during, EMFILE);
  EXPECT_EQ(still_read, 1);
  EXPECT_EQ(open_something(), 0);
}

// A hole among the numbers of the open ones would be one to use.
TEST_F(UsedUpDescriptorsTest, AHoleAmongThemIsNotLeftOpen) {
  util::UniqueFd hole(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
  const util::UniqueFd above(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
  hole.reset();
  int during = 0;
  {
    const UsedUpDescriptors none_left(::getpid());
    during = open_something();
  }
  EXPECT_EQ(during, EMFILE);
}

TEST_F(UsedUpDescriptorsTest, TheLimitIsTheOneItWasAfterwards) {
  rlimit before{};
  rlimit after{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  { const UsedUpDescriptors none_left(::getpid()); }
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &after), 0);
  EXPECT_EQ(after.rlim_cur, before.rlim_cur);
  EXPECT_EQ(after.rlim_max, before.rlim_max);
}

TEST_F(UsedUpDescriptorsTest, AnotherProcessLosesThemAndNotThisOne) {
  const rig::ScratchDirectory directory;
  CommandedClient client("file://" + directory.path());
  ASSERT_TRUE(client.tell("acquire a 0").starts_with("granted a ")) << client.said();
  {
    const UsedUpDescriptors none_left(client.pid());
    EXPECT_EQ(open_something(), 0);
    EXPECT_NE(client.tell("acquire b 0").find("Too many open files"), std::string::npos) << client.said();
  }
  EXPECT_TRUE(client.tell("acquire b 0").starts_with("granted b ")) << client.said();
}

TEST_F(UsedUpDescriptorsTest, AProcessThatIsNotThereIsAnError) {
  EXPECT_THROW(UsedUpDescriptors(999'999'999), std::system_error);
}

TEST_F(UsedUpDescriptorsTest, AProcessThatIsNoMoreNeedsNoneBack) {
  auto child = std::make_unique<rig::ChildProcess>(std::vector<std::string>{"cat", "/dev/zero"});
  const UsedUpDescriptors none_left(child->pid());
  child.reset();
}

}  // namespace
}  // namespace dlock::torture
