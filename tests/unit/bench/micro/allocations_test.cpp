#include "bench/micro/allocations.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <new>
#include <thread>

namespace bench {
namespace {

TEST(Allocations, CountCallsOfOperatorNew) {
  const auto before = allocations();
  ::operator delete(::operator new(1));
  ::operator delete(::operator new(0));
  EXPECT_EQ(allocations() - before, 2U);
}

TEST(Allocations, CountThoseThatAreAligned) {
  constexpr std::align_val_t alignment{256};
  const auto before = allocations();
  void* const memory = ::operator new(1, alignment);
  EXPECT_EQ(allocations() - before, 1U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 256, 0U);
  ::operator delete(memory, alignment);
}

TEST(Allocations, CountThoseOfThreadsThatHaveEnded) {
  constexpr std::uint64_t count = 1000;
  const auto before = allocations();
  std::thread([] {
    for (std::uint64_t i = 0; i < count; ++i) ::operator delete(::operator new(1));
  }).join();
  const auto by_thread = allocations() - before;
  EXPECT_GE(by_thread, count);
  EXPECT_LE(by_thread, count + 10);  // std::thread has some of its own
}

}  // namespace
}  // namespace bench
