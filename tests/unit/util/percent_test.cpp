#include "util/percent.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace dlock::util {
namespace {

TEST(PercentDecode, TurnsEscapesIntoBytes) {
  EXPECT_EQ(percent_decode(""), "");
  EXPECT_EQ(percent_decode("plain"), "plain");
  EXPECT_EQ(percent_decode("a%20b"), "a b");
  EXPECT_EQ(percent_decode("%2F%2f"), "//");
  EXPECT_EQ(percent_decode("%25%32%35"), "%25") << "once only";
  EXPECT_EQ(percent_decode("%ff"), "\xff");
  EXPECT_EQ(percent_decode("%00"), std::string(1, '\0'));
}

TEST(PercentDecode, RefusesBrokenEscapes) {
  for (const char* text : {"%", "%2", "a%", "a%2", "%g0", "%0g", "%%20", "% 1", "%+1", "%-1", "%0x", "%2%30"}) {
    EXPECT_EQ(percent_decode(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace dlock::util
