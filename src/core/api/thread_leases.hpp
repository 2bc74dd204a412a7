// One lease for each thread, with its hold count and mode: the state behind lock() and unlock().
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>

#include <dlock/lease.hpp>
#include <dlock/lock_kind.hpp>
#include <dlock/options.hpp>

#include "core/api/livelock_backoff.hpp"
#include "util/immortal.hpp"
#include "util/mutex.hpp"

namespace dlock::detail {

// Any thread. A reference to a thread's lease stays valid until that thread takes it out, whatever other threads do.
// One for each thread because of losses: a thread that lost the lock keeps its dead lease when the next one enters, and
// its unlock() must not release the newcomer's.
template <class AnyLease>
class BasicThreadLeases {
 public:
  // This thread's lease; an empty one if there is none.
  [[nodiscard]] const AnyLease& mine() const noexcept {
    static const util::Immortal<AnyLease> empty;
    const util::MutexLock lock(mutex_);
    const auto found = entries_.find(std::this_thread::get_id());
    return found == entries_.end() ? *empty : found->second.lease;
  }

  [[nodiscard]] std::size_t count() const noexcept {
    const util::MutexLock lock(mutex_);
    const auto found = entries_.find(std::this_thread::get_id());
    return found == entries_.end() ? 0 : found->second.count;
  }

  // Keeps a new lease for this thread, with count 1. The thread must have none.
  void put(AnyLease lease, Mode mode = Mode::exclusive) {
    LivelockBackoff::of_this_thread().entered(std::chrono::steady_clock::now());
    const util::MutexLock lock(mutex_);
    entries_.emplace(std::this_thread::get_id(), Entry{std::move(lease), mode, 1});
  }

  // Takes the lock by acquire() and keeps its lease. This thread must hold none; one that it lost, and did not unlock,
  // is dropped.
  template <class Acquire>
  void enter(Acquire acquire, Mode mode = Mode::exclusive) {
    (void)decrement();
    LivelockBackoff::of_this_thread().pause(this);
    put(acquire(), mode);
  }

  // As enter(), by a try that returns nullopt for busy. Returns whether this thread holds the lock now.
  template <class TryAcquire>
  bool try_enter(TryAcquire try_acquire, Mode mode = Mode::exclusive) {
    (void)decrement();
    std::optional<AnyLease> lease = try_acquire();
    if (!lease) {
      LivelockBackoff::of_this_thread().tried_in_vain(this, std::chrono::steady_clock::now());
      return false;
    }
    put(*std::move(lease), mode);
    return true;
  }

  void increment() noexcept {
    const util::MutexLock lock(mutex_);
    const auto found = entries_.find(std::this_thread::get_id());
    if (found != entries_.end()) ++found->second.count;
  }

  // Counts down; hands out the lease when the count reaches 0. nullopt while it does not, or if there is none, or none
  // in this mode.
  [[nodiscard]] std::optional<AnyLease> decrement(std::optional<Mode> mode = std::nullopt) noexcept {
    const util::MutexLock lock(mutex_);
    const auto found = entries_.find(std::this_thread::get_id());
    if (found == entries_.end() || (mode && found->second.mode != *mode)) return std::nullopt;
    if (--found->second.count != 0) return std::nullopt;
    LivelockBackoff::of_this_thread().left();
    std::optional<AnyLease> out(std::move(found->second.lease));
    entries_.erase(found);
    return out;
  }

 private:
  struct Entry {
    AnyLease lease;
    Mode mode;
    std::size_t count;
  };
  mutable util::Mutex mutex_;
  std::unordered_map<std::thread::id, Entry> entries_ DLOCK_GUARDED_BY(mutex_);
};

using ThreadLeases = BasicThreadLeases<Lease>;

// The options of lock() and try_lock(). Any thread.
class DefaultOptions {
 public:
  [[nodiscard]] AcquireOptions get() const {
    const util::MutexLock lock(mutex_);
    return options_;
  }
  void set(const AcquireOptions& options) {
    const util::MutexLock lock(mutex_);
    options_ = options;
  }

 private:
  mutable util::Mutex mutex_;
  AcquireOptions options_ DLOCK_GUARDED_BY(mutex_);
};

}  // namespace dlock::detail
