// The process and its threads: forks, random numbers, time slices.
#include "util/process.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/forked_child.hpp"
#include "util/mutex.hpp"
#include "util/per_process.hpp"
#include "util/time_slice.hpp"

namespace dlock::util {
namespace {

using Child = test::ForkedChild;

TEST(Process, Texts_AreShortAndPrintable) {
  for (const std::string& text : {host_name(), program_name()}) {
    EXPECT_FALSE(text.empty());
    EXPECT_EQ(text.find_first_of(": \n\t"), std::string::npos) << text;
  }
  EXPECT_EQ(process_id(), getpid());
}

TEST(Process, Fork_IsCountedInTheChildOnly) {
  const std::uint64_t before = fork_generation();
  EXPECT_EQ(Child::run([&](Child& child) { child.check(fork_generation() == before + 1); }), "good");
  EXPECT_EQ(fork_generation(), before);
}

TEST(Process, RandomNumbers_RepeatInNoThreadAndNoChild) {
  std::set<std::uint64_t> seen{kernel_random()};
  void* const shared = mmap(nullptr, sizeof(std::uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  auto& of_child = *static_cast<std::uint64_t*>(shared);
  EXPECT_EQ(Child::run([&](Child&) { of_child = kernel_random(); }), "good");
  seen.insert(of_child);
  munmap(shared, sizeof(std::uint64_t));
  std::vector<std::uint64_t> of_thread;
  std::thread([&] {
    for (int i = 0; i < 100; ++i) of_thread.push_back(kernel_random());
  }).join();
  seen.insert(of_thread.begin(), of_thread.end());
  for (int i = 0; i < 1000; ++i) seen.insert(kernel_random());
  EXPECT_EQ(seen.size(), 1102U);
}

struct Counter {
  Mutex mutex;
  int value DLOCK_GUARDED_BY(mutex) = 0;
};

TEST(PerProcess, Child_HasAFreshObjectAndThreadsShareOne) {
  static constinit PerProcess<Counter> counter;
  Counter& ours = counter.get();
  const MutexLock lock(ours.mutex);  // to the child, as if another thread had it
  ours.value = 5;
  std::thread([&] { EXPECT_EQ(&counter.get(), &ours); }).join();
  EXPECT_EQ(Child::run([&](Child& child) {
              Counter& own = counter.get();
              const MutexLock own_lock(own.mutex);
              child.check(&own != &ours);
              child.check(own.value == 0);
              child.check(&counter.get() == &own);
            }),
            "good");
  EXPECT_EQ(&counter.get(), &ours);
}

TEST(TimeSlice, Request_ChangesNoPolicyAndNoNiceness) {
  for (const int policy : {SCHED_OTHER, SCHED_BATCH, SCHED_IDLE}) {
    std::thread([policy] {
      const sched_param none{};
      ASSERT_EQ(::sched_setscheduler(0, policy, &none), 0);
      ASSERT_EQ(::setpriority(PRIO_PROCESS, 0, ::getpriority(PRIO_PROCESS, 0) + 1), 0);
      const int nice = ::getpriority(PRIO_PROCESS, 0);
      ask_for_short_time_slices();
      EXPECT_EQ(::sched_getscheduler(0), policy);
      EXPECT_EQ(::getpriority(PRIO_PROCESS, 0), nice);
    }).join();
  }
}

}  // namespace
}  // namespace dlock::util
