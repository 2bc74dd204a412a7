#include "cli/report_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include "cli/arguments.hpp"
#include "cli/unique_fd.hpp"
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

  // Of files that are being written.
  [[nodiscard]] std::set<std::string> new_names() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory_.path())) {
      if (entry.path().extension() == ".part" && !entry.is_symlink()) names.insert(entry.path().filename());
    }
    return names;
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

// In a directory that others may write to: the name of the new file cannot be guessed, and what is there is not opened.
TEST_F(ReportFileTest, ALinkThatAnotherUserHasPlantedIsNotFollowed) {
  put("precious", "precious");
  fs::create_symlink(path("precious"), path("report.part"));
  fs::create_symlink(path("precious"), path("report"));
  ReportFile first("--html", path("report"));
  ReportFile second("--html", path("report"));
  const std::set<std::string> names = new_names();
  EXPECT_EQ(names.size(), 2U);
  for (const std::string& name : names) {
    EXPECT_TRUE(std::regex_match(name, std::regex("report\\.[0-9a-f]{16}\\.part"))) << name;
  }
  first.write("new");
  EXPECT_EQ(text("precious"), "precious");
  EXPECT_EQ(text("report"), "new");
  EXPECT_FALSE(fs::is_symlink(path("report")));
}

// A reader that runs as another user can read the new one as well.
TEST_F(ReportFileTest, TheNewOneHasThePermissionsOfTheOlderOne) {
  put("report", "old");
  fs::permissions(path("report"), fs::perms::owner_read | fs::perms::owner_write | fs::perms::others_read);
  ReportFile("--html", path("report")).write("new");
  EXPECT_EQ(fs::status(path("report")).permissions(),
            fs::perms::owner_read | fs::perms::owner_write | fs::perms::others_read);
}

// As the shell's "3>>log" does it: what is in the file stays.
TEST_F(ReportFileTest, ADescriptorIsWrittenToWhereItStands) {
  put("log", "earlier\n");
  const UniqueFd fd(::open(path("log").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  ReportFile("--json", "/dev/fd/" + std::to_string(fd.get())).write("last\n");
  ReportFile("--json", "/proc/self/fd/" + std::to_string(fd.get())).write("very last\n");
  EXPECT_EQ(text("log"), "earlier\nlast\nvery last\n");
  EXPECT_EQ(files(), 1);
}

TEST_F(ReportFileTest, WhatCannotBeWrittenIsRefusedBeforeItIs) {
  put("log", "");
  const UniqueFd fd(::open(path("log").c_str(), O_RDONLY | O_CLOEXEC));
  const UniqueFd last(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 100));
  const std::string closed = "/dev/fd/" + std::to_string(last.get() + 1);
  for (const std::string& wrong :
       {std::string(), path(""), path("none/report"), closed, "/dev/fd/" + std::to_string(fd.get())}) {
    EXPECT_THROW(ReportFile("--json", wrong), UsageError) << wrong;
  }
  EXPECT_EQ(files(), 1);
}

}  // namespace
}  // namespace dlock::cli
