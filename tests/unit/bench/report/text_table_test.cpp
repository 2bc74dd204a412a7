#include "bench/report/text_table.hpp"

#include <gtest/gtest.h>

namespace dlock::bench {
namespace {

TEST(TextTable, AlignsColumns) {
  TextTable table;
  table.add({"service", "p50", "p99"});
  table.add({"redis queue", "61.2 us", "-"});
  table.add({"file", "9 us"});
  EXPECT_EQ(table.text(),
            "service          p50  p99\n"
            "redis queue  61.2 us    -\n"
            "file            9 us\n");
}

TEST(TextTable, CountsCharactersNotBytes) {
  TextTable table;
  table.add({"\xC3\xA4", "1"});
  table.add({"ab", "2"});
  EXPECT_EQ(table.text(), "\xC3\xA4   1\nab  2\n");
}

TEST(TextTable, ShortensBetweenCharacters) {
  EXPECT_EQ(shortened("redis queue", 11), "redis queue");
  EXPECT_EQ(shortened("redis queue", 10), "redis que…");
  EXPECT_EQ(shortened("aäöüb", 4), "aäö…");
  EXPECT_EQ(shortened("aäöü", 4), "aäöü");
}

TEST(TextTable, TerminalsAreNotToldToDoThings) {
  EXPECT_EQ(printable("a\x1b[2Jb\nc\x7f"), "a [2Jb c ");
  EXPECT_EQ(printable("a\xC2\x9B"
                      "2Jb\xC2\xA7"),
            "a 2Jb\xC2\xA7");
}

}  // namespace
}  // namespace dlock::bench
