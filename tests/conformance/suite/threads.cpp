// Contract 15: all public objects may be used from any thread, by many at once; and what happens to leases and waits
// when clients and processes go.
#include <fcntl.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "suite/contract.hpp"
#include "tests/support/forked_child.hpp"
#include "tests/support/sanitizers.hpp"

namespace dlock::conformance {

DLOCK_CONFORMANCE_TESTS(threads)

namespace {

// A sanitizer takes ten times as long, and kinds of locks do not differ in how many there can be.
std::uint32_t many_of(const Kind& kind) {
  if (!dlock::test::sanitized) return 1000;
  return kind.kind == LockKind::lock ? 250 : 100;
}

// The descriptors of this process that a program executed by a child would inherit, and what they refer to.
std::map<int, std::string> inheritable_descriptors() {
  std::map<int, std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename().string());
    const int flags = fcntl(fd, F_GETFD);
    if (flags < 0 || (flags & FD_CLOEXEC) != 0) continue;
    std::error_code gone;
    found[fd] = std::filesystem::read_symlink(entry.path(), gone).string();
  }
  return found;
}

// Of the entries in a directory.
std::ptrdiff_t count_in(const char* directory) {
  return std::distance(std::filesystem::directory_iterator(directory), std::filesystem::directory_iterator());
}

}  // namespace

TEST_P(ClientContract, C15_ALeaseMayBeReleasedOrDestroyedOnAnotherThread) {
  Lock& lock = lock_of(client());
  Lease lease = take(lock);
  bool was_ours = false;
  {
    const Thread other([&] { was_ours = lease.release(); });
  }
  EXPECT_TRUE(was_ours);
  EXPECT_TRUE(is_free(name()));
  auto destroyed = std::make_unique<Lease>(take(lock));
  {
    const Thread other([given = std::move(destroyed)]() mutable { given.reset(); });
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

TEST_P(Contract, C15_AWaitingAcquireCostsNoThread) {
  Client& holder = client();
  Client& waiter = client();
  Lock& lock = lock_of(holder);
  Lock& others = lock_of(waiter);
  const Lease lease = take(lock);
  EXPECT_FALSE(others.try_acquire().has_value());  // whatever is made once is there now
  const auto before = count_in("/proc/self/task");
  constexpr int count = 100;
  std::deque<Pending> waiters;
  for (int i = 0; i < count; ++i) waiters.emplace_back(others, AcquireOptions{});
  settle();
  // A client that finds its service slow may open a few more connections, whose library has threads; not one a waiter.
  EXPECT_LE(count_in("/proc/self/task"), before + count / 10);
}

// Shows: crash-safety
TEST_P(Contract, C15_ClosingAClientFreesItsLocksAndItsLeasesMayOutliveIt) {
  Client& gone = client();
  std::optional<Lease> lease = take(lock_of(gone));
  const Lease other = take(lock_of(gone, name("other")));
  const LossEvent loss(*lease);
  close(gone);
  EXPECT_TRUE(loss.happened());
  EXPECT_TRUE(is_free(name()));
  EXPECT_TRUE(is_free(name("other")));
  EXPECT_FALSE(lease->held());
  EXPECT_TRUE(lease->lost().stop_requested());
  EXPECT_EQ(lease->name(), name());
  EXPECT_FALSE(lease->release());
  lease.reset();
  EXPECT_TRUE(is_free(name()));
}

TEST_P(ClientContract, C15_ALockMayOutliveItsClient) {
  Client& gone = client();
  Lock& lock = lock_of(gone);
  close(gone);
  std::error_code error;
  const Lease none = lock.acquire({}, error);
  EXPECT_EQ(error, errc::closed);
  EXPECT_FALSE(lock.try_acquire({}, error).has_value());
  EXPECT_EQ(error, errc::closed);
  EXPECT_EQ(Pending(lock, {}).get().error, errc::closed);
}

TEST_P(Contract, C15_ClosingAClientEndsItsWaits) {
  Lock& holding = lock_of(client());
  const Lease lease = take(holding);
  Client& gone = client();
  Lock& lock = lock_of(gone);
  std::deque<Pending> waiters;
  for (int i = 0; i < 100; ++i) waiters.emplace_back(lock, AcquireOptions{});
  close(gone);
  for (Pending& each : waiters) EXPECT_EQ(each.get().error, errc::closed);
}

TEST_P(Contract, C15_AClientMayBeDestroyedInTheMiddleOfEverything) {
  Lock& busy = lock_of(client(), name("busy"));
  const Lease lease = take(busy);
  for (int round = 0; round < 4; ++round) {
    auto doomed = std::make_unique<Client>(fixture().make_client({}, Link::steady));
    std::deque<Pending> pending;
    std::deque<Lease> leases;
    for (int i = 0; i < 10; ++i) {
      pending.emplace_back(lock_of(*doomed, name("busy")), AcquireOptions{});
      leases.push_back(take(lock_of(*doomed, name("free" + std::to_string(i)))));
    }
    for (int i = 0; i < 10; ++i) {
      pending.emplace_back(lock_of(*doomed, name("other" + std::to_string(i))), AcquireOptions{});
      if (i % 2 == 0) leases[static_cast<std::size_t>(i)].async_release([](std::error_code, bool) {});
      pending[static_cast<std::size_t>(i)].cancel();
    }
    doomed.reset();
    for (Pending& each : pending) (void)each.get();
    for (const Lease& each : leases) EXPECT_FALSE(each.held());
  }
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(is_free(name("free" + std::to_string(i))));
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(is_free(name("other" + std::to_string(i))));
  EXPECT_FALSE(is_free(name("busy")));
}

TEST_P(Contract, C15_AClientMayBeDestroyedWhileThreadsWait) {
  Lock& holding = lock_of(client());
  const Lease lease = take(holding);
  auto doomed = std::make_unique<Client>(fixture().make_client({}, Link::steady));
  std::deque<std::error_code> errors(8);
  {
    std::vector<Thread> threads;
    for (std::error_code& error : errors) {
      threads.emplace_back([&error, &lock = lock_of(*doomed)] { (void)lock.acquire({.wait = guard()}, error); });
    }
    EXPECT_FALSE(is_free(name()));
    doomed.reset();
  }
  for (const std::error_code& error : errors) EXPECT_EQ(error, errc::closed);
}

TEST_P(Contract, C15_AClosedClientLeavesNoThreadAndNoDescriptor) {
  (void)is_free(name());  // whatever is made once a process is there now
  const auto threads = count_in("/proc/self/task");
  const auto descriptors = count_in("/proc/self/fd");
  constexpr int clients = 5;
  for (int i = 0; i < clients; ++i) {
    Client gone = fixture().make_client({}, Link::steady);
    const auto lock = kind().make(gone, name());
    const Lease lease = take(*lock);
    const auto others = kind().make(gone, name());
    Pending waiting(*others, {});
  }
  // The kernel lists a thread that was joined for a moment longer.
  const auto end = std::chrono::steady_clock::now() + guard();
  while (count_in("/proc/self/task") > threads && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  EXPECT_LE(count_in("/proc/self/task"), threads);
  // Each would leave one; a client that was here before may have connected anew.
  EXPECT_LT(count_in("/proc/self/fd"), descriptors + clients);
}

TEST_P(ClientContract, C15_AMovedClientWorksOn) {
  Client moved = fixture().make_client({}, Link::steady);
  Lock& lock = lock_of(moved);
  Lease lease = take(lock);
  const Client kept = std::move(moved);
  EXPECT_TRUE(lease.held());
  EXPECT_TRUE(lease.release());
  EXPECT_TRUE(take(lock).held());
}

TEST_P(Contract, C15_AForkedChildHoldsNothing) {
  Lock& lock = lock_of(client());
  auto lease = std::make_unique<Lease>(take(lock));
  const auto child = [&](test::ForkedChild& in_child) {
    in_child.check(!lease->held());
    lease.reset();
  };
  EXPECT_EQ(test::ForkedChild::run(child), "good");
  expect_untouched(*lease);
  EXPECT_TRUE(is_free(name()));
}

// Shows: crash-safety
TEST_P(Contract, C15_NoDescriptorIsInheritedByAnExecutedProgram) {
  DLOCK_APPLIES_IF(caps().close_on_exec, "a library opens the descriptors, and without the flag");
  const auto before = inheritable_descriptors();
  auto [lock, others] = two_locks();
  const Lease lease = take(lock);
  Pending waiting(others, {});
  EXPECT_FALSE(is_free(name()));
  EXPECT_EQ(inheritable_descriptors(), before);
}

}  // namespace dlock::conformance
