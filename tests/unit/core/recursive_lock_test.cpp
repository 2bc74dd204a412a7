#include <dlock/recursive_lock.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <dlock/client.hpp>
#include <dlock/error.hpp>

#include "tests/support/fake_backend.hpp"
#include "tests/support/simple_backend.hpp"
#include "util/event.hpp"

namespace dlock {
namespace {

using namespace std::chrono_literals;

class RecursiveLockTest : public testing::Test {
 protected:
  std::shared_ptr<test::SimpleService> service_ = std::make_shared<test::SimpleService>();
  std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>();
  Client client_ = connect("simple://", {.label = "test", .clock = clock_}, service_->factory());
  RecursiveLock lock_{client_.make_lock("x")};
};

TEST_F(RecursiveLockTest, AThreadMayTakeItAgain) {
  EXPECT_EQ(lock_.name(), "x");
  EXPECT_EQ(lock_.hold_count(), 0U);
  lock_.lock();
  const FencingToken token = lock_.lease().token();
  EXPECT_EQ(lock_.hold_count(), 1U);
  lock_.lock();
  EXPECT_TRUE(lock_.try_lock());
  EXPECT_TRUE(lock_.try_lock_for(1s));
  EXPECT_TRUE(lock_.try_lock_until(std::chrono::steady_clock::now()));
  EXPECT_EQ(lock_.hold_count(), 5U);
  EXPECT_EQ(lock_.lease().token(), token) << "one lease";
  EXPECT_EQ(client_.stats().acquired, 1U);
  for (std::size_t left = 5; left > 0; --left) {
    EXPECT_EQ(lock_.hold_count(), left);
    EXPECT_TRUE(service_->held("x"));
    lock_.unlock();
  }
  EXPECT_EQ(lock_.hold_count(), 0U);
  EXPECT_FALSE(service_->held("x"));
  EXPECT_FALSE(lock_.lease().has_value());
}

TEST_F(RecursiveLockTest, UnlockWithoutAHoldHasNoEffect) {
  lock_.unlock();
  EXPECT_EQ(lock_.hold_count(), 0U);
}

TEST_F(RecursiveLockTest, TheCountIsEachThreadsOwn) {
  lock_.lock();
  std::thread([&] {
    EXPECT_EQ(lock_.hold_count(), 0U);
    EXPECT_FALSE(lock_.lease().has_value());
    EXPECT_FALSE(lock_.try_lock());
    lock_.unlock();
  }).join();
  EXPECT_EQ(lock_.hold_count(), 1U);
  EXPECT_TRUE(lock_.lease().held());
  lock_.unlock();
}

TEST_F(RecursiveLockTest, NestedGuardsWork) {
  {
    const std::lock_guard outer(lock_);
    const std::lock_guard inner(lock_);
    const std::scoped_lock innermost(lock_);
    EXPECT_EQ(lock_.hold_count(), 3U);
  }
  EXPECT_FALSE(service_->held("x"));
}

TEST_F(RecursiveLockTest, ALostLeaseIsReportedUntilItIsFullyUnlocked) {
  lock_.lock();
  lock_.lock();
  clock_->advance(31s);
  EXPECT_FALSE(lock_.lease().held());
  for (int i = 0; i < 2; ++i) {
    try {
      lock_.lock();
      FAIL();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), errc::lost);
    }
    EXPECT_THROW((void)lock_.try_lock(), Error);
    EXPECT_THROW((void)lock_.try_lock_for(1s), Error);
  }
  EXPECT_EQ(lock_.hold_count(), 2U) << "a failed lock() counts nothing";
  lock_.unlock();
  EXPECT_EQ(lock_.hold_count(), 1U);
  EXPECT_THROW(lock_.lock(), Error);
  lock_.unlock();
  EXPECT_EQ(lock_.hold_count(), 0U);
  lock_.lock();
  EXPECT_TRUE(lock_.lease().held());
  lock_.unlock();
}

TEST_F(RecursiveLockTest, UnlockingALostLeaseDoesNotReleaseTheNextHoldersLock) {
  lock_.lock();
  clock_->advance(31s);
  util::Event taken;
  util::Event unlocked;
  std::thread next([&] {
    lock_.lock();
    taken.set();
    EXPECT_TRUE(unlocked.wait(60s));
    EXPECT_TRUE(lock_.lease().held());
    lock_.unlock();
  });
  ASSERT_TRUE(taken.wait(60s));
  lock_.unlock();
  EXPECT_TRUE(service_->held("x"));
  unlocked.set();
  next.join();
}

TEST_F(RecursiveLockTest, IsAMutexBetweenThreads) {
  int counter = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 30; ++i) {
        const std::lock_guard outer(lock_);
        const std::lock_guard inner(lock_);
        ++counter;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(counter, 120);
}

// Not even where a backend fails with the code that a wait which is over has: somebody else does not hold the lock.
TEST(RecursiveLock, LockThrowsWhateverTheBackendFailsWith) {
  const auto service = std::make_shared<test::FakeService>();
  service->on_contend = [](auto& contend) { contend.fail({errc::timed_out, "the service lost patience"}); };
  const Client client = connect("fake://", {.label = "test"}, service->factory());
  RecursiveLock recursive(client.make_lock("x"));
  DistributedLock plain = client.make_lock("x");
  const auto expect_thrown = [](const auto& attempt) {
    try {
      attempt();
      ADD_FAILURE() << "returned without the lock";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), errc::unavailable);
      EXPECT_EQ(e.detail(), "the service lost patience");
    }
  };
  expect_thrown([&] { recursive.lock(); });
  expect_thrown([&] { (void)plain.try_acquire(); });
  expect_thrown([&] { plain.lock(); });
  expect_thrown([&] { with_lock(plain, {}, [](const Lease&) { ADD_FAILURE() << "ran without the lock"; }); });
  EXPECT_EQ(recursive.hold_count(), 0U);
}

TEST_F(RecursiveLockTest, MovingMovesTheHold) {
  lock_.lock();
  RecursiveLock moved = std::move(lock_);
  EXPECT_EQ(moved.hold_count(), 1U);
  moved = RecursiveLock(client_.make_lock("y"));
  EXPECT_FALSE(service_->held("x"));
}

TEST_F(RecursiveLockTest, ATryWithoutLimitWaits) {
  lock_.lock();
  RecursiveLock other(client_.make_lock("x"));
  util::Event done;
  std::thread waiter([&] {
    EXPECT_TRUE(other.try_lock_for(std::chrono::hours::max()));
    other.unlock();
    done.set();
  });
  lock_.unlock();
  EXPECT_TRUE(done.wait(60s));
  waiter.join();
}

}  // namespace
}  // namespace dlock
