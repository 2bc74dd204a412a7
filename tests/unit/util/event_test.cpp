#include "util/event.hpp"

#include <gtest/gtest.h>

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "torture/rig/hang_guard.hpp"

namespace dlock::util {
namespace {

using namespace std::chrono_literals;

TEST(Event, IsSetOnceAndStaysSet) {
  Event event;
  EXPECT_FALSE(event.is_set());
  event.set();
  EXPECT_TRUE(event.is_set());
  event.set();
  EXPECT_TRUE(event.is_set());
  EXPECT_TRUE(event.wait());
  EXPECT_TRUE(event.wait(0ns));
  EXPECT_TRUE(event.wait(-1s));
}

TEST(Event, AWaitWithALimitEnds) {
  Event event;
  EXPECT_FALSE(event.wait(0ns));
  EXPECT_FALSE(event.wait(-5s));
  EXPECT_FALSE(event.wait(std::chrono::nanoseconds::min()));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(event.wait(5ms));
  EXPECT_GE(std::chrono::steady_clock::now() - start, 5ms);
}

TEST(Event, MayBeSetAfterAWaitThatEndedEarly) {
  Event event;
  EXPECT_FALSE(event.wait(1ms));
  event.set();
  EXPECT_TRUE(event.wait());
}

TEST(Event, WakesTheWaiter) {
  Event event;
  std::atomic<bool> woken = false;
  std::thread waiter([&] {
    EXPECT_TRUE(event.wait());
    woken = true;
  });
  event.set();
  waiter.join();
  EXPECT_TRUE(woken);
}

TEST(Event, ALimitBeyondTheEndOfTimeIsNone) {
  Event event;
  std::thread waiter([&] { EXPECT_TRUE(event.wait(std::chrono::nanoseconds::max())); });
  event.set();
  waiter.join();
}

// Under TSan this also shows that what was written before set() is visible after wait().
TEST(Event, NeverLosesAWakeUpAndPublishesWhatWasWritten) {
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
    if (round % 2 == 0) {
      ASSERT_TRUE(slot->event.wait());
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

  void set() { event_.set(); }
  // Looks for a moment.
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

TEST(DeferredWakes, WhoWaitsIsWokenAtTheEnd) {
  Sleeper sleeper;
  {
    const DeferredWakes wakes;
    sleeper.set();
    EXPECT_TRUE(sleeper.sleeps_on());
  }
  sleeper.expect_woken();
}

TEST(DeferredWakes, WakesWhenItIsTold) {
  Sleeper first;
  Sleeper second;
  DeferredWakes wakes;
  first.set();
  EXPECT_TRUE(first.sleeps_on());
  wakes.wake();
  first.expect_woken();
  second.set();
  EXPECT_TRUE(second.sleeps_on());
  wakes.wake();
  second.expect_woken();
  wakes.wake();
}

TEST(DeferredWakes, TheEventIsSetAtOnce) {
  Event event;
  const DeferredWakes wakes;
  event.set();
  EXPECT_TRUE(event.is_set());
  EXPECT_TRUE(event.wait());
}

TEST(DeferredWakes, WhoIsAboutToWaitWakesTheOthersFirst) {
  Sleeper sleeper;
  Event never;
  const DeferredWakes wakes;
  sleeper.set();
  EXPECT_TRUE(sleeper.sleeps_on());
  EXPECT_FALSE(never.wait(1ms));
  sleeper.expect_woken();
}

TEST(DeferredWakes, OfNestedOnesTheOutermostWakes) {
  Sleeper in_outer;
  Sleeper in_inner;
  Sleeper after_inner;
  {
    const DeferredWakes outer;
    in_outer.set();
    {
      DeferredWakes inner;
      in_inner.set();
      inner.wake();
    }
    after_inner.set();
    EXPECT_TRUE(in_outer.sleeps_on());
    EXPECT_TRUE(in_inner.sleeps_on());
    EXPECT_TRUE(after_inner.sleeps_on());
  }
  in_outer.expect_woken();
  in_inner.expect_woken();
  after_inner.expect_woken();
}

TEST(DeferredWakes, AfterItsEndAWakeUpIsImmediate) {
  { const DeferredWakes wakes; }
  Sleeper sleeper;
  sleeper.set();
  sleeper.expect_woken();
}

TEST(DeferredWakes, OtherThreadsAreNotConcerned) {
  Sleeper sleeper;
  const DeferredWakes wakes;
  std::thread([&] { sleeper.set(); }).join();
  sleeper.expect_woken();
}

// More than it has room for. Most have somebody that waited once and went away: nobody is to be woken, but that is not
// known.
TEST(DeferredWakes, HasNoLimit) {
  constexpr std::size_t count = 700;
  std::vector<Event> left(count);
  for (Event& event : left) EXPECT_FALSE(event.wait(0ns));
  Sleeper first;
  Sleeper last;
  {
    const DeferredWakes wakes;
    first.set();
    for (Event& event : left) event.set();
    last.set();
    EXPECT_TRUE(last.sleeps_on());
  }
  first.expect_woken();
  last.expect_woken();
}

TEST(DeferredWakes, AnEventMayGoAsSoonAsItWasSeenToBeSet) {
  for (int round = 0; round < 300; ++round) {
    std::atomic<Event*> current = nullptr;
    std::atomic<bool> gone = false;
    std::thread waiter([&] {
      auto event = std::make_unique<Event>();
      (void)event->wait(0ns);  // from now on a wake-up is owed to whoever waits
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
