// Waiting is driven by the kernel's events. The waiting clients have a clock that stands still: no timer of theirs ever
// fires, so a grant that comes can only have come through an event.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <filesystem>
#include <future>
#include <latch>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "support.hpp"
#include "torture/rig/sanitizers.hpp"

namespace dlock::file::test {
namespace {

using namespace std::chrono_literals;

// An acquire in the background.
class Waiter {
 public:
  Waiter(const Client& client, const std::string& name) : lock_(client.make_lock(name)) {
    lock_.async_acquire({.cancel = stop_.get_token()}, [state = state_](std::error_code ec, Lease lease) {
      state->set_value({ec, std::move(lease)});
    });
    // Tasks run one at a time, so by now the acquire has been tried.
    (void)client.inspect(name);
  }
  [[nodiscard]] bool ready() const { return result_.wait_for(0s) == std::future_status::ready; }
  [[nodiscard]] bool wait() const { return result_.wait_for(hang_guard) == std::future_status::ready; }
  [[nodiscard]] Lease take() { return wait() ? std::move(result_.get().second) : Lease(); }
  [[nodiscard]] std::error_code error() { return wait() ? result_.get().first : std::error_code(); }
  void cancel() { stop_.request_stop(); }

 private:
  using Outcome = std::pair<std::error_code, Lease>;
  DistributedLock lock_;
  std::stop_source stop_;
  std::shared_ptr<std::promise<Outcome>> state_ = std::make_shared<std::promise<Outcome>>();
  std::future<Outcome> result_ = state_->get_future();
};

class FileWaitingTest : public testing::Test {
 protected:
  [[nodiscard]] ClientOptions standing_still() const {
    return {.response_timeout = hang_guard, .clock = std::make_shared<ManualClock>()};
  }

  // Comes back when the client's thread has done what it had been given before.
  static void drain(const Client& client) {
    const auto done = std::make_shared<std::promise<void>>();
    client.make_lock("drain").async_acquire({.wait = Duration()},
                                            [done](std::error_code, const Lease&) { done->set_value(); });
    EXPECT_EQ(done->get_future().wait_for(hang_guard), std::future_status::ready);
  }

  ScratchDirectory scratch_;
  Client holder_ = connect(scratch_.url());
  OpenBackend waiting_{scratch_.url(), standing_still()};
};

TEST_F(FileWaitingTest, WaitersOfOneClientAreServedInTheirOrderEachWithOneWakeUp) {
  auto lease = holder_.make_lock("a").acquire();
  std::deque<Waiter> waiters;
  for (int i = 0; i < 20; ++i) waiters.emplace_back(waiting_.client, "a");
  const auto tries_to_wait = waiting_.backend->kernel_tries();
  EXPECT_TRUE(lease.release());
  while (!waiters.empty()) {
    auto granted = waiters.front().take();
    EXPECT_TRUE(granted.held());
    for (std::size_t i = 1; i < waiters.size(); ++i) EXPECT_FALSE(waiters[i].ready());
    waiters.pop_front();
    EXPECT_TRUE(granted.release());
  }
  EXPECT_EQ(waiting_.backend->kernel_tries() - tries_to_wait, 20U);
  EXPECT_LE(waiting_.backend->wake_ups(), 40U);
}

TEST_F(FileWaitingTest, ABusyLockMakesItsWaitersDoNothing) {
  auto lease = holder_.make_lock("a").acquire();
  Waiter waiter(waiting_.client, "a");
  const auto tries = waiting_.backend->kernel_tries();
  const auto other = connect(scratch_.url());
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(other.make_lock("a").try_acquire().has_value());
    EXPECT_TRUE(other.inspect("a").held);
    EXPECT_EQ(other.list().size(), 1U);
  }
  // The kernel tells in order: when the release has come through, so has whatever came before it.
  EXPECT_TRUE(lease.release());
  EXPECT_TRUE(waiter.take().held());
  EXPECT_EQ(waiting_.backend->wake_ups(), 1U);
  EXPECT_EQ(waiting_.backend->kernel_tries(), tries + 1);
}

TEST_F(FileWaitingTest, ClientsThatWaitForOneLockDoNotWakeEachOther) {
  constexpr int clients = 8;
  std::deque<OpenBackend> all;
  std::deque<Waiter> waiters;
  auto lease = holder_.make_lock("a").acquire();
  for (int i = 0; i < clients; ++i) {
    waiters.emplace_back(all.emplace_back(scratch_.url(), standing_still()).client, "a");
  }
  EXPECT_TRUE(lease.release());
  for (int left = clients; left > 0; --left) {
    std::deque<Waiter>::iterator winner;
    const auto end = std::chrono::steady_clock::now() + hang_guard;
    do {
      winner = std::find_if(waiters.begin(), waiters.end(), [](const Waiter& waiter) { return waiter.ready(); });
      std::this_thread::yield();
    } while (winner == waiters.end() && std::chrono::steady_clock::now() < end);
    ASSERT_NE(winner, waiters.end()) << left << " still wait";
    auto granted = winner->take();
    waiters.erase(winner);
    EXPECT_TRUE(granted.release());
  }
  // A try when the wait begins, one when the watch stands, and at most one for each of the releases.
  for (const auto& open : all) EXPECT_LE(open.backend->kernel_tries(), 2U + clients);
}

TEST_F(FileWaitingTest, ACancelledWaiterLeavesNothingBehind) {
  auto lease = holder_.make_lock("a").acquire();
  Waiter waiter(waiting_.client, "a");
  EXPECT_EQ(open_descriptors("/a.lock"), 2U);
  waiter.cancel();
  EXPECT_EQ(waiter.error(), errc::cancelled);
  for (int i = 0; i < 3; ++i) drain(waiting_.client);
  EXPECT_EQ(open_descriptors("/a.lock"), 1U) << "more than the holder's";
  EXPECT_TRUE(lease.release());
  EXPECT_TRUE(holder_.make_lock("a").try_acquire().has_value());
}

TEST_F(FileWaitingTest, ManyWaitersShareOneDescriptor) {
  constexpr int waiters = rig::sanitized ? 2'000 : 10'000;
  struct Served {
    std::atomic<int> count{0};
    std::promise<void> all;
  };
  const auto served = std::make_shared<Served>();
  auto lease = holder_.make_lock("a").acquire();
  auto lock = waiting_.client.make_lock("a");
  const auto before = open_descriptors();
  for (int i = 0; i < waiters; ++i) {
    lock.async_acquire({}, [served](std::error_code ec, const Lease& won) {
      if (!ec && won.held() && ++served->count == waiters) served->all.set_value();
    });
  }
  while (waiting_.client.stats().waiting < waiters) std::this_thread::yield();
  EXPECT_LE(open_descriptors(), before + 2);
  EXPECT_TRUE(lease.release());
  EXPECT_EQ(served->all.get_future().wait_for(hang_guard * 2), std::future_status::ready)
      << served->count << " were granted";
}

TEST_F(FileWaitingTest, AnOverflowOfTheEventQueueLosesNoWakeUp) {
  const auto limit = std::stoul(read_file("/proc/sys/fs/inotify/max_queued_events"));
  if (limit > 200'000) GTEST_SKIP() << "fs.inotify.max_queued_events is too large to fill: " << limit;
  auto lease = holder_.make_lock("a").acquire();
  Waiter waiter(waiting_.client, "a");
  // While a handler blocks the engine's thread, nobody reads the events.
  std::latch blocked(1);
  std::latch go_on(1);
  waiting_.client.make_lock("b").async_acquire({}, [&](std::error_code, const Lease&) {
    blocked.count_down();
    go_on.wait();
  });
  blocked.wait();
  for (unsigned long i = 0; i <= limit; ++i) {
    const std::string file = scratch_.locks() + "/stranger-" + std::to_string(i % 2);
    write_file(file, "");
    std::filesystem::remove(file);
  }
  EXPECT_TRUE(lease.release());
  go_on.count_down();
  EXPECT_TRUE(waiter.take().held());
}

TEST_F(FileWaitingTest, ATimedWaitEndsAndLeavesTheOthersWaiting) {
  auto lease = holder_.make_lock("a").acquire();
  Waiter waiter(waiting_.client, "a");
  EXPECT_FALSE(holder_.make_lock("a").try_acquire_for(20ms).has_value());
  const auto third = connect(scratch_.url());
  EXPECT_FALSE(third.make_lock("a").try_acquire_for(20ms).has_value());
  EXPECT_FALSE(waiter.ready());
  EXPECT_TRUE(lease.release());
  EXPECT_TRUE(waiter.take().held());
}

}  // namespace
}  // namespace dlock::file::test
