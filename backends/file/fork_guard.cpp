#include "backends/file/fork_guard.hpp"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <vector>

#include "util/mutex.hpp"

namespace dlock::file {

namespace {

struct Registry {
  util::Mutex mutex;  // held across every fork(), so that a child sees a whole registry
  std::vector<bool> guarded DLOCK_GUARDED_BY(mutex);
  std::atomic<std::uint64_t> forks{0};
};

// Never destroyed: a client may be closed by a static destructor, and fork() may come later still.
Registry& registry() noexcept {
  static auto* const instance = new Registry;
  return *instance;
}

void before_fork() DLOCK_ACQUIRE(registry().mutex) {
  registry().mutex.lock();
  registry().forks.fetch_add(1, std::memory_order_relaxed);
}

void after_fork_in_parent() DLOCK_RELEASE(registry().mutex) {
  registry().mutex.unlock();
}

// Only what is safe between fork() and exec() in a process with several threads: no allocation.
void after_fork_in_child() DLOCK_RELEASE(registry().mutex) {
  for (std::size_t fd = 0; fd < registry().guarded.size(); ++fd) {
    if (!registry().guarded[fd]) continue;
    (void)::close(static_cast<int>(fd));  // the descriptor is gone whatever close() answers
    registry().guarded[fd] = false;
  }
  registry().mutex.unlock();
}

// A handler can only be registered, never removed: once a process.
[[nodiscard]] bool handlers_registered() noexcept {
  static const bool done = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) == 0;
  return done;
}

// Before there are threads: a fork() while another thread is in there would leave the child waiting for its end.
[[maybe_unused]] const bool registered_early = handlers_registered();

}  // namespace

std::uint64_t GuardedFd::forks() noexcept {
  return registry().forks.load(std::memory_order_relaxed);
}

bool GuardedFd::guard(int fd, std::uint64_t forks_before_open) noexcept {
  Registry& all = registry();
  const bool registered = handlers_registered();
  {
    const util::MutexLock lock(all.mutex);
    if (registered && all.forks.load(std::memory_order_relaxed) == forks_before_open) {
      const auto index = static_cast<std::size_t>(fd);
      if (index >= all.guarded.size()) all.guarded.resize(2 * index + 64);
      all.guarded[index] = true;
      return true;
    }
  }
  (void)::close(fd);
  return false;
}

void GuardedFd::reset() noexcept {
  if (fd_ < 0) return;
  Registry& all = registry();
  const int fd = std::exchange(fd_, -1);
  // Closed under the mutex: after that, the number may be reused, and a fork in between must not close it.
  const util::MutexLock lock(all.mutex);
  if (util::fork_generation() != generation_) return;
  all.guarded[static_cast<std::size_t>(fd)] = false;
  (void)::close(fd);
}

}  // namespace dlock::file
