// A disk that is full when the test says so.
#include "tests/torture/breakage/small_disk.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <system_error>

#include "torture/rig/scratch_directory.hpp"
#include "util/unique_fd.hpp"

namespace dlock::torture {
namespace {

class SmallDiskTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string why_not;
    if (!SmallDisk::available(why_not)) GTEST_SKIP() << "needs privilege: " << why_not;
    disk_ = std::make_unique<SmallDisk>(directory_.path() + "/disk");
  }

  // 0, or the error.
  [[nodiscard]] int write_file(const std::string& name) const {
    const util::UniqueFd file(::open((disk_->path() + "/" + name).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    return file && ::write(file.get(), "x", 1) == 1 ? 0 : errno;
  }

  rig::ScratchDirectory directory_;
  std::unique_ptr<SmallDisk> disk_;
};

TEST_F(SmallDiskTest, HasSpaceUntilItIsFilled) {
  EXPECT_EQ(write_file("a"), 0);
  disk_->fill();
  EXPECT_EQ(write_file("b"), ENOSPC);
  EXPECT_EQ(write_file("a"), 0);  // the page is there
}

TEST_F(SmallDiskTest, HasSpaceAgainWhenItIsFreed) {
  disk_->fill();
  disk_->fill();
  disk_->free();
  EXPECT_EQ(write_file("a"), 0);
  disk_->free();
}

TEST_F(SmallDiskTest, IsGoneWithTheObject) {
  ASSERT_EQ(write_file("a"), 0);
  const std::string path = disk_->path();
  disk_.reset();
  EXPECT_TRUE(std::filesystem::is_empty(path));
}

TEST_F(SmallDiskTest, IsGoneThoughSomebodyHasAFileOpen) {
  const std::string path = disk_->path();
  const util::UniqueFd open(::open((path + "/a").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_TRUE(open);
  disk_.reset();
  EXPECT_TRUE(std::filesystem::is_empty(path));
  EXPECT_EQ(::write(open.get(), "x", 1), 1);
}

TEST_F(SmallDiskTest, ADiskThatCannotBeMountedIsAnError) {
  std::ofstream(directory_.path() + "/file") << "x";
  EXPECT_THROW(SmallDisk(directory_.path() + "/file"), std::system_error);
}

}  // namespace
}  // namespace dlock::torture
