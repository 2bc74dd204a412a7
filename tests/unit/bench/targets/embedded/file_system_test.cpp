#include "bench/targets/embedded/file_system.hpp"

#include <gtest/gtest.h>

namespace dlock::bench {
namespace {

TEST(BenchFileSystem, IsCalledAsTheKernelCallsIt) {
  EXPECT_EQ(file_system_of("/proc"), "proc");
}

TEST(BenchFileSystem, OfNothingIsNothing) {
  EXPECT_EQ(file_system_of("/proc/there is no such file"), "");
}

}  // namespace
}  // namespace dlock::bench
