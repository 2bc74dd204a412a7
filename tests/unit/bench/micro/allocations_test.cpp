#include "bench/micro/allocations.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <new>
#include <thread>

namespace bench {
namespace {

TEST(AllocationsTest, OperatorNewOfAllThreads_IsCounted) {
  constexpr std::uint64_t count = 1000;
  constexpr std::align_val_t alignment{256};
  const auto before = allocations();
  ::operator delete(::operator new(0));
  void* const memory = ::operator new(1, alignment);
  EXPECT_EQ(allocations() - before, 2U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 256, 0U);
  ::operator delete(memory, alignment);
  std::thread([] {
    for (std::uint64_t i = 0; i < count; ++i) ::operator delete(::operator new(1));
  }).join();
  const auto with_thread = allocations() - before;
  EXPECT_GE(with_thread, 2 + count) << "of a thread that has ended";
  EXPECT_LE(with_thread, 2 + count + 10);  // std::thread has some of its own
}

}  // namespace
}  // namespace bench
