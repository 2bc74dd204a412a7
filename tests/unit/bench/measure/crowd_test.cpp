#include "bench/measure/crowd.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <mutex>
#include <set>
#include <stdexcept>
#include <utility>

#include <dlock/error.hpp>

namespace dlock::bench {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::nanoseconds;
using Sample = std::optional<Clock::duration>;

// The same work for each worker.
Crowd::MakeWork all_do(Crowd::Work work) {
  return [work = std::move(work)](std::size_t, const std::stop_token&) { return work; };
}

// Windows would last for an hour, did nothing end them.
class CrowdTest : public testing::Test {
 protected:
  // Asks for the end of the window once there have been so many calls.
  Crowd::MakeWork counting_to(std::uint64_t calls, Sample sample) {
    return all_do([this, calls, sample](const std::stop_token&) {
      if (++calls_ >= calls) stop_.request_stop();
      return sample;
    });
  }
  template <class Action>
  static std::string failure_of(const Action& action) {
    try {
      action();
    } catch (const std::exception& error) {
      return error.what();
    } catch (int) {
      return "a number";
    }
    return "nothing";
  }

  std::atomic<std::uint64_t> calls_ = 0;
  std::stop_source stop_;
};

TEST_F(CrowdTest, Workers_HaveThreadsOfTheirOwnAndAllCallsCount) {
  std::latch each_has_worked(3);
  std::mutex mutex;
  std::set<std::thread::id> threads;
  Crowd crowd(3, [&](std::size_t worker, const std::stop_token&) -> Crowd::Work {
    const std::scoped_lock lock(mutex);
    threads.insert(std::this_thread::get_id());
    return [&, worker, first = true](const std::stop_token&) mutable {
      if (std::exchange(first, false)) each_has_worked.count_down();
      return Sample(microseconds(worker + 1));
    };
  });
  crowd.gather({});
  EXPECT_EQ(threads.size(), 3U);
  EXPECT_EQ(crowd.calls(), 0U) << "before the start";
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

TEST_F(CrowdTest, Stop_EndsAnIncompleteWindow) {
  for (const Sample& sample : {Sample(microseconds(5)), Sample()}) {
    stop_ = {};
    calls_ = 0;
    Crowd crowd(2, counting_to(100, sample));
    crowd.gather({});
    crowd.start();
    const Window window = crowd.measure(hours(1), stop_.get_token());
    EXPECT_FALSE(window.complete);
    EXPECT_EQ(window.samples.count(), sample ? window.calls() : 0);
    EXPECT_TRUE(window.length > nanoseconds(0) && window.length < hours(1));
    (void)crowd.finish();
    EXPECT_GE(crowd.calls(), 100U);
  }
}

TEST_F(CrowdTest, Window_LastsUntilASampleAndHasTheUsage) {
  Crowd crowd(1, counting_to(1'000'000'000, microseconds(5)));
  crowd.gather({});
  crowd.start();
  const Window window = crowd.measure(nanoseconds(1), stop_.get_token());
  EXPECT_TRUE(window.complete);
  EXPECT_GT(window.samples.count(), 0U);
  EXPECT_DOUBLE_EQ(window.per_second(),
                   static_cast<double>(window.calls()) / std::chrono::duration<double>(window.length).count());
  // The measuring thread sleeps until there is a sample.
  const Window longer = crowd.measure(std::chrono::milliseconds(5), stop_.get_token());
  EXPECT_GT(longer.context_switches, 0U);
  EXPECT_GT(longer.processor_time, nanoseconds(0));
}

TEST_F(CrowdTest, CallsBeforeAWindow_DoNotCount) {
  std::atomic<bool> measuring = false;
  Crowd crowd(1, all_do([&](const std::stop_token&) {
                ++calls_;
                return Sample(measuring ? microseconds(1) : microseconds(1000));
              }));
  crowd.gather({});
  crowd.start();
  while (calls_ < 10) std::this_thread::yield();
  measuring = true;
  const auto calls_before = calls_.load();
  while (calls_ < calls_before + 2) std::this_thread::yield();  // a call that read the old value has ended
  EXPECT_DOUBLE_EQ(crowd.measure(nanoseconds(1), {}).samples.longest(), 1);
}

TEST_F(CrowdTest, FailureOfAWorker_EndsTheGatheringOrTheWindow) {
  const auto failing = [](std::size_t worker, const std::stop_token&) -> Crowd::Work {
    if (worker == 2) throw std::runtime_error("refused");
    return [](const std::stop_token&) { return std::nullopt; };
  };
  Crowd cannot_begin(3, failing);
  EXPECT_EQ(failure_of([&] { cannot_begin.gather({}); }), "refused");
  Crowd no_exception(1, [](std::size_t, const std::stop_token&) -> Crowd::Work { throw 42; });
  EXPECT_EQ(failure_of([&] { no_exception.gather({}); }), "a number");
  const Crowd dropped(3, failing);

  Crowd breaks(3, [](std::size_t worker, const std::stop_token&) -> Crowd::Work {
    return [worker](const std::stop_token&) -> Sample {
      if (worker == 1) throw std::runtime_error("the connection broke");
      return microseconds(1);
    };
  });
  breaks.gather({});
  breaks.start();
  EXPECT_EQ(failure_of([&] { (void)breaks.measure(hours(1), {}); }), "the connection broke");
}

TEST_F(CrowdTest, Stop_EndsTheGathering) {
  Crowd crowd(1, [&](std::size_t, const std::stop_token& cancel) -> Crowd::Work {
    stop_.request_stop();
    while (!cancel.stop_requested()) std::this_thread::yield();
    return [](const std::stop_token&) { return std::nullopt; };
  });
  crowd.gather(stop_.get_token());
  (void)crowd.finish();
  EXPECT_EQ(crowd.calls(), 0U);
}

TEST_F(CrowdTest, CancelledCall_IsAFailureUnlessTheCrowdStopsIt) {
  const struct {
    Error error;
    bool at_the_end;
    std::string expected;
  } rows[] = {
      {Error(errc::cancelled), true, "nothing"},
      {Error(errc::cancelled), false, Error(errc::cancelled).what()},
      {Error(errc::unavailable, "gone"), true, Error(errc::unavailable, "gone").what()},
  };
  for (const auto& row : rows) {
    std::latch at_work(1);
    Crowd crowd(1, all_do([&](const std::stop_token& cancel) -> Sample {
                  at_work.count_down();
                  while (row.at_the_end && !cancel.stop_requested()) std::this_thread::yield();
                  throw Error(row.error);
                }));
    crowd.gather({});
    crowd.start();
    at_work.wait();
    const auto end = [&] { row.at_the_end ? (void)crowd.finish() : (void)crowd.measure(hours(1), {}); };
    EXPECT_EQ(failure_of(end), row.expected);
  }
}

}  // namespace
}  // namespace dlock::bench
