// DistributedLock as a standard lockable, and its ways to report.
#include <dlock/lock.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <stop_token>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <dlock/client.hpp>
#include <dlock/error.hpp>
#include <dlock/recursive_lock.hpp>

#include "tests/support/fake_backend.hpp"
#include "tests/support/simple_backend.hpp"
#include "torture/rig/hang_guard.hpp"
#include "util/event.hpp"

namespace dlock {
namespace {

using namespace std::chrono_literals;

// Cpp17BasicLockable, Cpp17Lockable, Cpp17TimedLockable.
template <class L>
concept TimedLockable =
    requires(L lock, std::chrono::milliseconds wait, std::chrono::time_point<std::chrono::steady_clock> deadline,
             std::chrono::time_point<std::chrono::system_clock> wall_deadline) {
      lock.lock();
      lock.unlock();
      { lock.try_lock() } -> std::same_as<bool>;
      { lock.try_lock_for(wait) } -> std::same_as<bool>;
      { lock.try_lock_until(deadline) } -> std::same_as<bool>;
      { lock.try_lock_until(wall_deadline) } -> std::same_as<bool>;
    };
static_assert(TimedLockable<DistributedLock>);
static_assert(TimedLockable<RecursiveLock>);
static_assert(noexcept(std::declval<DistributedLock&>().unlock()));
static_assert(noexcept(std::declval<RecursiveLock&>().unlock()));
static_assert(!std::is_copy_constructible_v<DistributedLock> && !std::is_copy_assignable_v<DistributedLock>);
static_assert(!std::is_copy_constructible_v<Lease> && std::is_nothrow_move_constructible_v<Lease>);
static_assert(std::is_nothrow_move_constructible_v<DistributedLock>);
static_assert(!std::is_copy_constructible_v<Client> && std::is_nothrow_move_constructible_v<Client>);

// What a temporary would make useless does not compile. The arguments are references, which say the value category.
template <class C>
concept GivesLocks = requires(C client) { static_cast<C>(client).make_lock("x"); };
static_assert(GivesLocks<Client&> && GivesLocks<const Client&>);
static_assert(!GivesLocks<Client&&> && !GivesLocks<const Client&&>, "the client is gone when the lock is used");

template <class L>
concept Acquires = requires(L lock) { static_cast<L>(lock).acquire(); };
static_assert(Acquires<DistributedLock&> && Acquires<DistributedLock&&>, "a lease outlives its lock");

template <class L>
concept Locks = requires(L lock) { static_cast<L>(lock).lock(); };
template <class L>
concept TriesToLock = requires(L lock) { static_cast<L>(lock).try_lock(); };
template <class L>
concept TriesToLockFor = requires(L lock) { static_cast<L>(lock).try_lock_for(1s); };
template <class L>
concept TriesToLockUntil = requires(L lock) { static_cast<L>(lock).try_lock_until(std::chrono::steady_clock::now()); };
template <class L>
concept HasLease = requires(L lock) { static_cast<L>(lock).lease(); };
template <class L>
concept TakesDefaults = requires(L lock) { static_cast<L>(lock).set_defaults({}); };
static_assert(Locks<DistributedLock&> && Locks<RecursiveLock&>);
static_assert(!Locks<DistributedLock&&> && !Locks<RecursiveLock&&>);
static_assert(TriesToLock<DistributedLock&> && TriesToLock<RecursiveLock&>);
static_assert(!TriesToLock<DistributedLock&&> && !TriesToLock<RecursiveLock&&>);
static_assert(TriesToLockFor<DistributedLock&> && TriesToLockFor<RecursiveLock&>);
static_assert(!TriesToLockFor<DistributedLock&&> && !TriesToLockFor<RecursiveLock&&>);
static_assert(TriesToLockUntil<DistributedLock&> && TriesToLockUntil<RecursiveLock&>);
static_assert(!TriesToLockUntil<DistributedLock&&> && !TriesToLockUntil<RecursiveLock&&>);
static_assert(HasLease<const DistributedLock&> && HasLease<const RecursiveLock&>);
static_assert(!HasLease<DistributedLock&&> && !HasLease<RecursiveLock&&>);
static_assert(TakesDefaults<DistributedLock&> && !TakesDefaults<DistributedLock&&>);

class LockTest : public testing::Test {
 protected:
  std::shared_ptr<test::SimpleService> service_ = std::make_shared<test::SimpleService>();
  std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>();
  Client client_ = connect("simple://", {.label = "test", .clock = clock_}, service_->factory());
  DistributedLock lock_ = client_.make_lock("x");
  DistributedLock rival_ = client_.make_lock("x");
};

TEST_F(LockTest, LockAndUnlock) {
  EXPECT_EQ(lock_.name(), "x");
  EXPECT_FALSE(lock_.lease().has_value());
  lock_.lock();
  EXPECT_TRUE(service_->held("x"));
  EXPECT_TRUE(lock_.lease().held());
  EXPECT_GT(lock_.lease().token(), FencingToken());
  EXPECT_FALSE(rival_.try_lock());
  lock_.unlock();
  EXPECT_FALSE(service_->held("x"));
  EXPECT_FALSE(lock_.lease().has_value());
  EXPECT_TRUE(rival_.try_lock());
  rival_.unlock();
}

TEST_F(LockTest, WorksInTheStandardGuards) {
  {
    const std::lock_guard guard(lock_);
    EXPECT_TRUE(service_->held("x"));
  }
  EXPECT_FALSE(service_->held("x"));
  {
    std::unique_lock guard(lock_, std::defer_lock);
    EXPECT_FALSE(guard.owns_lock());
    EXPECT_TRUE(guard.try_lock());
    guard.unlock();
    EXPECT_TRUE(guard.try_lock_for(5s));
    guard.unlock();
    EXPECT_TRUE(guard.try_lock_until(std::chrono::system_clock::now() + 5s));
  }
  EXPECT_FALSE(service_->held("x"));
  {
    std::unique_lock guard(lock_, std::try_to_lock);
    EXPECT_TRUE(guard.owns_lock());
    std::unique_lock other(rival_, std::try_to_lock);
    EXPECT_FALSE(other.owns_lock());
  }
}

TEST_F(LockTest, TwoLocksAreTakenTogetherWithoutDeadlock) {
  DistributedLock a1 = client_.make_lock("a");
  DistributedLock b1 = client_.make_lock("b");
  DistributedLock a2 = client_.make_lock("a");
  DistributedLock b2 = client_.make_lock("b");
  int counter = 0;
  const auto work = [&](DistributedLock& first, DistributedLock& second) {
    for (int i = 0; i < 50; ++i) {
      const std::scoped_lock both(first, second);
      ++counter;
    }
  };
  std::thread other([&] { work(b2, a2); });
  work(a1, b1);
  other.join();
  EXPECT_EQ(counter, 100);
  EXPECT_FALSE(service_->held("a"));
  EXPECT_FALSE(service_->held("b"));
}

TEST_F(LockTest, OneObjectIsAMutexBetweenThreads) {
  int counter = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        const std::lock_guard guard(lock_);
        EXPECT_TRUE(lock_.lease().held());
        ++counter;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(counter, 200);
}

TEST_F(LockTest, IsNotReentrant) {
  lock_.lock();
  try {
    lock_.lock();
    FAIL();
  } catch (const std::system_error& e) {
    EXPECT_EQ(e.code(), std::errc::resource_deadlock_would_occur);
  }
  EXPECT_FALSE(lock_.try_lock());
  EXPECT_FALSE(lock_.try_lock_for(1h));
  EXPECT_TRUE(lock_.lease().held()) << "still held once";
  lock_.unlock();
  EXPECT_FALSE(service_->held("x"));
}

TEST_F(LockTest, UnlockWithoutALockHasNoEffect) {
  rival_.lock();
  lock_.unlock();
  std::thread([&] { rival_.unlock(); }).join();
  EXPECT_TRUE(service_->held("x")) << "another thread holds nothing, and so gives nothing back";
  rival_.unlock();
  EXPECT_FALSE(service_->held("x"));
}

TEST_F(LockTest, UnlockingALostLeaseDoesNotReleaseTheNextHoldersLock) {
  lock_.lock();
  clock_->advance(31s);
  EXPECT_FALSE(lock_.lease().held());
  util::Event taken;
  util::Event unlocked;
  std::thread next([&] {
    lock_.lock();  // the same object, another thread
    taken.set();
    EXPECT_TRUE(unlocked.wait(rig::hang_guard));
    EXPECT_TRUE(lock_.lease().held());
    lock_.unlock();
  });
  ASSERT_TRUE(taken.wait(rig::hang_guard));
  lock_.unlock();
  EXPECT_TRUE(service_->held("x"));
  unlocked.set();
  next.join();
  EXPECT_FALSE(service_->held("x"));
}

TEST_F(LockTest, AfterALossTheThreadMayLockAnew) {
  lock_.lock();
  const FencingToken old = lock_.lease().token();
  clock_->advance(31s);
  lock_.lock();
  EXPECT_TRUE(lock_.lease().held());
  EXPECT_GT(lock_.lease().token(), old);
  lock_.unlock();
  EXPECT_FALSE(lock_.lease().has_value());
  EXPECT_FALSE(service_->held("x"));
}

TEST_F(LockTest, TryLockInThePastTriesOnce) {
  EXPECT_TRUE(lock_.try_lock_until(std::chrono::steady_clock::time_point::min()));
  EXPECT_FALSE(rival_.try_lock_until(std::chrono::steady_clock::now() - 1h));
  EXPECT_FALSE(rival_.try_lock_for(-1h));
  lock_.unlock();
  EXPECT_TRUE(lock_.try_lock_until(std::chrono::steady_clock::time_point::max()));
  lock_.unlock();
  EXPECT_TRUE(lock_.try_lock_until(std::chrono::system_clock::time_point::max()));
  lock_.unlock();
}

TEST_F(LockTest, DefaultsGoIntoLockButTheWaitIsTheCalls) {
  lock_.set_defaults({.wait = 0s, .lease = 5s});
  lock_.lock();
  EXPECT_LE(lock_.lease().valid_until(), clock_->now() + 5s);
  lock_.unlock();
  std::stop_source stop;
  stop.request_stop();
  lock_.set_defaults({.cancel = stop.get_token()});
  EXPECT_THROW(lock_.lock(), Error);
  EXPECT_THROW((void)lock_.try_lock(), Error);
}

TEST_F(LockTest, MovingTheObjectMovesWhatItHolds) {
  lock_.lock();
  DistributedLock moved = std::move(lock_);
  EXPECT_TRUE(moved.lease().held());
  moved = client_.make_lock("y");
  EXPECT_FALSE(service_->held("x")) << "assignment releases";
}

TEST_F(LockTest, DestroyingTheObjectReleasesWhatItHolds) {
  {
    DistributedLock lock = client_.make_lock("y");
    lock.lock();
  }
  EXPECT_FALSE(service_->held("y"));
}

// --- Ways to acquire -------------------------------------------------------------------------------------------------

TEST_F(LockTest, AcquireThrowsWhereTryAcquireAnswersNothing) {
  const Lease lease = lock_.acquire();
  EXPECT_EQ(rival_.try_acquire(), std::nullopt);
  EXPECT_EQ(rival_.try_acquire_for(0s), std::nullopt);
  std::error_code ec = errc::protocol;
  EXPECT_EQ(rival_.try_acquire({}, ec), std::nullopt);
  EXPECT_FALSE(ec) << "busy is not an error";
  EXPECT_EQ(rival_.try_acquire_for(0s, {}, ec), std::nullopt);
  EXPECT_FALSE(ec);
  try {
    (void)rival_.acquire({.wait = 0s});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), errc::timed_out);
    EXPECT_NE(e.detail().find("\"x\""), std::string::npos);
  }
  EXPECT_FALSE(rival_.acquire({.wait = 0s}, ec).has_value());
  EXPECT_EQ(ec, errc::timed_out);
}

TEST_F(LockTest, WrongOptionsAreErrorsEverywhere) {
  const AcquireOptions bad{.wait = -1s};
  std::error_code ec;
  EXPECT_THROW((void)lock_.acquire(bad), Error);
  EXPECT_FALSE(lock_.acquire(bad, ec).has_value());
  EXPECT_EQ(ec, errc::invalid_argument);
  EXPECT_THROW((void)lock_.try_acquire_for(-1s), Error);
  EXPECT_EQ(lock_.try_acquire({.lease = 0s}, ec), std::nullopt);
  EXPECT_EQ(ec, errc::invalid_argument);
  util::Event called;
  lock_.async_acquire(bad, [&](std::error_code code, Lease lease) {
    EXPECT_EQ(code, errc::invalid_argument);
    EXPECT_FALSE(lease.has_value());
    called.set();
  });
  EXPECT_TRUE(called.wait(rig::hang_guard));
}

TEST_F(LockTest, AnErrorCodeIsClearedBySuccess) {
  std::error_code ec = errc::protocol;
  Lease lease = lock_.acquire({}, ec);
  EXPECT_FALSE(ec);
  ec = errc::protocol;
  EXPECT_TRUE(lease.release(ec));
  EXPECT_FALSE(ec);
  ec = errc::protocol;
  const auto tried = lock_.try_acquire({}, ec);
  EXPECT_TRUE(tried);
  EXPECT_FALSE(ec);
}

TEST_F(LockTest, AnAsynchronousAcquireRunsItsHandlerOnTheEngineThread) {
  util::Event done;
  std::thread::id ran_on;
  auto move_only = std::make_unique<int>(42);
  lock_.async_acquire({}, [&, move_only = std::move(move_only)](std::error_code ec, Lease lease) {
    EXPECT_FALSE(ec);
    EXPECT_TRUE(lease.held());
    EXPECT_EQ(*move_only, 42);
    ran_on = std::this_thread::get_id();
    done.set();
  });
  ASSERT_TRUE(done.wait(rig::hang_guard));
  EXPECT_NE(ran_on, std::this_thread::get_id());
}

// What a handler of async_acquire() was told.
template <class Told>
Told told_by(DistributedLock& lock) {
  std::promise<Told> told;
  lock.async_acquire({}, [&](const Told& problem, const Lease& lease) {
    EXPECT_FALSE(lease.has_value());
    told.set_value(problem);
  });
  return told.get_future().get();
}

TEST(AsyncAcquire, AHandlerTakesTheCodeOrAllThatAnErrorWouldSay) {
  const auto service = std::make_shared<test::FakeService>();
  service->on_contend = [](auto& contend) { contend.fail({errc::access_denied, "NOPERM: no access"}); };
  const Client client = connect("fake://", {.label = "test"}, service->factory());
  DistributedLock lock = client.make_lock("x");
  EXPECT_EQ(told_by<std::error_code>(lock), errc::access_denied);
  const auto failure = told_by<Failure>(lock);
  EXPECT_EQ(failure.code, errc::access_denied);
  EXPECT_EQ(failure.detail, "NOPERM: no access");
}

TEST_F(LockTest, AHandlerThatTakesTheFailureMeetsNoneOnSuccess) {
  std::promise<Failure> told;
  auto move_only = std::make_unique<int>(42);
  lock_.async_acquire({}, [&, move_only = std::move(move_only)](const Failure& problem, Lease lease) {
    EXPECT_FALSE(problem.code);
    EXPECT_TRUE(lease.held());
    lease.async_release([&](const Failure& released, bool was_ours) {
      EXPECT_TRUE(was_ours);
      told.set_value(released);
    });
  });
  const Failure released = told.get_future().get();
  EXPECT_FALSE(released.code);
  EXPECT_EQ(released.detail, "");
}

TEST_F(LockTest, AGenericHandlerTakesTheCode) {
  std::promise<void> done;
  lock_.async_acquire({}, [&](auto acquired, Lease lease) {
    static_assert(std::is_same_v<decltype(acquired), std::error_code>);
    lease.async_release([&](auto released, auto /*was_ours*/) {
      static_assert(std::is_same_v<decltype(released), std::error_code>);
      done.set_value();
    });
  });
  done.get_future().get();
}

TEST_F(LockTest, ALeaseMayBeReleasedOnAnotherThread) {
  Lease lease = lock_.acquire();
  std::thread([&] { EXPECT_TRUE(lease.release()); }).join();
  EXPECT_FALSE(service_->held("x"));
}

TEST_F(LockTest, OfManyReleasesAtTheSameTimeExactlyOneSaysOurs) {
  for (int round = 0; round < 100; ++round) {
    Lease lease = lock_.acquire();
    std::atomic<int> ready = 0;
    std::atomic<int> ours = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&] {
        ++ready;
        while (ready < 3) {
        }
        if (lease.release()) ++ours;
      });
    }
    for (auto& thread : threads) thread.join();
    ASSERT_EQ(ours, 1) << "round " << round;
  }
  EXPECT_EQ(client_.stats().lost, 0U);
  EXPECT_EQ(client_.stats().released, 100U);
}

TEST_F(LockTest, AWaiterIsWokenByTheRelease) {
  Lease lease = lock_.acquire();
  util::Event waiting;
  std::thread waiter([&] {
    rival_.async_acquire({}, [&](std::error_code ec, const Lease& got) {
      EXPECT_FALSE(ec);
      EXPECT_TRUE(got.held());
      waiting.set();
    });
  });
  waiter.join();
  EXPECT_FALSE(waiting.is_set());
  EXPECT_TRUE(lease.release());
  EXPECT_TRUE(waiting.wait(rig::hang_guard)) << "the clock stands still: no polling could help";
}

// --- with_lock -------------------------------------------------------------------------------------------------------

TEST_F(LockTest, WithLockRunsTheFunctionUnderTheLockAndReturnsItsResult) {
  const int result = with_lock(lock_, {.wait = 5s}, [&](const Lease& lease) {
    EXPECT_TRUE(lease.held());
    EXPECT_TRUE(service_->held("x"));
    return 42;
  });
  EXPECT_EQ(result, 42);
  EXPECT_FALSE(service_->held("x"));
  bool ran = false;
  with_lock(lock_, {}, [&](const Lease&) { ran = true; });
  EXPECT_TRUE(ran);
}

TEST_F(LockTest, WithLockPassesExceptionsOnAndReleases) {
  EXPECT_THROW(with_lock(lock_, {}, [](const Lease&) { throw std::runtime_error("oops"); }), std::runtime_error);
  EXPECT_FALSE(service_->held("x"));
}

TEST_F(LockTest, WithLockDoesNotRunWithoutTheLock) {
  const Lease lease = lock_.acquire();
  bool ran = false;
  EXPECT_THROW(with_lock(rival_, {.wait = 0s}, [&](const Lease&) { ran = true; }), Error);
  EXPECT_FALSE(ran);
}

TEST_F(LockTest, WithLockReportsALossThoughTheFunctionEndedNormally) {
  try {
    with_lock(lock_, {}, [&](const Lease&) { clock_->advance(31s); });
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), errc::lost);
  }
  EXPECT_THROW((void)with_lock(lock_, {},
                               [&](const Lease&) {
                                 service_->steal("x");
                                 return 1;
                               }),
               Error);
}

// Its destructor is the program's code as much as the handler is: it may take locks that a task must not wait for.
TEST_F(LockTest, WhatAHandlerCapturedIsDestroyedWhereTheHandlerRan) {
  struct Destruction {
    std::thread::id on;
    util::Event over;
  };
  class Capture {
   public:
    explicit Capture(std::shared_ptr<Destruction> d) : destruction_(std::move(d)) {}
    Capture(const Capture&) = delete;
    Capture& operator=(const Capture&) = delete;
    ~Capture() {
      destruction_->on = std::this_thread::get_id();
      destruction_->over.set();
    }

   private:
    std::shared_ptr<Destruction> destruction_;
  };
  for (int i = 0; i < 500; ++i) {
    Lease held = lock_.acquire();
    std::thread::id ran_on;
    Lease taken;
    auto acquired = std::make_shared<Destruction>();
    rival_.async_acquire({}, [&, capture = std::make_shared<Capture>(acquired)](std::error_code, Lease lease) {
      ran_on = std::this_thread::get_id();
      taken = std::move(lease);
    });
    EXPECT_TRUE(held.release());  // grants in a task of this thread
    ASSERT_TRUE(acquired->over.wait(rig::hang_guard));
    ASSERT_EQ(acquired->on, ran_on);
    auto released = std::make_shared<Destruction>();
    taken.async_release([&, capture = std::make_shared<Capture>(released)](std::error_code, bool) {
      ran_on = std::this_thread::get_id();
    });
    ASSERT_TRUE(released->over.wait(rig::hang_guard));
    ASSERT_EQ(released->on, ran_on);
  }
}

}  // namespace
}  // namespace dlock
