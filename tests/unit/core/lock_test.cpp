// DistributedLock, RecursiveLock and MultiLock as programs use them: standard lockables, and their ways to report. The
// conformance suite tests that they exclude, wait and recur.
#include <dlock/lock.hpp>

#include <chrono>
#include <concepts>
#include <future>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <system_error>
#include <thread>
#include <type_traits>

#include <dlock/dlock.hpp>

#include "tests/support/fake_backend.hpp"
#include "tests/support/refusals.hpp"
#include "tests/support/simple_backend.hpp"
#include "torture/rig/hang_guard.hpp"
#include "util/event.hpp"

namespace dlock {
namespace {

using namespace std::chrono_literals;
using Names = std::vector<std::string>;

// Cpp17BasicLockable, Cpp17Lockable, Cpp17TimedLockable.
template <class L>
concept TimedLockable =
    requires(L lock, std::chrono::milliseconds wait, std::chrono::time_point<std::chrono::steady_clock> deadline,
             std::chrono::time_point<std::chrono::system_clock> wall_deadline) {
      lock.lock();
      { lock.try_lock() } -> std::same_as<bool>;
      { lock.try_lock_for(wait) } -> std::same_as<bool>;
      { lock.try_lock_until(deadline) } -> std::same_as<bool>;
      { lock.try_lock_until(wall_deadline) } -> std::same_as<bool>;
      requires noexcept(lock.unlock());
    };
// Cpp17SharedTimedLockable.
template <class L>
concept SharedTimedLockable =
    requires(L lock, std::chrono::milliseconds wait, std::chrono::time_point<std::chrono::steady_clock> deadline) {
      lock.lock_shared();
      { lock.try_lock_shared() } -> std::same_as<bool>;
      { lock.try_lock_shared_for(wait) } -> std::same_as<bool>;
      { lock.try_lock_shared_until(deadline) } -> std::same_as<bool>;
      requires noexcept(lock.unlock_shared());
    };
// A call that would be useless on a temporary does not compile. The arguments are references, which say the value
// category.
template <class L>
concept LocksAs =
    requires(L lock) { static_cast<L>(lock).lock(); } || requires(L lock) { static_cast<L>(lock).try_lock(); } ||
    requires(L lock) { static_cast<L>(lock).try_lock_for(1s); } ||
    requires(L lock) { static_cast<L>(lock).try_lock_until(std::chrono::steady_clock::now()); } ||
    requires(L lock) { static_cast<L>(lock).lock_shared(); } || requires(L lock) { static_cast<L>(lock).lease(); };
template <class L>
concept TakesDefaults = requires(L lock) { static_cast<L>(lock).set_defaults({}); };
template <class L>
concept MovesOnly =
    !std::is_copy_constructible_v<L> && !std::is_copy_assignable_v<L> && std::is_nothrow_move_constructible_v<L>;
template <class L>
constexpr bool is_lock = TimedLockable<L> && MovesOnly<L> && LocksAs<L&> && !LocksAs<L&&>;
static_assert(is_lock<DistributedLock> && is_lock<RecursiveLock> && is_lock<MultiLock>);
static_assert(is_lock<ReadWriteLock> && SharedTimedLockable<ReadWriteLock>);
static_assert(TakesDefaults<DistributedLock&> && !TakesDefaults<DistributedLock&&>);
static_assert(MovesOnly<Lease> && MovesOnly<MultiLease> && MovesOnly<Client>);
static_assert(MovesOnly<Semaphore> && MovesOnly<Election> && MovesOnly<Observation>);
template <class C>
concept GivesLocks = requires(C client) { static_cast<C>(client).make_lock("x"); } ||
                     requires(C client) { static_cast<C>(client).make_multi_lock({"x"}); } ||
                     requires(C client) { static_cast<C>(client).make_read_write_lock("x"); } ||
                     requires(C client) { static_cast<C>(client).make_semaphore("x", 1); } ||
                     requires(C client) { static_cast<C>(client).make_election("x"); };
static_assert(GivesLocks<Client&> && GivesLocks<const Client&>);
static_assert(!GivesLocks<Client&&> && !GivesLocks<const Client&&>, "the client is gone when the lock is used");
template <class L>
concept Acquires = requires(L lock) { static_cast<L>(lock).acquire(); };
static_assert(Acquires<DistributedLock&> && Acquires<DistributedLock&&>, "a lease outlives its lock");

class LockTest : public testing::Test {
 protected:
  [[nodiscard]] Client make(std::string_view url = "simple://",
                            std::shared_ptr<test::SimpleService> service = nullptr) {
    return connect(url, {.label = "test", .clock = clock_}, (service ? service : service_)->factory());
  }
  std::shared_ptr<test::SimpleService> service_ = std::make_shared<test::SimpleService>();
  std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>();
  Client client_ = make();
  DistributedLock lock_ = client_.make_lock("x");
  DistributedLock rival_ = client_.make_lock("x");
};

// --- As mutexes ------------------------------------------------------------------------------------------------------

template <class L>
class EachLock : public LockTest {
 protected:
  [[nodiscard]] L make_one(const std::string& name = "x") {
    if constexpr (std::is_same_v<L, MultiLock>) {
      return client_.make_multi_lock({name, "second"});
    } else {
      return L(client_.make_lock(name));
    }
  }
  L lock_ = make_one();
};
using AllLocks = testing::Types<DistributedLock, RecursiveLock, MultiLock>;
TYPED_TEST_SUITE(EachLock, AllLocks);

TYPED_TEST(EachLock, Object_MovesWithItsLeaseAndReleasesItWhenReplaced) {
  this->lock_.lock();
  TypeParam moved = std::move(this->lock_);
  EXPECT_TRUE(moved.lease().held());
  EXPECT_TRUE(this->service_->held("x"));
  moved = this->make_one("y");
  EXPECT_FALSE(this->service_->held("x"));
  moved.lock();
  moved = this->make_one("z");
  EXPECT_FALSE(this->service_->held("y"));
}

// The code of a wait that is over does not mean that the lock is busy if it comes from the backend.
TEST(RecursiveLock, Lock_ThrowsEachFailureOfTheBackend) {
  const auto service = std::make_shared<test::FakeService>();
  service->on_contend = [](auto& contend) { contend.fail({errc::timed_out, "the service lost patience"}); };
  const Client client = connect("fake://", {.label = "test"}, service->factory());
  RecursiveLock recursive(client.make_lock("x"));
  DistributedLock plain = client.make_lock("x");
  const auto expect_thrown = [](const auto& attempt) {
    const Failure thrown = test::thrown_by(attempt);
    EXPECT_EQ(thrown.code, errc::unavailable);
    EXPECT_EQ(thrown.detail, "the service lost patience");
  };
  expect_thrown([&] { recursive.lock(); });
  expect_thrown([&] { (void)plain.try_acquire(); });
  expect_thrown([&] { plain.lock(); });
  expect_thrown([&] { with_lock(plain, {}, [](const Lease&) { ADD_FAILURE() << "ran without the lock"; }); });
  EXPECT_EQ(recursive.hold_count(), 0U);
}

// --- Ways to acquire -------------------------------------------------------------------------------------------------

template <class L>
class EachLockWithLeases : public EachLock<L> {};
using LocksWithLeases = testing::Types<DistributedLock, MultiLock>;
TYPED_TEST_SUITE(EachLockWithLeases, LocksWithLeases);

TYPED_TEST(EachLockWithLeases, Defaults_GoIntoLockExceptTheWait) {
  this->lock_.set_defaults({.wait = 0s, .lease = 7s});
  EXPECT_EQ(this->lock_.defaults().lease, Duration(7s));
  this->lock_.lock();
  EXPECT_LE(this->lock_.lease().valid_until(), this->clock_->now() + 7s);
  this->lock_.unlock();
  std::optional<Lease> held = this->rival_.acquire();
  std::jthread releasing([&] {
    while (this->client_.stats().waiting == 0) std::this_thread::yield();
    held.reset();
  });
  this->lock_.lock();
  this->lock_.unlock();
  std::stop_source stop;
  stop.request_stop();
  this->lock_.set_defaults({.cancel = stop.get_token()});
  EXPECT_THROW(this->lock_.lock(), Error);
  EXPECT_THROW((void)this->lock_.try_lock(), Error);
}

TYPED_TEST(EachLockWithLeases, WithLock_RunsTheFunctionUnderTheLock) {
  const auto run = [&](AcquireOptions options, const auto& f) { return with_lock(this->lock_, options, f); };
  EXPECT_EQ(run({.wait = 5s}, [&](const auto& lease) { return lease.held() && this->service_->held("x") ? 42 : 0; }),
            42);
  EXPECT_FALSE(this->service_->held("x"));
  EXPECT_THROW(run({}, [](const auto&) { throw std::runtime_error("oops"); }), std::runtime_error);
  EXPECT_FALSE(this->service_->held("x"));
  const Failure loss = test::thrown_by([&] { run({}, [&](const auto&) { this->clock_->advance(31s); }); });
  EXPECT_EQ(loss.code, errc::lost) << "though the function ended normally";
  EXPECT_NE(loss.detail.find("lock \"x\""), std::string::npos);
  EXPECT_THROW((void)run({},
                         [&](const auto&) {
                           this->service_->steal("x");
                           return 1;
                         }),
               Error);
  const Lease lease = this->rival_.acquire();
  bool ran = false;
  EXPECT_THROW(run({.wait = 0s}, [&](const auto&) { ran = true; }), Error);
  EXPECT_FALSE(ran);
}

TYPED_TEST(EachLockWithLeases, Handler_TakesTheCodeOrTheFailure) {
  std::promise<Failure> told;
  auto move_only = std::make_unique<int>(42);
  this->make_one().async_acquire({}, [&, move_only = std::move(move_only)](const Failure& problem, auto lease) {
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
  std::promise<void> done;
  this->make_one().async_acquire({}, [&](auto acquired, auto lease) {
    static_assert(std::is_same_v<decltype(acquired), std::error_code>);
    lease.async_release([&](auto code, auto /*was_ours*/) {
      static_assert(std::is_same_v<decltype(code), std::error_code>);
      done.set_value();
    });
  });
  done.get_future().get();
  util::Event refused;
  this->lock_.async_acquire({.wait = -1s}, [&](std::error_code code, const auto& none) {
    EXPECT_EQ(code, errc::invalid_argument);
    EXPECT_FALSE(none.has_value());
    this->lock_.async_acquire({.wait = -1s}, [&](const Failure& failure, const auto& none_either) {
      EXPECT_EQ(failure.code, errc::invalid_argument);
      EXPECT_NE(failure.detail.find("wait"), std::string::npos);
      EXPECT_FALSE(none_either.has_value());
      refused.set();
    });
  });
  EXPECT_TRUE(refused.wait(rig::hang_guard));
  EXPECT_FALSE(this->service_->held("x"));
}

// Its destructor is the program's code as much as the handler is: it may take locks that a task must not wait for.
TEST_F(LockTest, CapturesOfAHandler_AreDestroyedWhereItRan) {
  struct Destruction {
    std::thread::id on;
    util::Event over;
  };
  const auto capture = [](const std::shared_ptr<Destruction>& destruction) {
    return std::shared_ptr<void>(nullptr, [destruction](void*) {
      destruction->on = std::this_thread::get_id();
      destruction->over.set();
    });
  };
  for (int i = 0; i < 200; ++i) {
    Lease held = lock_.acquire();
    std::thread::id ran_on;
    Lease taken;
    auto acquired = std::make_shared<Destruction>();
    rival_.async_acquire({}, [&, captured = capture(acquired)](std::error_code, Lease lease) {
      ran_on = std::this_thread::get_id();
      taken = std::move(lease);
    });
    EXPECT_TRUE(held.release());  // grants in a task of this thread
    ASSERT_TRUE(acquired->over.wait(rig::hang_guard));
    ASSERT_EQ(acquired->on, ran_on);
    auto released = std::make_shared<Destruction>();
    taken.async_release(
        [&, captured = capture(released)](std::error_code, bool) { ran_on = std::this_thread::get_id(); });
    ASSERT_TRUE(released->over.wait(rig::hang_guard));
    ASSERT_EQ(released->on, ran_on);
  }
}

// --- Several locks ---------------------------------------------------------------------------------------------------

template <class... Of>
MultiLock all_of(Of... locks) {
  std::vector<DistributedLock> all;
  (all.push_back(std::move(locks)), ...);
  return MultiLock(std::move(all));
}

TEST_F(LockTest, MultiLock_TakesEachNameOnce) {
  const auto refusal = [](const auto& f) {
    const Failure why = test::thrown_by(f);
    EXPECT_TRUE(!why.code || why.code == errc::invalid_argument);
    return why.detail;
  };
  EXPECT_NE(refusal([&] { return client_.make_multi_lock({}); }), "");
  EXPECT_NE(refusal([&] { return MultiLock(std::vector<DistributedLock>()); }), "");
  EXPECT_NE(refusal([&] { return client_.make_multi_lock({"good", ""}); }).find("name"), std::string::npos);
  EXPECT_NE(refusal([&] { return client_.make_multi_lock({"a", "b", "a"}); }).find("\"a\""), std::string::npos);
  const Client here = make("simple://host:1,Other/place?lease=5s");
  const Client same = make("simple://u:hunter2@other,HOST:1/place/");
  EXPECT_EQ(refusal([&] { return all_of(here.make_lock("x"), same.make_lock("x")); }), "lock \"x\" is named twice");
  EXPECT_EQ(all_of(here.make_lock("x"), same.make_lock("y")).names(), (Names{"x", "y"}));
  const Client there = make("simple://a-host");
  for (const char* other : {"simple://b-host", "simple://a-host:1", "simple://a-host/1", "simple://[::1]"}) {
    const Client elsewhere = make(other);
    EXPECT_EQ(all_of(there.make_lock("x"), elsewhere.make_lock("x")).names().size(), 2U) << other;
  }
}

TEST_F(LockTest, MultiLockOfTwoBackends_ReleasesWhatItsLocksHeld) {
  const auto processes = std::make_shared<test::SimpleService>(LeaseKind::process);
  std::optional<Client> local = make("simple://local", processes);
  DistributedLock there = local->make_lock("x");
  lock_.lock();
  MultiLock lock = all_of(std::move(there), std::move(lock_));
  EXPECT_FALSE(service_->held("x"));
  MultiLease leases = lock.acquire();
  EXPECT_TRUE(leases.held());
  EXPECT_TRUE(service_->held("x") && processes->held("x"));
  EXPECT_EQ(leases[0].valid_until(), TimePoint::max());
  EXPECT_EQ(leases.valid_until(), leases[1].valid_until());
  local.reset();
  EXPECT_FALSE(leases.held());
  EXPECT_TRUE(leases.lost().stop_requested());
  EXPECT_TRUE(leases[1].held()) << "until it is given back";
  EXPECT_FALSE(leases.release());
  EXPECT_FALSE(service_->held("x"));
}

// --- The end of a lease ----------------------------------------------------------------------------------------------

TEST_F(LockTest, EndSignalOfSeveralLeases_FiresBeforeTheRelease) {
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

  leases = lock.acquire();
  leases.release_in_background();
  EXPECT_TRUE(leases.ended().stop_requested());
  EXPECT_FALSE(leases.held());
  for (const char* name : {"a", "b"}) EXPECT_TRUE(client_.make_lock(name).try_acquire_for(1min));
  EXPECT_FALSE(leases.release());

  leases = lock.acquire({.renew = false});
  const std::stop_token ended = leases.ended();
  EXPECT_FALSE(ended.stop_requested());
  clock_->advance(60s);
  EXPECT_TRUE(leases.ended().stop_requested() && ended.stop_requested());
  EXPECT_EQ(leases.remaining(), 0s);
}

TEST_F(LockTest, EmptyMultiLease_HoldsNothing) {
  MultiLease none;
  EXPECT_FALSE(none.held() || none.has_value() || none.release());
  EXPECT_EQ(none.size(), 0U);
  EXPECT_FALSE(none.lost().stop_possible() || none.ended().stop_possible());
  EXPECT_EQ(none.valid_until(), TimePoint::min());
  EXPECT_EQ(none.remaining(), 0s);
  none.release_in_background();
}

}  // namespace
}  // namespace dlock
