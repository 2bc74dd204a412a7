#include "backends/postgres/sql/sql_template.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace dlock::postgres {

namespace {

TEST(PostgresSqlTemplate, IsFilledIn) {
  EXPECT_EQ(fill("SELECT {a} FROM {b}", {{"a", "1"}, {"b", "t"}}), "SELECT 1 FROM t");
  EXPECT_EQ(fill("{a}{a}", {{"a", "x"}}), "xx");
  EXPECT_EQ(fill("", {}), "");
  EXPECT_EQ(fill("{a}", {{"a", ""}}), "");
}

TEST(PostgresSqlTemplate, IsOneLine) {
  EXPECT_EQ(fill("\n  SELECT\n    1\n", {}), "SELECT 1");
}

TEST(PostgresSqlTemplate, DoesNotLookAtWhatWasFilledIn) {
  EXPECT_EQ(fill("{a} {b}", {{"a", "{b}  {"}, {"b", "x\n\ny"}}), "{b}  { x\n\ny");
}

TEST(PostgresSqlTemplate, MistakesInItAreNoticed) {
  EXPECT_THROW((void)fill("{a}", {}), std::logic_error);
  EXPECT_THROW((void)fill("{a", {{"a", "x"}}), std::logic_error);
  EXPECT_THROW((void)fill("a}", {{"a", "x"}}), std::logic_error);
}

}  // namespace

}  // namespace dlock::postgres
