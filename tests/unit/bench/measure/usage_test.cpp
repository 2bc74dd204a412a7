#include "bench/measure/usage.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <thread>
#include <vector>

namespace dlock::bench {
namespace {

TEST(ProcessorTime, GrowsWithWork) {
  const auto before = processor_time();
  volatile unsigned work = 0;
  while (processor_time() <= before && work < 4'000'000'000U) work = work + 1;
  EXPECT_GT(processor_time(), before);
}

// Sleeps until the kernel has counted `count` more voluntary switches of the calling thread: a sleep that is over
// before the thread has left its processor is none.
void sleep_until_switched(long count) {
  rusage usage{};
  ASSERT_EQ(::getrusage(RUSAGE_THREAD, &usage), 0);
  const long enough = usage.ru_nvcsw + count;
  while (usage.ru_nvcsw < enough) {
    std::this_thread::sleep_for(std::chrono::microseconds(1));
    ASSERT_EQ(::getrusage(RUSAGE_THREAD, &usage), 0);
  }
}

TEST(ContextSwitches, CountAThreadThatSleeps) {
  const auto before = context_switches();
  sleep_until_switched(1);
  EXPECT_GT(context_switches().voluntary, before.voluntary);
}

TEST(ContextSwitches, CountThreadsThatHaveEnded) {
  const auto before = context_switches();
  std::thread([] { sleep_until_switched(100); }).join();
  EXPECT_GE(context_switches().voluntary, before.voluntary + 100);
}

TEST(AllocatedBytes, GrowByWhatIsAllocated) {
  constexpr std::size_t size = 100'000;
  const double before = allocated_bytes();
  if (before == 0) GTEST_SKIP() << "a sanitizer allocates";
  const std::vector<char> block(size, 'x');
  EXPECT_NEAR(allocated_bytes() - before, size, 10'000);
  ASSERT_EQ(block.back(), 'x');
}

}  // namespace
}  // namespace dlock::bench
