#include <dlock/token.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <unordered_set>

namespace dlock {
namespace {

static_assert(FencingToken().value() == 0);
static_assert(FencingToken(2) > FencingToken(1));
static_assert(OwnerId(1, 2) == OwnerId(1, 2));
static_assert(OwnerId(1, 2) != OwnerId(2, 1));

TEST(FencingToken, IsANumberThatCompares) {
  const FencingToken token(42);
  EXPECT_EQ(token.value(), 42U);
  const std::uint64_t as_number = token;
  EXPECT_EQ(as_number, 42U);
  EXPECT_LT(token, FencingToken(43));
  EXPECT_EQ(token, FencingToken(42));
}

TEST(OwnerId, PrintsAs32HexadecimalDigits) {
  EXPECT_EQ(OwnerId().to_string(), std::string(32, '0'));
  EXPECT_EQ(OwnerId(0x0123456789abcdefU, 0xfedcba9876543210U).to_string(), "0123456789abcdeffedcba9876543210");
  EXPECT_EQ(OwnerId(1, std::numeric_limits<std::uint64_t>::max()).to_string(), "0000000000000001ffffffffffffffff");
}

TEST(OwnerId, IsReadBackFromItsText) {
  for (const OwnerId id : {OwnerId(), OwnerId(1, 2), OwnerId(0x0123456789abcdefU, 0xfedcba9876543210U)}) {
    EXPECT_EQ(OwnerId::parse(id.to_string()), id);
  }
}

TEST(OwnerId, NothingElseIsReadAsOne) {
  const std::string good = OwnerId(1, 2).to_string();
  for (const std::string& bad :
       {std::string(), good.substr(1), good + "0", " " + good.substr(1), "0x" + good.substr(2), "-" + good.substr(1),
        std::string(32, 'g'), std::string(32, 'A'), std::string(31, '0') + '\0', std::string(31, '0') + "\xff"}) {
    EXPECT_EQ(OwnerId::parse(bad), std::nullopt) << bad;
  }
}

TEST(OwnerId, Hashes) {
  std::unordered_set<OwnerId> ids;
  for (std::uint64_t i = 0; i < 100; ++i) ids.insert(OwnerId(i, i * i));
  EXPECT_EQ(ids.size(), 100U);
  EXPECT_TRUE(ids.contains(OwnerId(3, 9)));
}

}  // namespace
}  // namespace dlock
