// The contract as far as a plain lock shows it (lock, try_lock, unlock, and the lease underneath), for every lock type
// that is built on the library. Contract 16: not reentrant by default; RecursiveLock adds reentrancy for each thread.
// And contracts 1, 3 and 6 for several locks at once: a MultiLock holds all or none, and knows when one of them is
// lost.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <ostream>
#include <stop_token>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "suite/contract.hpp"

namespace dlock::conformance {

DLOCK_CONFORMANCE_TESTS(plain_lock)

// A Cpp17TimedLockable over the library.
class AnyLock {
 public:
  AnyLock() = default;
  AnyLock(const AnyLock&) = delete;
  AnyLock& operator=(const AnyLock&) = delete;
  virtual ~AnyLock() = default;

  virtual void lock() = 0;
  virtual bool try_lock() = 0;
  virtual bool try_lock_for(std::chrono::nanoseconds wait) = 0;
  virtual bool try_lock_until(std::chrono::steady_clock::time_point deadline) = 0;
  virtual void unlock() noexcept = 0;
  [[nodiscard]] virtual const Lease& lease() const noexcept = 0;
};

template <class Lock>
class LockOf final : public AnyLock {
 public:
  explicit LockOf(DistributedLock lock) : lock_(std::move(lock)) {}

  void lock() override { lock_.lock(); }
  bool try_lock() override { return lock_.try_lock(); }
  bool try_lock_for(std::chrono::nanoseconds wait) override { return lock_.try_lock_for(wait); }
  bool try_lock_until(std::chrono::steady_clock::time_point deadline) override {
    return lock_.try_lock_until(deadline);
  }
  void unlock() noexcept override { lock_.unlock(); }
  [[nodiscard]] const Lease& lease() const noexcept override { return lock_.lease(); }

 private:
  Lock lock_;
};

struct Adapter {
  std::string name;
  std::function<std::unique_ptr<AnyLock>(DistributedLock)> make;
};

void PrintTo(const Adapter& adapter, std::ostream* out) {
  *out << adapter.name;
}

class PlainLock : public ContractBase, public ::testing::WithParamInterface<std::tuple<Subject, Adapter>> {
 protected:
  // A lock of a client of its own; keeps its leases on these options.
  [[nodiscard]] std::unique_ptr<AnyLock> make(const std::string& name, const AcquireOptions& options = {},
                                              ClientOptions client_options = {}, Link link = Link::steady) {
    DistributedLock lock = client(std::move(client_options), link).make_lock(name);
    lock.set_defaults(options);
    return std::get<1>(GetParam()).make(std::move(lock));
  }

 private:
  [[nodiscard]] const Subject& subject() const override { return std::get<0>(GetParam()); }
};

namespace {

std::vector<PlainLock::ParamType> plain_locks() {
  const std::vector<Adapter> adapters{
      {"DistributedLock",
       [](DistributedLock lock) { return std::make_unique<LockOf<DistributedLock>>(std::move(lock)); }},
      {"RecursiveLock", [](DistributedLock lock) { return std::make_unique<LockOf<RecursiveLock>>(std::move(lock)); }}};
  std::vector<PlainLock::ParamType> all;
  for (const Subject& subject : client_subjects()) {
    for (const Adapter& each : adapters) all.emplace_back(subject, each);
  }
  return all;
}

// In a thread of its own, with a deadline, because a thread that waits for ever cannot be ended.
bool lock_in_time(AnyLock& lock) {
  return lock.try_lock_for(guard());
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(, PlainLock, ::testing::ValuesIn(plain_locks()), name_of);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PlainLock);

TEST_P(PlainLock, C01_WhileOneHoldsNobodyElseEnters) {
  const auto mine = make(name());
  const auto others = make(name());
  const std::scoped_lock guarded(*mine);
  EXPECT_TRUE(mine->lease().held());
  EXPECT_FALSE(others->try_lock());
  EXPECT_FALSE(others->lease().has_value());
  EXPECT_FALSE(is_free(name()));
}

TEST_P(PlainLock, C03_LossShowsInTheLeaseUnderneathAndUnlockIsQuiet) {
  DLOCK_NEEDS(kill_hold);
  step_time_if_possible();
  const auto lock = make(name(), renewed());
  ASSERT_TRUE(lock->try_lock());
  const LossEvent loss(lock->lease());
  fixture().kill_hold(LockKind::lock, name());
  pass_until(loss.event(), "the loss of a killed hold is not signalled");
  EXPECT_FALSE(lock->lease().held());
  lock->unlock();
  EXPECT_FALSE(lock->lease().has_value());
  EXPECT_TRUE(is_free(name()));
}

TEST_P(PlainLock, C05_StaleUnlockNeverFreesTheNextHolder) {
  DLOCK_NEEDS(kill_hold);
  const auto stale = make(name());
  const auto next = make(name());
  ASSERT_TRUE(stale->try_lock());
  fixture().kill_hold(LockKind::lock, name());
  ASSERT_TRUE(lock_in_time(*next));
  stale->unlock();
  EXPECT_TRUE(next->lease().held());
  EXPECT_FALSE(is_free(name()));
  next->unlock();
  EXPECT_TRUE(is_free(name()));
}

TEST_P(PlainLock, C08_ATimedTryEndsAtItsDeadlineWhichMayBeAnyTimePoint) {
  using Steady = std::chrono::steady_clock;
  const auto mine = make(name());
  const auto others = make(name());
  ASSERT_TRUE(mine->try_lock_until(Steady::time_point::max()));
  EXPECT_FALSE(others->try_lock_until(Steady::time_point::min()));
  EXPECT_FALSE(others->try_lock_for(std::chrono::nanoseconds(0)));
  const auto deadline = Steady::now() + std::chrono::milliseconds(20);
  EXPECT_FALSE(others->try_lock_until(deadline));
  EXPECT_GE(Steady::now(), deadline);
  const TimePoint start = now();
  EXPECT_FALSE(others->try_lock_for(std::chrono::milliseconds(50)));
  EXPECT_GE(now() - start, std::chrono::milliseconds(50));
  if (caps().counts_waiters) await_waiters(name(), 0);
  mine->unlock();
  await_no_residue(name());  // of the waits that ended
  ASSERT_TRUE(others->try_lock_until(Steady::time_point::min()));
  others->unlock();
}

TEST_P(PlainLock, C13_UnlockFreesTheLockIsNoLossAndMayBeRepeated) {
  auto lock = make(name());
  lock->unlock();
  ASSERT_TRUE(lock->try_lock());
  const std::stop_token lost = lock->lease().lost();
  lock->unlock();
  EXPECT_FALSE(lost.stop_requested());
  EXPECT_FALSE(lock->lease().has_value());
  EXPECT_TRUE(is_free(name()));
  lock->unlock();
  ASSERT_TRUE(lock->try_lock());
  lock.reset();
  EXPECT_TRUE(is_free(name())) << "its destructor frees it, too";
}

TEST_P(PlainLock, C15_EveryThreadOfOneObjectHasItsOwnTurn) {
  const auto lock = make(name());
  Room room;
  run_threads(8, [&](int /*i*/) {
    for (int k = 0; k < 10 && lock_in_time(*lock); ++k) {
      room.visit(lock->lease().held());
      lock->unlock();
    }
  });
  EXPECT_EQ(room.meetings(), 0);
  EXPECT_EQ(room.counter(), 80);
  EXPECT_TRUE(is_free(name()));
}

TEST_P(PlainLock, C15_UnlockOnAnotherThreadHasNoEffect) {
  const auto lock = make(name());
  ASSERT_TRUE(lock->try_lock());
  {
    const Thread other([&] { lock->unlock(); });
  }
  EXPECT_TRUE(lock->lease().held());
  EXPECT_FALSE(is_free(name()));
  lock->unlock();
}

TEST_P(PlainLock, C15_TwoLocksAreTakenTogetherWithoutDeadlock) {
  const auto a = make(name("a"));
  const auto b = make(name("b"));
  std::atomic<int> turns{0};
  const auto both = [&](AnyLock& first, AnyLock& second) {
    for (int i = 0; i < 20; ++i) {
      const std::scoped_lock guarded(first, second);
      turns.fetch_add(1);
    }
  };
  {
    const Thread one([&] { both(*a, *b); });
    const Thread two([&] { both(*b, *a); });
  }
  EXPECT_EQ(turns.load(), 40);
  EXPECT_TRUE(is_free(name("a")));
  EXPECT_TRUE(is_free(name("b")));
}

TEST_P(PlainLock, C15_StandardGuardsWork) {
  const auto lock = make(name());
  {
    std::unique_lock guarded(*lock, std::defer_lock);
    EXPECT_TRUE(guarded.try_lock());
    EXPECT_FALSE(is_free(name()));
  }
  EXPECT_TRUE(is_free(name()));
  { const std::lock_guard guarded(*lock); }
  EXPECT_TRUE(is_free(name()));
}

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
  {
    const Thread other([&] {
      EXPECT_FALSE(lock.try_lock());
      EXPECT_EQ(lock.hold_count(), 0U);
    });
  }
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
