// A child made by fork() has stores of its own.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <dlock/client.hpp>

#include "tests/support/forked_child.hpp"
#include "tests/unit/memory/store_fixture.hpp"

// A child that starts an engine is what one of these tests is about.
extern "C" const char* __tsan_default_options();
extern "C" const char* __tsan_default_options() {  // NOLINT(bugprone-reserved-identifier): TSan's name for it
  return "die_after_fork=0";
}

namespace dlock::memory {
namespace {

using Child = test::ForkedChild;

TEST(MemoryFork, TheLocksAndWaitersOfTheParentAreNotTheChilds) {
  const auto store = MemoryStore::named("fork");
  const ManualClock clock;
  Reports reports;
  const LockRequest request{.name = "x", .owner = OwnerId(0, 1), .holder = "host:1:parent", .lease = 30s};
  ASSERT_TRUE(store->try_acquire(request, 0s, clock).granted);
  LockRequest waiting = request;
  waiting.owner = OwnerId(0, 2);
  ASSERT_FALSE(store->enqueue(waiting, reports.on_answer(waiting), clock).granted);
  EXPECT_EQ(Child::run([&](Child& child) {
              const Client client = connect("memory://fork");
              auto lease = client.make_lock("x").try_acquire();
              child.check(lease.has_value());
              child.check(lease && lease->release());
              child.check(client.make_lock("x").try_acquire().has_value());  // no waiter of the parent got it
              child.check(reports.news.empty());
              child.check(MemoryStore::named("fork") == MemoryStore::named("fork"));
            }),
            "good");
  EXPECT_EQ(store->residue("x", clock), 2U);
  EXPECT_EQ(MemoryStore::named("fork"), store);
}

// With so many stores the thread is nearly always inside of the call when its process forks. It allocates nothing
// there, because the allocator of AddressSanitizer does not survive a fork in the middle of that.
TEST(MemoryFork, TheChildMayUseStoresWhateverTheParentsThreadsDid) {
  std::vector<std::shared_ptr<MemoryStore>> stores;
  for (int i = 0; i < 500; ++i) stores.push_back(MemoryStore::named("fork/" + std::to_string(i)));
  const auto kept = MemoryStore::named("fork/busy");
  std::atomic<bool> done = false;
  std::thread busy([&] {
    while (!done) (void)MemoryStore::named("fork/busy");
  });
  for (int round = 0; round < 20; ++round) {
    const std::string result = Child::run([&](Child& child) {
      const auto own = MemoryStore::named("fork/0");
      child.check(own != stores[0]);
      child.check(own == MemoryStore::named("fork/0"));
    });
    EXPECT_EQ(result, "good");
    if (result != "good") break;
  }
  done = true;
  busy.join();
}

}  // namespace
}  // namespace dlock::memory
