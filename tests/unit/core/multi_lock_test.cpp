// MultiLock and MultiLease as programs use them.
#include <dlock/multi_lock.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <dlock/client.hpp>
#include <dlock/error.hpp>

#include "tests/support/simple_backend.hpp"
#include "torture/rig/hang_guard.hpp"
#include "util/event.hpp"

namespace dlock {
namespace {

using namespace std::chrono_literals;
using Names = std::vector<std::string>;

static_assert(!std::is_copy_constructible_v<MultiLock> && std::is_nothrow_move_constructible_v<MultiLock>);
static_assert(!std::is_copy_constructible_v<MultiLease> && std::is_nothrow_move_constructible_v<MultiLease>);
static_assert(noexcept(std::declval<MultiLock&>().unlock()));

template <class C>
concept GivesMultiLocks = requires(C client) { static_cast<C>(client).make_multi_lock({"x"}); };
static_assert(GivesMultiLocks<Client&> && GivesMultiLocks<const Client&>);
static_assert(!GivesMultiLocks<Client&&> && !GivesMultiLocks<const Client&&>);

template <class L>
concept LocksAll = requires(L lock) { static_cast<L>(lock).lock(); };
static_assert(LocksAll<MultiLock&> && !LocksAll<MultiLock&&>);

class MultiLockTest : public testing::Test {
 protected:
  [[nodiscard]] Client make(std::string_view url = "simple://",
                            std::shared_ptr<test::SimpleService> service = nullptr) {
    return connect(url, {.label = "test", .clock = clock_}, (service ? service : service_)->factory());
  }
  template <class... Locks>
  static MultiLock all_of(Locks... locks) {
    std::vector<DistributedLock> all;
    (all.push_back(std::move(locks)), ...);
    return MultiLock(std::move(all));
  }
  // The words with which it refuses.
  template <class F>
  static std::string refusal(F f) {
    try {
      (void)f();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), errc::invalid_argument);
      return e.detail();
    }
    ADD_FAILURE() << "accepted";
    return {};
  }

  std::shared_ptr<test::SimpleService> service_ = std::make_shared<test::SimpleService>();
  std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>();
  Client client_ = make();
};

// --- The end ---------------------------------------------------------------------------------------------------------

TEST_F(MultiLockTest, TheEndOfALease_AtARelease_FiresOnceAndIsNoLoss) {
  MultiLock lock = client_.make_multi_lock({"a", "b"});
  MultiLease leases = lock.acquire();
  EXPECT_EQ(leases.remaining(), leases.valid_until() - clock_->now());
  int ends = 0;
  const std::stop_callback on_end(leases.ended(), [&] {
    ++ends;
    EXPECT_TRUE(service_->held("a") && service_->held("b")) << "it fires first";
  });
  EXPECT_TRUE(leases.release());
  EXPECT_EQ(ends, 1);
  EXPECT_FALSE(leases.lost().stop_requested());
  EXPECT_EQ(leases.remaining(), 0s);
}

TEST_F(MultiLockTest, TheEndOfALease_AtTheLossOfOne_FiresWithTheLoss) {
  MultiLock lock = client_.make_multi_lock({"a", "b"});
  const MultiLease leases = lock.acquire({.renew = false});
  const std::stop_token ended = leases.ended();
  EXPECT_FALSE(ended.stop_requested());
  clock_->advance(60s);
  EXPECT_TRUE(leases.ended().stop_requested());
  EXPECT_TRUE(ended.stop_requested());
  EXPECT_EQ(leases.remaining(), 0s);
}

TEST_F(MultiLockTest, AReleaseInTheBackground_ReleasesAll) {
  MultiLock lock = client_.make_multi_lock({"a", "b"});
  MultiLease leases = lock.acquire();
  leases.release_in_background();
  EXPECT_TRUE(leases.ended().stop_requested());
  EXPECT_FALSE(leases.held());
  for (const char* name : {"a", "b"}) EXPECT_TRUE(client_.make_lock(name).try_acquire_for(1min));
  EXPECT_FALSE(leases.release());
}

// --- Which locks -----------------------------------------------------------------------------------------------------

TEST_F(MultiLockTest, HoldsAllAndSaysWhichInTheOrderInWhichTheyWereNamed) {
  MultiLock lock = client_.make_multi_lock({"c", "a", "b"});
  EXPECT_EQ(lock.names(), (Names{"c", "a", "b"}));
  MultiLease leases = lock.acquire();
  EXPECT_TRUE(leases.held());
  ASSERT_EQ(leases.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(leases[i].name(), lock.names()[i]);
    EXPECT_EQ(leases.token(i), leases[i].token());
    EXPECT_TRUE(service_->held(lock.names()[i]));
  }
  EXPECT_TRUE(leases.release());
  for (const std::string& name : lock.names()) EXPECT_FALSE(service_->held(name));
  EXPECT_FALSE(leases.release());
}

TEST_F(MultiLockTest, AnEmptyLeaseHoldsNothing) {
  MultiLease none;
  EXPECT_FALSE(none.held());
  EXPECT_FALSE(none.has_value());
  EXPECT_EQ(none.size(), 0U);
  EXPECT_FALSE(none.release());
  EXPECT_FALSE(none.lost().stop_possible());
  EXPECT_FALSE(none.ended().stop_possible());
  EXPECT_EQ(none.valid_until(), TimePoint::min());
  EXPECT_EQ(none.remaining(), 0s);
  none.release_in_background();
}

TEST_F(MultiLockTest, ALockThatIsNamedTwiceIsRefusedByName) {
  EXPECT_NE(refusal([&] { return client_.make_multi_lock({"a", "b", "a"}); }).find("\"a\""), std::string::npos);
  const Client here = make("simple://host:1,Other/place?lease=5s");
  const Client same = make("simple://u:hunter2@other,HOST:1/place/");
  EXPECT_EQ(refusal([&] { return all_of(here.make_lock("x"), same.make_lock("x")); }), "lock \"x\" is named twice");
  EXPECT_EQ(all_of(here.make_lock("x"), same.make_lock("y")).names().size(), 2U);
}

TEST_F(MultiLockTest, OneNameAtTwoPlacesIsTwoLocks) {
  const auto elsewhere = std::make_shared<test::SimpleService>();
  const Client here = make("simple://a-host");
  const Client there = make("simple://b-host", elsewhere);
  for (const bool here_first : {true, false}) {
    MultiLock lock = here_first ? all_of(here.make_lock("x"), there.make_lock("x"))
                                : all_of(there.make_lock("x"), here.make_lock("x"));
    const MultiLease leases = lock.acquire();
    EXPECT_TRUE(leases.held());
    EXPECT_TRUE(service_->held("x"));
    EXPECT_TRUE(elsewhere->held("x"));
  }
  for (const char* other : {"simple://a-host:1", "simple://a-host/1", "simple://[::1]"}) {
    const Client third = make(other, elsewhere);
    EXPECT_EQ(all_of(here.make_lock("x"), third.make_lock("x")).names().size(), 2U) << other;
  }
}

TEST_F(MultiLockTest, NoLockAtAllIsRefused) {
  EXPECT_NE(refusal([&] { return client_.make_multi_lock({}); }), "");
  EXPECT_NE(refusal([&] { return MultiLock(std::vector<DistributedLock>()); }), "");
}

TEST_F(MultiLockTest, NamesAreChecked) {
  EXPECT_NE(refusal([&] { return client_.make_multi_lock({"good", ""}); }).find("name"), std::string::npos);
}

TEST_F(MultiLockTest, ReleasesWhatTheLocksHeldThatItIsMadeOf) {
  DistributedLock a = client_.make_lock("a");
  a.lock();
  MultiLock lock = all_of(std::move(a), client_.make_lock("b"));
  EXPECT_FALSE(service_->held("a"));
  EXPECT_TRUE(lock.try_acquire().has_value());
}

// --- All or nothing --------------------------------------------------------------------------------------------------

TEST_F(MultiLockTest, IsBusyWhileAPlainLockHoldsOneOfThem) {
  MultiLock lock = client_.make_multi_lock({"a", "b", "c"});
  const Lease plain = client_.make_lock("b").acquire();
  std::error_code ec = errc::lost;
  EXPECT_FALSE(lock.try_acquire().has_value());
  EXPECT_FALSE(lock.try_acquire({}, ec).has_value());
  EXPECT_FALSE(ec);
  EXPECT_FALSE(lock.try_acquire_for(0s).has_value());
  EXPECT_FALSE(lock.acquire({.wait = 0s}, ec).has_value());
  EXPECT_EQ(ec, errc::timed_out);
  try {
    (void)lock.acquire({.wait = 0s});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), errc::timed_out);
    EXPECT_EQ(e.detail(), "lock \"b\" is already held");
  }
  EXPECT_FALSE(service_->held("a"));
  EXPECT_FALSE(service_->held("c"));
  EXPECT_TRUE(plain.held());
}

TEST_F(MultiLockTest, GetsAllWhenAPlainLockIsReleased) {
  MultiLock lock = client_.make_multi_lock({"a", "b"});
  Lease plain = client_.make_lock("b").acquire();
  std::optional<MultiLease> leases;
  std::thread waiter([&] { leases = lock.acquire(); });
  EXPECT_TRUE(plain.release());
  waiter.join();
  EXPECT_TRUE(leases->held());
  EXPECT_FALSE(client_.make_lock("a").try_acquire().has_value());
}

TEST_F(MultiLockTest, ACancelledWaitGivesBackTheFirst) {
  const Lease plain = client_.make_lock("b").acquire();
  MultiLock lock = client_.make_multi_lock({"a", "b"});
  std::stop_source stop;
  std::error_code ec;
  std::thread waiter([&] { (void)lock.acquire({.cancel = stop.get_token()}, ec); });
  while (client_.stats().waiting == 0 || !service_->held("a")) std::this_thread::yield();
  stop.request_stop();
  waiter.join();
  EXPECT_EQ(ec, errc::cancelled);
  EXPECT_FALSE(service_->held("a"));
}

TEST_F(MultiLockTest, TheOrderOfTheNamesDoesNotMatterToThreads) {
  const Client other = make();
  MultiLock forth = client_.make_multi_lock({"a", "b", "c"});
  MultiLock back = other.make_multi_lock({"c", "b", "a"});
  int counter = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      MultiLock& mine = t % 2 == 0 ? forth : back;
      for (int i = 0; i < 25; ++i) {
        const MultiLease leases = mine.acquire();
        ++counter;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(counter, 100);
}

// --- Two backends ----------------------------------------------------------------------------------------------------

TEST_F(MultiLockTest, TakesLocksOfTwoBackends) {
  const auto processes = std::make_shared<test::SimpleService>(LeaseKind::process);
  std::optional<Client> local = make("simple://local", processes);
  MultiLock lock = all_of(local->make_lock("a"), client_.make_lock("b"));
  MultiLease leases = lock.acquire();
  EXPECT_TRUE(leases.held());
  EXPECT_EQ(leases[0].valid_until(), TimePoint::max());
  EXPECT_EQ(leases.valid_until(), leases[1].valid_until());
  local.reset();
  EXPECT_FALSE(leases.held());
  EXPECT_TRUE(leases.lost().stop_requested());
  EXPECT_TRUE(leases[1].held()) << "until it is given back";
  EXPECT_FALSE(leases.release());
  EXPECT_FALSE(service_->held("b"));
}

// --- As a mutex ------------------------------------------------------------------------------------------------------

TEST_F(MultiLockTest, IsATimedLockable) {
  MultiLock lock = client_.make_multi_lock({"a", "b"});
  EXPECT_FALSE(lock.lease().has_value());
  {
    const std::scoped_lock guard(lock);
    EXPECT_TRUE(lock.lease().held());
    EXPECT_FALSE(lock.try_lock());
    try {
      lock.lock();
      FAIL();
    } catch (const std::system_error& e) {
      EXPECT_EQ(e.code(), std::errc::resource_deadlock_would_occur);
    }
    std::thread([&] {
      EXPECT_FALSE(lock.lease().has_value());
      EXPECT_FALSE(lock.try_lock_for(0s));
      lock.unlock();
    }).join();
    EXPECT_TRUE(lock.lease().held());
  }
  EXPECT_FALSE(lock.lease().has_value());
  EXPECT_FALSE(service_->held("a"));
  const std::unique_lock timed(lock, 1s);
  EXPECT_TRUE(timed.owns_lock());
  EXPECT_FALSE(client_.make_multi_lock({"b", "c"}).try_acquire().has_value());
}

TEST_F(MultiLockTest, LocksWithItsDefaults) {
  MultiLock lock = client_.make_multi_lock({"a", "b"});
  lock.set_defaults({.lease = 7s});
  EXPECT_EQ(lock.defaults().lease, Duration(7s));
  const std::scoped_lock guard(lock);
  EXPECT_LE(lock.lease().valid_until(), clock_->now() + 7s);
}

TEST_F(MultiLockTest, ALostLeaseIsTakenAnew) {
  MultiLock lock = client_.make_multi_lock({"a", "b"});
  lock.lock();
  service_->steal("a");
  clock_->advance(31s);
  EXPECT_FALSE(lock.lease().held());
  lock.lock();
  EXPECT_TRUE(lock.lease().held());
  lock.unlock();
  EXPECT_FALSE(service_->held("b"));
}

TEST_F(MultiLockTest, WithLockHoldsAllAndReleasesThem) {
  MultiLock lock = client_.make_multi_lock({"a", "b"});
  EXPECT_EQ(with_lock(lock, {.wait = 0s}, [](const MultiLease& leases) { return leases.held() ? 7 : 0; }), 7);
  EXPECT_FALSE(service_->held("a"));
  try {
    with_lock(lock, {}, [&](const MultiLease&) { clock_->advance(31s); });
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), errc::lost);
    EXPECT_NE(e.detail().find("lock \"a\""), std::string::npos);
  }
}

// --- Without blocking ------------------------------------------------------------------------------------------------

TEST_F(MultiLockTest, AnAsynchronousAcquireNeedsNoLockObject) {
  Lease plain = client_.make_lock("b").acquire();
  util::Event done;
  client_.make_multi_lock({"a", "b"}).async_acquire({}, [&](const Failure& failure, MultiLease leases) {
    EXPECT_FALSE(failure.code);
    EXPECT_TRUE(leases.held());
    leases.async_release([&](std::error_code ec, bool were_ours) {
      EXPECT_FALSE(ec);
      EXPECT_TRUE(were_ours);
      done.set();
    });
  });
  EXPECT_TRUE(plain.release());
  ASSERT_TRUE(done.wait(rig::hang_guard));
  EXPECT_FALSE(service_->held("a"));
}

TEST_F(MultiLockTest, DestroyingAClientEndsAnAsynchronousAcquireOnce) {
  const auto elsewhere = std::make_shared<test::SimpleService>();
  for (const bool waits_there : {false, true}) {
    std::optional<Client> here = make("simple://here");
    std::optional<Client> there = make("simple://there", elsewhere);
    const Client third = make("simple://there", elsewhere);
    const Lease plain = third.make_lock("b").acquire();
    std::atomic<int> calls = 0;
    util::Event done;
    all_of(here->make_lock("a"), there->make_lock("b"))
        .async_acquire({}, [&](std::error_code ec, const MultiLease& leases) {
          EXPECT_EQ(ec, errc::closed);
          EXPECT_FALSE(leases.has_value());
          ++calls;
          done.set();
        });
    while (there->stats().waiting == 0) std::this_thread::yield();
    (waits_there ? there : here).reset();
    ASSERT_TRUE(done.wait(rig::hang_guard));
    here.reset();
    there.reset();
    EXPECT_EQ(calls, 1);
    EXPECT_FALSE(service_->held("a"));
  }
}

TEST_F(MultiLockTest, ManyAsynchronousAcquiresTakeTurns) {
  constexpr int times = 50;
  int counter = 0;
  std::atomic<int> left = times;
  util::Event done;
  for (int i = 0; i < times; ++i) {
    client_.make_multi_lock(i % 2 == 0 ? Names{"a", "b"} : Names{"b", "a"})
        .async_acquire({}, [&](std::error_code ec, MultiLease leases) {
          EXPECT_FALSE(ec);
          ++counter;
          leases.async_release([&](std::error_code, bool) {
            if (--left == 0) done.set();
          });
        });
  }
  ASSERT_TRUE(done.wait(rig::hang_guard));
  EXPECT_EQ(counter, times);
}

}  // namespace
}  // namespace dlock
