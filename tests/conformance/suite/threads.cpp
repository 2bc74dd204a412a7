// Contract 15: all public objects may be used from any thread, by many at once.
#include <atomic>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "suite/contract.hpp"
#include "tests/support/sanitizers.hpp"

namespace dlock::conformance {

DLOCK_CONFORMANCE_TESTS(threads)

namespace {

// A sanitizer takes ten times as long, and kinds of locks do not differ in how many there can be.
std::uint32_t many_of(const Kind& kind) {
  return dlock::test::sanitized && kind.kind != LockKind::lock ? 100 : 1000;
}

}  // namespace

TEST_P(ClientContract, C15_ALeaseMayBeReleasedOnAnotherThread) {
  Lock& lock = lock_of(client());
  Lease lease = take(lock);
  bool was_ours = false;
  {
    const Thread other([&] { was_ours = lease.release(); });
  }
  EXPECT_TRUE(was_ours);
  EXPECT_TRUE(is_free(name()));
}

TEST_P(ClientContract, C15_ALeaseMayBeDestroyedOnAnotherThread) {
  Lock& lock = lock_of(client());
  auto lease = std::make_unique<Lease>(take(lock));
  {
    const Thread other([given = std::move(lease)]() mutable { given.reset(); });
  }
  EXPECT_TRUE(is_free(name()));
}

TEST_P(Contract, C15_ManyThreadsMayShareALockAndItsLeases) {
  Lock& lock = lock_of(client());
  Lease lease = take(lock);
  std::atomic<int> wrong{0};
  run_threads(8, [&](int /*i*/) {
    for (int k = 0; k < 50; ++k) {
      if (!lease.held() || lease.lost().stop_requested() || lease.token().value() == 0) wrong.fetch_add(1);
      if (lock.try_acquire().has_value()) wrong.fetch_add(1);
    }
  });
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_TRUE(lease.release());
}

TEST_P(Contract, C15_ManyThreadsMayUseOneClientForDifferentNames) {
  Client& shared = client();
  std::atomic<int> granted{0};
  // Each may hold a lock at the same moment, and a try does not wait until fewer are held.
  std::vector<std::error_code> errors(caps().max_locks == 0 ? 16 : std::min(16U, caps().max_locks));
  run_threads(errors.size(), [&](std::size_t i) {
    const auto lock = kind().make(shared, name(std::to_string(i)));
    for (int k = 0; k < 20 && !errors[i]; ++k) {
      if (auto lease = lock->try_acquire({}, errors[i]); lease && lease->release(errors[i])) granted.fetch_add(1);
    }
  });
  for (const std::error_code& error : errors) EXPECT_FALSE(error) << error.message();
  EXPECT_EQ(granted.load(), static_cast<int>(errors.size()) * 20);
}

TEST_P(Contract, C15_AThousandLeasesAndAThousandWaitersAtOnce) {
  Client& holder = client();
  Client& waiter = client();
  std::deque<Lease> leases;
  std::deque<Pending> waiters;
  const std::uint32_t many = many_of(kind());
  const std::uint32_t limit = caps().max_locks == 0 ? many : std::min(caps().max_locks / 4, many);
  for (std::uint32_t i = 0; i < limit; ++i) {
    auto lease = lock_of(holder, name(std::to_string(i))).try_acquire();
    ASSERT_TRUE(lease.has_value()) << "lease number " << i;
    leases.push_back(std::move(*lease));
  }
  for (const Lease& lease : leases) waiters.emplace_back(lock_of(waiter, lease.name()), AcquireOptions{});
  for (const Lease& lease : leases) ASSERT_TRUE(lease.held());
  EXPECT_EQ(holder.stats().held, limit);
  for (Lease& lease : leases) lease.async_release([](std::error_code /*ec*/, bool /*was_ours*/) {});
  std::deque<Lease> next;
  for (Pending& each : waiters) next.push_back(each.lease());
  for (const Lease& lease : next) ASSERT_TRUE(lease.held());
  EXPECT_EQ(waiter.stats().waiting, 0U);
}

TEST_P(ClientContract, C15_AHandlerRunsOnceForEveryAcquire) {
  Client& shared = client();
  Lock& lock = lock_of(shared);
  const auto calls = std::make_shared<std::atomic<int>>(0);
  const Lease lease = take(lock);
  for (int i = 0; i < 100; ++i) {
    lock.async_acquire({}, [calls](std::error_code /*ec*/, const Lease& /*lease*/) { calls->fetch_add(1); });
  }
  close(shared);
  EXPECT_EQ(calls->load(), 100);
}

TEST_P(Contract, C15_ABlockingCallInAHandlerIsRefusedAndHasNoEffect) {
  Client& shared = client();
  Lock& lock = lock_of(shared);
  Lock& free = lock_of(shared, name("free"));
  Event ended;
  std::string wrong;
  const auto expect_refused = [&](const std::string& what, const std::function<void()>& call) {
    try {
      call();
      wrong += what + " in a handler is not refused; ";
    } catch (const std::system_error& e) {
      if (e.code() != std::errc::resource_deadlock_would_occur) wrong += what + ": " + e.what() + "; ";
    }
  };
  Pending outer(lock, {}, [&](Lease& lease) {
    expect_refused("acquire()", [&] { (void)free.acquire({}); });
    expect_refused("release()", [&] { (void)lease.release(); });
    ended.set();
  });
  ended.wait("a blocking call in a handler deadlocks");
  EXPECT_EQ(wrong, "");
  EXPECT_TRUE(outer.lease().held());
  EXPECT_TRUE(is_free(name("free")));
}

TEST_P(Contract, C15_AnAsynchronousAcquireInAHandlerIsServed) {
  Client& shared = client();
  Lock& lock = lock_of(shared);
  Lock& inner_lock = lock_of(shared, name("inner"));
  std::optional<Pending> inner;
  Event started;
  Pending outer(lock, {}, [&](Lease& /*lease*/) {
    inner.emplace(inner_lock, AcquireOptions{});
    started.set();
  });
  started.wait("a handler does not run");
  EXPECT_TRUE(inner->lease().held());
}

TEST_P(ClientContract, C15_AHandlerThatThrowsIsContained) {
  Client& shared = client();
  Lock& lock = lock_of(shared);
  Lock& after = lock_of(shared, name("after"));
  Event thrown;
  lock.async_acquire({}, [&thrown](std::error_code /*ec*/, const Lease& /*lease*/) {
    thrown.set();
    throw std::runtime_error("thrown");
  });
  thrown.wait("a handler does not run");
  // Its lease was destroyed when the exception left the handler.
  EXPECT_TRUE(take(lock).held());
  EXPECT_TRUE(take(after).held());
  settle();
  EXPECT_EQ(shared.stats().callback_exceptions, 1U);
}

TEST_P(ClientContract, C15_AnObserverThatThrowsIsContained) {
  struct Throwing final : Observer {
    void acquired(const AcquiredEvent& /*event*/) override { throw std::runtime_error("thrown"); }
    void released(const ReleasedEvent& /*event*/) override { throw std::runtime_error("thrown"); }
  };
  Client& shared = client({.observer = std::make_shared<Throwing>()});
  Lock& lock = lock_of(shared);
  EXPECT_TRUE(take(lock).release());
  EXPECT_TRUE(take(lock).release());
  settle();
  EXPECT_GE(shared.stats().callback_exceptions, 2U);
}

TEST_P(Contract, C15_AWaitingAcquireCostsNoThread) {
  const auto threads = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
  };
  Client& holder = client();
  Client& waiter = client();
  Lock& lock = lock_of(holder);
  Lock& others = lock_of(waiter);
  const Lease lease = take(lock);
  EXPECT_FALSE(others.try_acquire().has_value());  // whatever is made once is there now
  const auto before = threads();
  constexpr int count = 100;
  std::deque<Pending> waiters;
  for (int i = 0; i < count; ++i) waiters.emplace_back(others, AcquireOptions{});
  settle();
  // A client that finds its service slow may open a few more connections, whose library has threads; not one a waiter.
  EXPECT_LE(threads(), before + count / 10);
}

}  // namespace dlock::conformance
