#include "util/per_process.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "tests/support/forked_child.hpp"
#include "util/mutex.hpp"

namespace dlock::util {
namespace {

struct Counter {
  Mutex mutex;
  int value DLOCK_GUARDED_BY(mutex) = 0;
};

TEST(PerProcess, ThereIsOneObjectForAllThreads) {
  static constinit PerProcess<Counter> counter;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([] {
      const MutexLock lock(counter.get().mutex);
      ++counter.get().value;
    });
  }
  for (auto& thread : threads) thread.join();
  const MutexLock lock(counter.get().mutex);
  EXPECT_EQ(counter.get().value, 8);
}

TEST(PerProcess, AChildHasAFreshOneWhateverTheParentDidToItsOwn) {
  static constinit PerProcess<Counter> counter;
  Counter& ours = counter.get();
  const MutexLock lock(ours.mutex);  // to the child, as if another thread had it
  ours.value = 5;
  EXPECT_EQ(test::ForkedChild::run([&](test::ForkedChild& child) {
              Counter& own = counter.get();
              const MutexLock own_lock(own.mutex);
              child.check(&own != &ours);
              child.check(own.value == 0);
              child.check(&counter.get() == &own);
            }),
            "good");
  EXPECT_EQ(&counter.get(), &ours);
}

}  // namespace
}  // namespace dlock::util
