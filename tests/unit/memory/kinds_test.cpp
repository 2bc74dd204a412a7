// Read-write locks and semaphores as a program uses them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <concepts>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <dlock/dlock.hpp>

#include "tests/support/simple_backend.hpp"

namespace dlock {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::SizeIs;

// Cpp17SharedTimedLockable and Cpp17TimedLockable.
template <class L>
concept SharedTimedLockable =
    requires(L lock, std::chrono::milliseconds wait, std::chrono::time_point<std::chrono::steady_clock> deadline) {
      lock.lock();
      lock.unlock();
      { lock.try_lock() } -> std::same_as<bool>;
      { lock.try_lock_for(wait) } -> std::same_as<bool>;
      { lock.try_lock_until(deadline) } -> std::same_as<bool>;
      lock.lock_shared();
      lock.unlock_shared();
      { lock.try_lock_shared() } -> std::same_as<bool>;
      { lock.try_lock_shared_for(wait) } -> std::same_as<bool>;
      { lock.try_lock_shared_until(deadline) } -> std::same_as<bool>;
    };
static_assert(SharedTimedLockable<ReadWriteLock>);
static_assert(!std::is_copy_constructible_v<ReadWriteLock> && std::is_nothrow_move_constructible_v<ReadWriteLock>);
static_assert(!std::is_copy_constructible_v<Semaphore> && std::is_nothrow_move_constructible_v<Semaphore>);
static_assert(noexcept(std::declval<ReadWriteLock&>().unlock_shared()));

// What a temporary would make useless does not compile.
template <class C>
concept GivesKinds = requires(C client) {
  static_cast<C>(client).make_read_write_lock("x");
  static_cast<C>(client).make_semaphore("x", 1);
};
static_assert(GivesKinds<const Client&> && !GivesKinds<Client&&>);
template <class L>
concept LocksShared = requires(L lock) { static_cast<L>(lock).lock_shared(); };
static_assert(LocksShared<ReadWriteLock&> && !LocksShared<ReadWriteLock&&>);

template <class F>
Failure failure_of(F f) {
  try {
    f();
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  return {};
}

class KindsTest : public testing::TestWithParam<std::string> {
 protected:
  const Client client_ = connect("memory://kinds?strategy=" + GetParam());
};

INSTANTIATE_TEST_SUITE_P(, KindsTest, testing::Values("queue", "watch", "poll"),
                         [](const auto& info) { return info.param; });

// Else a wait that somebody asked for would be ignored in silence.
TEST_P(KindsTest, TriesRefuseOptionsThatWaitForAnotherTime) {
  DistributedLock lock = client_.make_lock("a");
  ReadWriteLock rw = client_.make_read_write_lock("a");
  Semaphore semaphore = client_.make_semaphore("a", 1);
  Election election = client_.make_election("a");
  MultiLock both = client_.make_multi_lock({"a", "b"});
  const AcquireOptions waits{.wait = 2s};
  const auto expect_refused = [](const std::function<void()>& call, const std::string& words) {
    const Failure failure = failure_of(call);
    EXPECT_EQ(failure.code, errc::invalid_argument);
    EXPECT_THAT(failure.detail, HasSubstr(words));
  };
  const std::string words = "wait: try_acquire() does not wait; use try_acquire_for() or acquire()";
  expect_refused([&] { (void)lock.try_acquire(waits); }, words);
  expect_refused([&] { (void)rw.try_acquire(waits); }, words);
  expect_refused([&] { (void)semaphore.try_acquire(waits); }, words);
  expect_refused([&] { (void)both.try_acquire(waits); }, words);
  expect_refused([&] { (void)rw.try_acquire_shared(waits); },
                 "wait: try_acquire_shared() does not wait; use try_acquire_shared_for() or acquire_shared()");
  expect_refused([&] { (void)election.try_campaign({.wait = 2s}); },
                 "wait: try_campaign() does not wait; use try_campaign_for() or campaign()");
  expect_refused([&] { (void)lock.try_acquire_for(1s, waits); },
                 "wait: try_acquire_for() waits for its argument; the options say otherwise");
  expect_refused([&] { (void)both.try_acquire_for(1s, waits); }, "wait: try_acquire_for()");
  expect_refused([&] { (void)rw.try_acquire_shared_for(1s, waits); }, "wait: try_acquire_shared_for()");
  std::error_code ec;
  EXPECT_EQ(lock.try_acquire(waits, ec), std::nullopt);
  EXPECT_EQ(ec, errc::invalid_argument);
  EXPECT_FALSE(client_.inspect("a").held);
}

TEST_P(KindsTest, TriesTakeOptionsThatSayTheSameOrNothingOfTheWait) {
  DistributedLock lock = client_.make_lock("a");
  EXPECT_TRUE(lock.try_acquire({.wait = 0s}));
  EXPECT_TRUE(lock.try_acquire({.wait = forever}));
  EXPECT_TRUE(lock.try_acquire_for(1s, {.wait = 1s}));
  EXPECT_TRUE(lock.try_acquire_for(1s, {.lease = 10s}));
  RecursiveLock recursive(client_.make_lock("b"));
  MultiLock both = client_.make_multi_lock({"c", "d"});
  lock.set_defaults({.wait = 3s});
  both.set_defaults({.wait = 3s});
  EXPECT_TRUE(lock.try_lock_for(1s)) << "the call itself sets the wait";
  EXPECT_TRUE(both.try_lock());
  EXPECT_TRUE(recursive.try_lock());
  lock.unlock();
  both.unlock();
  recursive.unlock();
}

TEST_P(KindsTest, StandardGuardsWork) {
  ReadWriteLock rw = client_.make_read_write_lock("a");
  ReadWriteLock other = client_.make_read_write_lock("a");
  {
    const std::shared_lock one(rw);
    const std::shared_lock two(other, 10s);
    EXPECT_TRUE(two.owns_lock());
    EXPECT_FALSE(client_.make_read_write_lock("a").try_acquire());
    EXPECT_TRUE(rw.lease().held());
  }
  {
    const std::unique_lock one(rw);
    EXPECT_FALSE(other.try_lock_shared());
    EXPECT_FALSE(other.try_lock());
  }
  EXPECT_FALSE(client_.inspect("a", LockKind::read_write).held);
}

TEST_P(KindsTest, AThreadHoldsOneLeaseOfALock) {
  ReadWriteLock rw = client_.make_read_write_lock("a");
  const std::shared_lock reading(rw);
  EXPECT_EQ(failure_of([&] { rw.lock_shared(); }).code, std::errc::resource_deadlock_would_occur);
  EXPECT_THAT(failure_of([&] { rw.lock(); }).detail, HasSubstr("this thread already holds read-write lock \"a\""));
  EXPECT_FALSE(rw.try_lock_shared());
  EXPECT_FALSE(rw.try_lock_for(1ms));
  EXPECT_FALSE(rw.try_lock_shared_until(std::chrono::steady_clock::now()));
}

TEST_P(KindsTest, UnlockingTheWrongSideHasNoEffect) {
  ReadWriteLock rw = client_.make_read_write_lock("a");
  rw.unlock_shared();
  rw.lock_shared();
  rw.unlock();
  EXPECT_TRUE(rw.lease().held());
  rw.unlock_shared();
  EXPECT_FALSE(rw.lease().has_value());
  rw.lock();
  rw.unlock_shared();
  EXPECT_TRUE(rw.lease().held());
  rw.unlock();
  EXPECT_FALSE(client_.inspect("a", LockKind::read_write).held);
}

TEST_P(KindsTest, ReadersMeetAndWritersAreAlone) {
  std::atomic<int> readers{0};
  std::atomic<int> writers{0};
  std::atomic<int> wrong{0};
  {
    // Three are inside together before anybody may leave, or it would show nothing.
    std::vector<Lease> together;
    for (int i = 0; i < 3; ++i) together.push_back(client_.make_read_write_lock("a").acquire_shared());
    EXPECT_THAT(client_.inspect("a", LockKind::read_write).holders, SizeIs(3));
  }
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&, i] {
        ReadWriteLock rw = client_.make_read_write_lock("a");
        for (int round = 0; round < 10; ++round) {
          if (i % 4 == 0) {
            const std::unique_lock writing(rw);
            if (writers.fetch_add(1) != 0 || readers.load() != 0) ++wrong;
            std::this_thread::yield();
            --writers;
          } else {
            const std::shared_lock reading(rw);
            ++readers;
            if (writers.load() != 0) ++wrong;
            std::this_thread::yield();
            --readers;
          }
        }
      });
    }
  }
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_FALSE(client_.inspect("a", LockKind::read_write).held);
}

TEST_P(KindsTest, NoMoreThanAllPermitsAreOut) {
  std::atomic<int> inside{0};
  std::atomic<int> wrong{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        Semaphore permits = client_.make_semaphore("a", 3);
        for (int round = 0; round < 10; ++round) {
          const Lease permit = permits.acquire();
          if (inside.fetch_add(1) >= 3) ++wrong;
          std::this_thread::yield();
          --inside;
        }
      });
    }
  }
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_FALSE(client_.inspect("a", LockKind::semaphore).held);
}

TEST_P(KindsTest, AWriterGetsInAmongReadersWhoComeAndGo) {
  std::atomic<bool> done{false};
  std::atomic<int> reads{0};
  std::vector<std::jthread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      ReadWriteLock rw = client_.make_read_write_lock("a");
      while (!done) {
        const Lease reading = rw.acquire_shared();
        ++reads;
        std::this_thread::yield();
      }
    });
  }
  while (reads < 10) std::this_thread::yield();
  const Lease writing = client_.make_read_write_lock("a").acquire();
  EXPECT_TRUE(writing.held());
  done = true;
}

TEST_P(KindsTest, ACancelledWriterLetsReadersIn) {
  ReadWriteLock rw = client_.make_read_write_lock("a");
  const Lease reading = rw.acquire_shared();
  std::stop_source cancel;
  std::promise<std::error_code> ended;
  rw.async_acquire({.cancel = cancel.get_token()}, [&](std::error_code ec, const Lease&) { ended.set_value(ec); });
  EXPECT_FALSE(rw.try_acquire());
  cancel.request_stop();
  EXPECT_EQ(ended.get_future().get(), errc::cancelled);
  EXPECT_TRUE(rw.acquire_shared({.wait = 10s}).held());
}

TEST_P(KindsTest, LossOfAllHolders) {
  const Lease one = client_.make_read_write_lock("a").acquire_shared({.lease = 200ms});
  const Lease two = client_.make_read_write_lock("a").acquire_shared({.lease = 200ms});
  const Lease permit = client_.make_semaphore("a", 1).acquire();
  EXPECT_TRUE(client_.break_lock("a", LockKind::read_write));
  while (one.held() || two.held()) std::this_thread::yield();
  EXPECT_TRUE(permit.held());
  EXPECT_TRUE(client_.make_read_write_lock("a").acquire().held());
}

TEST_P(KindsTest, EndsAreToldInWordsOfTheKind) {
  ReadWriteLock rw = client_.make_read_write_lock("a");
  const Lease reading = rw.acquire_shared();
  EXPECT_THAT(failure_of([&] { (void)rw.acquire({.wait = 0ms}); }).detail,
              HasSubstr("read-write lock \"a\" is already held"));
  Semaphore two = client_.make_semaphore("b", 2);
  const Lease permit = two.acquire();
  const Failure refused = failure_of([&] { (void)client_.make_semaphore("b", 3).acquire(); });
  EXPECT_EQ(refused.code, errc::invalid_argument);
  EXPECT_THAT(refused.detail, HasSubstr("semaphore \"b\" is in use with 2 permits, but the request says 3"));
  std::error_code ec;
  EXPECT_FALSE(client_.make_semaphore("b", 1).try_acquire({}, ec));
  EXPECT_EQ(ec, errc::invalid_argument);
}

TEST_P(KindsTest, ScopesThatRunAFunction) {
  ReadWriteLock rw = client_.make_read_write_lock("a");
  EXPECT_EQ(with_lock(rw, {}, [&](const Lease& lease) { return lease.held() && !rw.try_acquire_shared(); }), true);
  EXPECT_EQ(with_shared_lock(rw, {}, [&](const Lease& lease) { return lease.held() && rw.try_acquire_shared(); }),
            true);
  Semaphore permits = client_.make_semaphore("a", 1);
  with_lock(permits, {}, [&](const Lease&) { EXPECT_FALSE(permits.try_acquire()); });
  EXPECT_TRUE(permits.try_acquire());
}

TEST_P(KindsTest, NamesAreForgottenByKind) {
  (void)client_.make_read_write_lock("a").acquire();
  (void)client_.make_lock("a").acquire();
  EXPECT_EQ(failure_of([&] { (void)client_.forget("a", LockKind::read_write); }).code, errc::timed_out);
  EXPECT_FALSE(client_.forget("a", LockKind::semaphore));
  EXPECT_THAT(client_.list(LockKind::read_write), SizeIs(1));
  EXPECT_THAT(client_.list(LockKind::semaphore), SizeIs(0));
}

// --- What is refused -------------------------------------------------------------------------------------------------

TEST(KindsArgumentsTest, PermitsAreOneToTwoBillion) {
  const Client client = connect("memory://");
  for (const std::int64_t bad : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1} << 31}) {
    const Failure refused = failure_of([&] { (void)client.make_semaphore("a", bad); });
    EXPECT_EQ(refused.code, errc::invalid_argument);
    EXPECT_THAT(refused.detail, HasSubstr("permits: " + std::to_string(bad)));
  }
  EXPECT_EQ(client.make_semaphore("a", (std::int64_t{1} << 31) - 1).permits(), 2147483647U);
}

TEST(KindsArgumentsTest, NamesAreCheckedAsThoseOfLocks) {
  const Client client = connect("memory://");
  EXPECT_EQ(failure_of([&] { (void)client.make_read_write_lock(""); }).code, errc::invalid_argument);
  EXPECT_EQ(failure_of([&] { (void)client.make_semaphore("a\n", 1); }).code, errc::invalid_argument);
}

TEST(KindsArgumentsTest, AKindThatTheBackendLacksIsUnsupported) {
  const auto service = std::make_shared<test::SimpleService>();
  const Client client = connect("simple://", {}, service->factory());
  ASSERT_FALSE(client.capabilities().has(LockKind::read_write));
  ASSERT_FALSE(client.capabilities().has(LockKind::semaphore));
  const Failure refused = failure_of([&] { (void)client.make_read_write_lock("a"); });
  EXPECT_EQ(refused.code, errc::unsupported);
  EXPECT_THAT(refused.detail, HasSubstr("has no read-write locks"));
  EXPECT_THAT(failure_of([&] { (void)client.make_semaphore("a", 1); }).detail, HasSubstr("has no semaphores"));
  EXPECT_EQ(failure_of([&] { (void)client.inspect("a", LockKind::semaphore); }).code, errc::unsupported);
  EXPECT_EQ(failure_of([&] { (void)client.list(LockKind::semaphore); }).code, errc::unsupported);
  EXPECT_EQ(failure_of([&] { (void)client.break_lock("a", LockKind::semaphore); }).code, errc::unsupported);
  EXPECT_EQ(failure_of([&] { (void)client.forget("a", LockKind::semaphore); }).code, errc::unsupported);
  EXPECT_EQ(failure_of([&] { (void)client.forget_idle(1min, LockKind::semaphore); }).code, errc::unsupported);
}

TEST_P(KindsTest, APingLeavesNothing) {
  client_.ping(10s);
  EXPECT_TRUE(client_.list().empty());
}

}  // namespace
}  // namespace dlock
