#include "backends/common/for_each_still_in.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace dlock::common {

namespace {

TEST(ForEachStillIn, PassesOverThoseThatWentAndThoseThatCame) {
  std::map<int, std::string> map = {{1, "a"}, {2, "b"}, {3, "c"}};
  std::string told;
  for_each_still_in(map, [&](int key, const std::string& value) {
    told += value;
    map.erase(key + 1);
    map.emplace(key + 10, "new");
  });
  EXPECT_EQ(told, "ac");
  EXPECT_THAT(map, testing::SizeIs(4));
}

}  // namespace

}  // namespace dlock::common
