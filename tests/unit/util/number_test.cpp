#include "util/number.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace dlock::util {

namespace {

TEST(Number, IsAllOfTheText) {
  EXPECT_EQ(parse_number<std::uint32_t>("17"), 17U);
  EXPECT_EQ(parse_number<std::int64_t>("-17"), -17);
  EXPECT_EQ(parse_number<std::uint32_t>("fF", 16), 255U);
  for (const char* text : {"", " 1", "1 ", "+1", "1.0", "x"}) {
    EXPECT_EQ(parse_number<std::int64_t>(text), std::nullopt) << text;
  }
}

TEST(Number, FitsItsType) {
  EXPECT_EQ(parse_number<std::uint16_t>("65535"), 65535U);
  EXPECT_EQ(parse_number<std::uint16_t>("65536"), std::nullopt);
  EXPECT_EQ(parse_number<std::uint32_t>("-1"), std::nullopt);
}

}  // namespace

}  // namespace dlock::util
