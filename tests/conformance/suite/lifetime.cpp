// Contract 15, continued: what happens to leases and waits when clients and processes go.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "suite/contract.hpp"

namespace dlock::conformance {

DLOCK_CONFORMANCE_TESTS(lifetime)

namespace {

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

// Runs `check` in a forked child; whether it answered true there.
bool in_forked_child(const std::function<bool()>& check) {
  const pid_t child = fork();
  if (child == 0) _exit(check() ? 0 : 1);
  int status = 1;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

TEST_P(Contract, C15_ALeaseMayOutliveItsClient) {
  std::optional<Lease> lease;
  {
    Client& gone = client();
    Lock& lock = lock_of(gone);
    lease = take(lock);
    close(gone);
  }
  EXPECT_TRUE(is_free(name()));
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

TEST_P(Contract, C15_ClosingAClientFreesItsLocks) {
  Client& gone = client();
  Lock& one = lock_of(gone, name("one"));
  Lock& two = lock_of(gone, name("two"));
  const Lease first = take(one);
  const Lease second = take(two);
  close(gone);
  EXPECT_TRUE(is_free(name("one")));
  EXPECT_TRUE(is_free(name("two")));
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
  const auto count = [](const char* directory) {
    return std::distance(std::filesystem::directory_iterator(directory), std::filesystem::directory_iterator());
  };
  (void)is_free(name());  // whatever is made once a process is there now
  const auto threads = count("/proc/self/task");
  const auto descriptors = count("/proc/self/fd");
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
  while (count("/proc/self/task") > threads && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  EXPECT_LE(count("/proc/self/task"), threads);
  // Each would leave one; a client that was here before may have connected anew.
  EXPECT_LT(count("/proc/self/fd"), descriptors + clients);
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
  Lease lease = take(lock);
  EXPECT_TRUE(in_forked_child([&] { return !lease.held(); }));
  EXPECT_TRUE(lease.held());
  EXPECT_TRUE(lease.release());
}

TEST_P(Contract, C15_AForkedChildThatDestroysALeaseTouchesNothing) {
  Lock& lock = lock_of(client());
  auto lease = std::make_unique<Lease>(take(lock));
  EXPECT_TRUE(in_forked_child([&] {
    lease.reset();
    return true;
  }));
  EXPECT_TRUE(lease->held());
  EXPECT_FALSE(is_free(name()));
  EXPECT_TRUE(lease->release());
  EXPECT_TRUE(is_free(name()));
}

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
