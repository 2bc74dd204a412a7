#include "cli/report_file.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "torture/rig/scratch_directory.hpp"

namespace dlock::cli {
namespace {

namespace fs = std::filesystem;

class ReportFileTest : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& text) const { std::ofstream(path(name)) << text; }
  [[nodiscard]] std::string text(const std::string& name) const {
    std::ifstream file(path(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  [[nodiscard]] std::string path(const std::string& name) const { return directory_.path() + "/" + name; }
  [[nodiscard]] std::ptrdiff_t files() const {
    return std::distance(fs::directory_iterator(directory_.path()), fs::directory_iterator());
  }

 private:
  rig::ScratchDirectory directory_;
};

TEST_F(ReportFileTest, AnOlderOneStaysUntilItIsWritten) {
  put("report", "old");
  {
    ReportFile file("--html", path("report"));
    EXPECT_EQ(text("report"), "old");
    file.write("new");
  }
  EXPECT_EQ(text("report"), "new");
  EXPECT_EQ(files(), 1);
  { const ReportFile given_up("--html", path("report")); }
  EXPECT_EQ(text("report"), "new");
  EXPECT_EQ(files(), 1);
}

// In a directory that others may write to.
TEST_F(ReportFileTest, ALinkThatSomebodyHasPlantedIsNotFollowed) {
  put("precious", "precious");
  const std::string planted = "report." + std::to_string(::getpid()) + "-0.part";
  fs::create_symlink(path("precious"), path(planted));
  fs::create_symlink(path("precious"), path("report.part"));
  ReportFile file("--html", path("report"));
  file.write("new");
  EXPECT_EQ(text("precious"), "precious");
  EXPECT_EQ(text("report"), "new");
  EXPECT_TRUE(fs::is_symlink(path(planted)));
}

}  // namespace
}  // namespace dlock::cli
