#include "allocations.hpp"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

// Written by one thread, so that counting needs no locked instruction, which would make a pair of memory:// a tenth
// slower. Never freed: there are few threads.
struct alignas(64) Count {
  std::atomic<std::uint64_t> allocations{0};
  Count* next = nullptr;
};

constinit std::atomic<Count*> counts{nullptr};
constinit thread_local Count* own_count = nullptr;

[[nodiscard]] Count* add_count() {
  void* memory = std::aligned_alloc(alignof(Count), sizeof(Count));  // operator new would recurse
  if (memory == nullptr) throw std::bad_alloc();
  auto* count = ::new (memory) Count;
  count->next = counts.load(std::memory_order_relaxed);
  while (!counts.compare_exchange_weak(count->next, count, std::memory_order_release, std::memory_order_relaxed)) {
  }
  return count;
}

[[nodiscard]] void* counted(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  if (own_count == nullptr) own_count = add_count();
  auto& allocations = own_count->allocations;
  allocations.store(allocations.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  return memory;
}

}  // namespace

namespace bench {

std::uint64_t allocations() noexcept {
  std::uint64_t sum = 0;
  for (const Count* count = counts.load(std::memory_order_acquire); count != nullptr; count = count->next) {
    sum += count->allocations.load(std::memory_order_relaxed);
  }
  return sum;
}

}  // namespace bench

// The standard library's other forms, for arrays and without exceptions, call these.

void* operator new(std::size_t size) {
  return counted(std::malloc(size == 0 ? 1 : size));
}

void* operator new(std::size_t size, std::align_val_t alignment) {
  const auto align = static_cast<std::size_t>(alignment);
  return counted(std::aligned_alloc(align, (size + align - 1) / align * align));
}

void operator delete(void* memory) noexcept {
  std::free(memory);
}

void operator delete(void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}

void operator delete(void* memory, std::align_val_t /*alignment*/) noexcept {
  std::free(memory);
}

void operator delete(void* memory, std::size_t /*size*/, std::align_val_t /*alignment*/) noexcept {
  std::free(memory);
}
