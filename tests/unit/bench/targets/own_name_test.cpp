#include "bench/targets/own_name.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

namespace dlock::bench {
namespace {

TEST(BenchOwnName, IsAnotherOneEachTime) {
  EXPECT_NE(own_name(), own_name());
}

TEST(BenchOwnName, SaysWhoseItIs) {
  const std::string start = "dlock_bench_" + std::to_string(::getpid()) + "_";
  EXPECT_EQ(own_name('_').substr(0, start.size()), start);
}

}  // namespace
}  // namespace dlock::bench
