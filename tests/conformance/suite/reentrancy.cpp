// Contract 16: not reentrant by default; RecursiveLock adds reentrancy for each thread on top of any backend.
#include <algorithm>
#include <mutex>
#include <system_error>
#include <utility>

#include "suite/contract.hpp"

namespace dlock::conformance {

DLOCK_CONFORMANCE_TESTS(reentrancy)

TEST_P(Contract, C16_AHolderDoesNotEnterTwice) {
  DLOCK_APPLIES_IF(kind().kind == LockKind::lock, "it is said of plain locks");
  DistributedLock lock = client().make_lock(name());
  const Lease lease = lock.acquire({.wait = guard()});
  EXPECT_FALSE(lock.try_acquire().has_value());
  EXPECT_FALSE(lock.try_lock());
}

TEST_P(ClientContract, C16_LockingTwiceOnOneThreadIsRefused) {
  DLOCK_APPLIES_IF(kind().kind == LockKind::lock, "it is said of plain locks");
  DistributedLock lock = client().make_lock(name());
  ASSERT_TRUE(lock.try_lock());
  EXPECT_FALSE(lock.try_lock());
  try {
    lock.lock();
    ADD_FAILURE() << "a second lock() on the same thread must throw";
  } catch (const std::system_error& e) {
    EXPECT_EQ(e.code(), std::errc::resource_deadlock_would_occur);
  }
  lock.unlock();
  EXPECT_TRUE(is_free(name()));
}

TEST_P(ClientContract, C16_ARecursiveLockCountsForItsThread) {
  DLOCK_APPLIES_IF(kind().kind == LockKind::lock, "it is said of plain locks");
  RecursiveLock lock(client().make_lock(name()));
  lock.lock();
  const FencingToken token = lock.lease().token();
  lock.lock();
  EXPECT_TRUE(lock.try_lock());
  EXPECT_TRUE(lock.try_lock_for(std::chrono::milliseconds(1)));
  EXPECT_EQ(lock.hold_count(), 4U);
  EXPECT_EQ(lock.lease().token(), token);
  for (std::size_t left = 3; left > 0; --left) {
    lock.unlock();
    EXPECT_EQ(lock.hold_count(), left);
    EXPECT_TRUE(lock.lease().held());
    EXPECT_FALSE(is_free(name()));
  }
  lock.unlock();
  EXPECT_EQ(lock.hold_count(), 0U);
  EXPECT_TRUE(is_free(name()));
}

TEST_P(ClientContract, C16_ARecursiveLockKeepsOtherThreadsOut) {
  DLOCK_APPLIES_IF(kind().kind == LockKind::lock, "it is said of plain locks");
  RecursiveLock lock(client().make_lock(name()));
  const std::scoped_lock guarded(lock);
  bool entered = true;
  std::size_t count = 1;
  {
    const Thread other([&] {
      entered = lock.try_lock();
      count = lock.hold_count();
    });
  }
  EXPECT_FALSE(entered);
  EXPECT_EQ(count, 0U);
  EXPECT_EQ(lock.hold_count(), 1U);
}

TEST_P(ClientContract, C16_ARecursiveLockKeepsTheDefaultsOfTheLockThatItWraps) {
  DLOCK_APPLIES_IF(kind().kind == LockKind::lock, "it is said of plain locks");
  step_time_if_possible();
  const auto half = std::max(lease() / 2, caps().min_lease);
  DistributedLock inner = client().make_lock(name());
  inner.set_defaults({.lease = half, .renew = false});
  RecursiveLock lock(std::move(inner));
  lock.lock();
  ASSERT_LE(lock.lease().valid_until(), now() + half);
  const LossEvent loss(lock.lease());
  pass_until(loss.event(), "a lease of fixed length does not end");
  lock.unlock();
}

TEST_P(ClientContract, C16_ARecursiveLockSaysWhenItsLeaseWasLost) {
  DLOCK_APPLIES_IF(kind().kind == LockKind::lock, "it is said of plain locks");
  DLOCK_NEEDS(kill_hold);
  step_time_if_possible();
  DistributedLock inner = client().make_lock(name());
  inner.set_defaults(renewed());
  RecursiveLock lock(std::move(inner));
  lock.lock();
  lock.lock();
  const LossEvent loss(lock.lease());
  fixture().kill_hold(LockKind::lock, name());
  pass_until(loss.event(), "the loss of a killed hold is not signalled");
  try {
    lock.lock();
    ADD_FAILURE() << "entering again under a lost lease must throw";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), errc::lost);
  }
  EXPECT_FALSE(lock.lease().held());
  lock.unlock();
  lock.unlock();
  EXPECT_EQ(lock.hold_count(), 0U);
  lock.lock();
  EXPECT_TRUE(lock.lease().held());
  lock.unlock();
}

}  // namespace dlock::conformance
