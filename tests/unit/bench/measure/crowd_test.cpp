#include "bench/measure/crowd.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <latch>
#include <set>
#include <stdexcept>

#include <dlock/error.hpp>

namespace dlock::bench {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::nanoseconds;

// Whose windows would last for an hour, did nothing end them.
class CrowdTest : public testing::Test {
 protected:
  // Asks for the end of the window once there have been so many calls.
  auto counting_to(std::uint64_t calls) {
    return [this, calls](std::size_t, const std::stop_token&) -> Crowd::Work {
      return [this, calls](const std::stop_token&) {
        if (++calls_ >= calls) stop_.request_stop();
        return std::optional<Clock::duration>(microseconds(5));
      };
    };
  }
  std::string failure_of(const std::function<void()>& action) {
    try {
      action();
    } catch (const std::exception& error) {
      return error.what();
    }
    return "nothing";
  }

  std::atomic<std::uint64_t> calls_ = 0;
  std::stop_source stop_;
};

TEST_F(CrowdTest, AnswersWithTheCallsOfAllWorkers) {
  std::latch each_has_worked(3);
  Crowd crowd(3, [&](std::size_t worker, const std::stop_token&) -> Crowd::Work {
    return [&, worker, first = true](const std::stop_token&) mutable {
      if (std::exchange(first, false)) each_has_worked.count_down();
      return std::optional<Clock::duration>(microseconds(worker + 1));
    };
  });
  crowd.gather({});
  crowd.start();
  each_has_worked.wait();
  const Window all = crowd.finish();
  EXPECT_EQ(all.calls_of_each.size(), 3U);
  EXPECT_THAT(all.calls_of_each, testing::Each(testing::Ge(1U)));
  EXPECT_EQ(all.calls(), crowd.calls());
  EXPECT_EQ(all.samples.count(), all.calls());
  EXPECT_DOUBLE_EQ(all.samples.longest(), 3);
  EXPECT_DOUBLE_EQ(all.samples.percentile(0), 1);
}

TEST_F(CrowdTest, AStopEndsAWindow) {
  Crowd crowd(2, counting_to(100));
  crowd.gather({});
  crowd.start();
  const Window window = crowd.measure(hours(1), stop_.get_token());
  EXPECT_FALSE(window.complete);
  EXPECT_EQ(window.samples.count(), window.calls());
  EXPECT_GT(window.length, nanoseconds(0));
  EXPECT_LT(window.length, hours(1));
}

TEST_F(CrowdTest, AWindowThatEndsInTimeIsComplete) {
  Crowd crowd(1, counting_to(1'000'000'000));
  crowd.gather({});
  crowd.start();
  const Window window = crowd.measure(nanoseconds(1), stop_.get_token());
  EXPECT_TRUE(window.complete);
  EXPECT_GT(window.samples.count(), 0U) << "it lasts until there is a sample";
  EXPECT_GT(window.per_second(), 0);
}

TEST_F(CrowdTest, ContextSwitchesAreDividedByTheCalls) {
  Window window;
  EXPECT_EQ(window.switches_each(), 0);
  window.calls_of_each = {3, 1};
  window.context_switches = 6;
  EXPECT_EQ(window.switches_each(), 1.5);
}

// Whoever measures sleeps until there is something to see.
TEST_F(CrowdTest, AWindowHasTheContextSwitchesOfTheProcess) {
  Crowd crowd(1, counting_to(1'000'000'000));
  crowd.gather({});
  crowd.start();
  const Window window = crowd.measure(std::chrono::milliseconds(5), stop_.get_token());
  EXPECT_GT(window.context_switches, 0U);
}

TEST_F(CrowdTest, CallsWithoutASampleAreCountedAllTheSame) {
  Crowd crowd(1, [&](std::size_t, const std::stop_token&) -> Crowd::Work {
    return [&](const std::stop_token&) -> std::optional<Clock::duration> {
      if (++calls_ == 5) stop_.request_stop();
      return std::nullopt;
    };
  });
  crowd.gather({});
  crowd.start();
  const Window window = crowd.measure(hours(1), stop_.get_token());
  EXPECT_TRUE(window.samples.empty());
  (void)crowd.finish();
  EXPECT_GE(crowd.calls(), 5U);
}

TEST_F(CrowdTest, NobodyBeginsBeforeTheStart) {
  Crowd crowd(4, counting_to(1));
  crowd.gather({});
  EXPECT_EQ(calls_, 0U);
  (void)crowd.finish();
  EXPECT_EQ(calls_, 0U);
}

TEST_F(CrowdTest, EveryWorkerHasAThreadAndANumberOfItsOwn) {
  std::mutex mutex;
  std::set<std::thread::id> threads;
  std::set<std::size_t> numbers;
  Crowd crowd(5, [&](std::size_t worker, const std::stop_token&) -> Crowd::Work {
    const std::scoped_lock lock(mutex);
    threads.insert(std::this_thread::get_id());
    numbers.insert(worker);
    return [](const std::stop_token&) { return std::nullopt; };
  });
  crowd.gather({});
  (void)crowd.finish();
  EXPECT_EQ(threads.size(), 5U);
  EXPECT_EQ(*numbers.rbegin(), 4U);
}

TEST_F(CrowdTest, AWorkerThatThrowsEndsTheWindowWithItsError) {
  Crowd crowd(3, [&](std::size_t worker, const std::stop_token&) -> Crowd::Work {
    return [worker](const std::stop_token&) -> std::optional<Clock::duration> {
      if (worker == 1) throw std::runtime_error("the connection broke");
      return microseconds(1);
    };
  });
  crowd.gather({});
  crowd.start();
  EXPECT_EQ(failure_of([&] { (void)crowd.measure(hours(1), {}); }), "the connection broke");
}

TEST_F(CrowdTest, AWorkerThatCannotBeginEndsTheGathering) {
  Crowd crowd(3, [](std::size_t worker, const std::stop_token&) -> Crowd::Work {
    if (worker == 2) throw std::runtime_error("refused");
    return [](const std::stop_token&) { return std::nullopt; };
  });
  EXPECT_EQ(failure_of([&] { crowd.gather({}); }), "refused");
}

TEST_F(CrowdTest, WhatIsNotAnExceptionIsHandedOverAsWell) {
  Crowd crowd(1, [](std::size_t, const std::stop_token&) -> Crowd::Work { throw 42; });
  EXPECT_THROW(crowd.gather({}), int);
}

TEST_F(CrowdTest, AnErrorNobodyAsksForEndsWithTheCrowd) {
  Crowd crowd(2, [](std::size_t, const std::stop_token&) -> Crowd::Work { throw std::runtime_error("refused"); });
}

TEST_F(CrowdTest, GatheringEndsWithAStop) {
  Crowd crowd(1, [&](std::size_t, const std::stop_token& cancel) -> Crowd::Work {
    stop_.request_stop();
    while (!cancel.stop_requested()) std::this_thread::yield();
    return [](const std::stop_token&) { return std::nullopt; };
  });
  crowd.gather(stop_.get_token());
  (void)crowd.finish();
  EXPECT_EQ(crowd.calls(), 0U);
}

// A worker that does nothing until it is told to stop, and then throws.
Crowd::MakeWork throwing_at_the_end(std::latch& at_work, std::function<void()> raise) {
  return [&at_work, raise = std::move(raise)](std::size_t, const std::stop_token&) -> Crowd::Work {
    return [&at_work, raise](const std::stop_token& cancel) -> std::optional<Clock::duration> {
      at_work.count_down();
      while (!cancel.stop_requested()) std::this_thread::yield();
      raise();
      return std::nullopt;
    };
  };
}

TEST_F(CrowdTest, ACancelledCallIsNoErrorAtTheEnd) {
  std::latch at_work(1);
  Crowd crowd(1, throwing_at_the_end(at_work, [] { throw Error(errc::cancelled); }));
  crowd.gather({});
  crowd.start();
  at_work.wait();
  EXPECT_EQ(failure_of([&] { (void)crowd.finish(); }), "nothing");
}

TEST_F(CrowdTest, AnyOtherErrorIsOneAtTheEnd) {
  std::latch at_work(1);
  Crowd crowd(1, throwing_at_the_end(at_work, [] { throw Error(errc::unavailable, "gone"); }));
  crowd.gather({});
  crowd.start();
  at_work.wait();
  EXPECT_THAT(failure_of([&] { (void)crowd.finish(); }), testing::HasSubstr("gone"));
}

TEST_F(CrowdTest, ACallThatIsCancelledByNobodyIsAnError) {
  Crowd crowd(1, [](std::size_t, const std::stop_token&) -> Crowd::Work {
    return [](const std::stop_token&) -> std::optional<Clock::duration> { throw Error(errc::cancelled); };
  });
  crowd.gather({});
  crowd.start();
  EXPECT_THROW((void)crowd.measure(hours(1), {}), Error);
}

TEST_F(CrowdTest, CallsBeforeAWindowDoNotCountInIt) {
  std::atomic<bool> measuring = false;
  Crowd crowd(1, [&](std::size_t, const std::stop_token&) -> Crowd::Work {
    return [&](const std::stop_token&) {
      ++calls_;
      return std::optional<Clock::duration>(measuring ? microseconds(1) : microseconds(1000));
    };
  });
  crowd.gather({});
  crowd.start();
  while (calls_ < 10) std::this_thread::yield();
  measuring = true;
  const auto calls_before = calls_.load();
  while (calls_ < calls_before + 2) std::this_thread::yield();  // whoever looked before has ended
  const Window window = crowd.measure(nanoseconds(1), {});
  EXPECT_DOUBLE_EQ(window.samples.longest(), 1);
}

}  // namespace
}  // namespace dlock::bench
