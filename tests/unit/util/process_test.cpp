// The process and its threads: events, forks, random numbers, time slices.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/forked_child.hpp"
#include "torture/rig/hang_guard.hpp"
#include "util/event.hpp"
#include "util/mutex.hpp"
#include "util/per_process.hpp"
#include "util/process.hpp"
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

// --- Events ----------------------------------------------------------------------------------------------------------

using namespace std::chrono_literals;

TEST(Event, Wait_EndsAtItsLimitOrWithTheEvent) {
  Event event;
  EXPECT_FALSE(event.is_set());
  for (const auto limit : {0ns, std::chrono::nanoseconds::min()}) EXPECT_FALSE(event.wait(limit));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(event.wait(5ms));
  EXPECT_GE(std::chrono::steady_clock::now() - start, 5ms);
  for (int i = 0; i < 2; ++i) event.set();
  EXPECT_TRUE(event.is_set() && event.wait() && event.wait(0ns) && event.wait(-1s));
}

// Under TSan this also shows that writes before set() are visible after wait().
TEST(Event, Set_WakesTheWaiterAndPublishesWrites) {
  struct Slot {
    Event event;
    int payload = 0;
  };
  for (int round = 0; round < 3000; ++round) {
    const auto slot = std::make_shared<Slot>();
    std::thread setter([slot] {
      slot->payload = 42;
      slot->event.set();
    });
    if (round % 3 == 0) std::this_thread::yield();
    if (round % 4 == 0) {
      ASSERT_TRUE(slot->event.wait());
    } else if (round % 4 == 2) {
      ASSERT_TRUE(slot->event.wait(std::chrono::nanoseconds::max()));
    } else {
      while (!slot->event.wait(50us)) {
      }
    }
    ASSERT_EQ(slot->payload, 42);
    setter.join();
  }
}

// --- DeferredWakes ---------------------------------------------------------------------------------------------------

// A thread that waits for an event, and is asleep when the constructor returns.
class Sleeper {
 public:
  Sleeper() {
    std::atomic<pid_t> id = 0;
    thread_ = std::thread([this, &id] {
      id = static_cast<pid_t>(syscall(SYS_gettid));
      EXPECT_TRUE(event_.wait(rig::hang_guard));
      woken_ = true;
    });
    while (id == 0) std::this_thread::yield();
    const std::string stat = "/proc/self/task/" + std::to_string(id) + "/stat";
    for (std::string state; state != "S"; std::this_thread::yield()) {
      std::ifstream in(stat);
      std::string skipped;
      in >> skipped >> skipped >> state;
    }
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  ~Sleeper() { thread_.join(); }

  // Sets the event; true if the thread sleeps on for a moment.
  [[nodiscard]] bool set_sleeps_on() {
    event_.set();
    EXPECT_TRUE(event_.is_set());
    return sleeps_on();
  }
  [[nodiscard]] bool sleeps_on() const {
    for (int i = 0; i < 200 && !woken_; ++i) std::this_thread::yield();
    return !woken_;
  }
  void expect_woken() const {
    const auto end = std::chrono::steady_clock::now() + rig::hang_guard / 2;
    while (!woken_ && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    EXPECT_TRUE(woken_);
  }

 private:
  Event event_;
  std::atomic<bool> woken_ = false;
  std::thread thread_;
};

TEST(DeferredWakes, Waiters_AreWokenByWakeOrAtTheEndOfTheOutermost) {
  Sleeper by_wake;
  Sleeper in_outer;
  Sleeper in_inner;
  Sleeper of_other_thread;
  {
    DeferredWakes outer;
    EXPECT_TRUE(by_wake.set_sleeps_on());
    outer.wake();
    by_wake.expect_woken();
    outer.wake();
    EXPECT_TRUE(in_outer.set_sleeps_on());
    {
      DeferredWakes inner;
      EXPECT_TRUE(in_inner.set_sleeps_on());
      inner.wake();
    }
    std::thread([&] { (void)of_other_thread.set_sleeps_on(); }).join();
    of_other_thread.expect_woken();
    EXPECT_TRUE(in_outer.sleeps_on() && in_inner.sleeps_on());
  }
  in_outer.expect_woken();
  in_inner.expect_woken();
}

TEST(DeferredWakes, WaitOfTheSameThread_WakesTheOthersFirst) {
  Sleeper sleeper;
  Event never;
  const DeferredWakes wakes;
  EXPECT_TRUE(sleeper.set_sleeps_on());
  EXPECT_FALSE(never.wait(1ms));
  sleeper.expect_woken();
}

// More events than DeferredWakes has room for. Most had a waiter that left: no thread is to be woken, but that is not
// known.
TEST(DeferredWakes, ManyEvents_WakeAllWaiters) {
  std::vector<Event> left(700);
  for (Event& event : left) EXPECT_FALSE(event.wait(0ns));
  Sleeper last;
  {
    const DeferredWakes wakes;
    for (Event& event : left) event.set();
    EXPECT_TRUE(last.set_sleeps_on());
  }
  last.expect_woken();
}

TEST(DeferredWakes, EventThatIsSet_MayBeDestroyedAtOnce) {
  for (int round = 0; round < 300; ++round) {
    std::atomic<Event*> current = nullptr;
    std::atomic<bool> gone = false;
    std::thread waiter([&] {
      auto event = std::make_unique<Event>();
      (void)event->wait(0ns);  // from now on set() has to wake waiters
      current = event.get();
      while (!event->is_set()) std::this_thread::yield();
      event.reset();
      gone = true;
    });
    {
      const DeferredWakes wakes;
      while (current == nullptr) std::this_thread::yield();
      current.load()->set();
      while (!gone) std::this_thread::yield();
    }
    waiter.join();
  }
}

}  // namespace
}  // namespace dlock::util
