#include "cli/output.hpp"

#include <gtest/gtest.h>

namespace dlock::cli {
namespace {

TEST(Output, AMessageIsOneLineWhateverItContains) {
  flush_messages();  // of earlier tests
  testing::internal::CaptureStderr();
  say("the service says: \033[2J\ndlock: all is well");
  flush_messages();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "dlock: the service says: \\x1b[2J\\x0adlock: all is well\n");
}

TEST(Output, LinesStayLinesWhateverElseTheyContain) {
  testing::internal::CaptureStdout();
  print_lines("one\ntwo\033[2J\n\nlast");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "one\ntwo\\x1b[2J\n\nlast");
}

TEST(Output, ACellIsPartOfOneLineWhateverItContains) {
  Table table;
  table.add({{"a\nb\033c"}, {"x"}});
  table.add({{"long enough to be wider"}, {"y"}});
  EXPECT_EQ(table.to_string(), "a\\x0ab\\x1bc              x\nlong enough to be wider  y\n");
}

}  // namespace
}  // namespace dlock::cli
