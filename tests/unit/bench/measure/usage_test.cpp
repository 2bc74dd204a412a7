#include "bench/measure/usage.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <thread>
#include <vector>

namespace dlock::bench {
namespace {

// Sleeps until the kernel has counted `count` more voluntary switches of the calling thread: a sleep that is over
// before the thread has left its processor is none.
void sleep_until_switched(long count) {
  rusage counted{};
  ASSERT_EQ(::getrusage(RUSAGE_THREAD, &counted), 0);
  const long enough = counted.ru_nvcsw + count;
  while (counted.ru_nvcsw < enough) {
    std::this_thread::sleep_for(std::chrono::microseconds(1));
    ASSERT_EQ(::getrusage(RUSAGE_THREAD, &counted), 0);
  }
}

TEST(Usage, ProcessorTimeGrowsWithWork) {
  const auto before = usage().processor_time;
  volatile unsigned work = 0;
  while (usage().processor_time <= before && work < 4'000'000'000U) work = work + 1;
  EXPECT_GT(usage().processor_time, before);
}

TEST(Usage, SwitchesAreCountedOfThreadsThatHaveEnded) {
  const Usage before = usage();
  std::thread([] { sleep_until_switched(100); }).join();
  const Usage after = usage();
  EXPECT_GE(after.voluntary_switches, before.voluntary_switches + 100);
  EXPECT_EQ(after.switches(), after.voluntary_switches + after.involuntary_switches);
}

TEST(AllocatedBytes, GrowByTheSizeOfABlock) {
  constexpr std::size_t size = 100'000;
  const double before = allocated_bytes();
  const std::vector<char> block(size, 'x');
  EXPECT_NEAR(allocated_bytes() - before, before > 0 ? size : 0, 10'000) << "0 if a sanitizer allocates";
  ASSERT_EQ(block.back(), 'x');
}

}  // namespace
}  // namespace dlock::bench
