// One name that a client of the file backend holds or waits for.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dlock/lock_kind.hpp>
#include <dlock/spi/executor.hpp>
#include <dlock/spi/try_backend.hpp>
#include <dlock/token.hpp>

#include "backends/file/fork_guard.hpp"
#include "backends/file/inotify.hpp"
#include "backends/file/lock_file.hpp"

namespace dlock::file {

class LockSpace;
class FileWatch;

struct HeldLock {
  OwnerId owner;
  FencingToken token;
  Mode mode = Mode::exclusive;
  GuardedFd fd = {};  // carries the lock, where several may hold it
};

// The leases of one name: nearly always one.
class HeldLocks {
 public:
  [[nodiscard]] bool empty() const noexcept { return !first_; }
  [[nodiscard]] std::size_t size() const noexcept { return first_ ? 1 + more_.size() : 0; }
  [[nodiscard]] const HeldLock& first() const noexcept { return *first_; }
  [[nodiscard]] HeldLock* find(const OwnerId& owner) noexcept {
    if (first_ && first_->owner == owner) return &*first_;
    const auto found = std::ranges::find(more_, owner, &HeldLock::owner);
    return found != more_.end() ? &*found : nullptr;
  }
  // So that add() no longer fails when memory is short.
  void make_room() {
    if (first_ && more_.size() == more_.capacity()) more_.reserve(2 * more_.size() + 1);
  }
  void add(HeldLock lease) noexcept {
    if (first_) {
      more_.push_back(std::move(lease));
    } else {
      first_ = std::move(lease);
    }
  }
  // A lease that find() answered.
  HeldLock take(HeldLock& lease) noexcept {
    if (more_.empty()) {
      HeldLock taken = std::move(lease);
      first_.reset();
      return taken;
    }
    if (&lease != &more_.back()) std::swap(lease, more_.back());
    HeldLock taken = std::move(more_.back());
    more_.pop_back();
    return taken;
  }

 private:
  std::optional<HeldLock> first_;
  std::vector<HeldLock> more_;
};

// Lives as long as there is a lease or a waiter. All waiters of the client share one descriptor and one inotify watch,
// and only the first of them is woken, or the first writer if a writer keeps the gate:
//
//   leases | waiters | fd                          | subscription
//   -------+---------+-----------------------------+---------------------------------------------
//   some   | none    | carries the lock, or with   | none: the directory's watch tells of loss
//          |         | that in each lease, nothing |
//   some   | some    | carries the lock, or is     | active, or polling
//          |         | for tries                   |
//   none   | some    | for tries; empty after our  | active, or polling
//          |         | own release until the next  |
class NameState final : public Inotify::Listener {
 public:
  NameState(LockSpace& owner, Executor& executor, std::string lock_name, std::string file_name, std::string file_path)
      : locks(owner),
        name(std::move(lock_name)),
        file(std::move(file_name)),
        path(std::move(file_path)),
        recheck(executor),
        poll(executor) {}

  void on_event(std::uint32_t mask, std::string_view entry) override;

  // Whether one of the client's waiters is there to write.
  [[nodiscard]] bool writer_waits() const noexcept;

  LockSpace& locks;
  const std::string name;
  const std::string file;
  const std::string path;
  GuardedFd fd;
  FileIdentity identity;                  // of what fd and the leases have open, or had last
  TimePoint found_at = TimePoint::min();  // when the file was last found under its path
  HeldLocks leases;
  std::list<NameState*> not_held{this};  // its one entry is in LockSpace::held_ while there is a lease
  const std::list<NameState*>::iterator list_entry = not_held.begin();

  // What fd has besides the lock: the gate, because a writer waits, or a share in the number of permits.
  bool gate = false;
  bool permits_shared = false;
  std::uint32_t permits = 0;             // of those who hold or wait
  TimePoint full_at = TimePoint::min();  // when the last of those who wait found all permits taken

  std::list<FileWatch*> waiters;  // first come, first woken
  Inotify::Subscription subscription;
  bool wake_posted = false;
  std::size_t recheck_step = 0;
  Timer recheck;  // a killed holder's descriptors wake us a moment before its lock goes
  Timer poll;     // instead of a subscription
};

// One waiter's place in the queue.
class FileWatch final : public Watch {
 public:
  FileWatch(NameState& state, Mode mode, std::function<void()> changed);
  ~FileWatch() override;

  [[nodiscard]] Mode mode() const noexcept { return mode_; }
  // Shared, because the waiter may end while it is being called.
  [[nodiscard]] std::shared_ptr<const std::function<void()>> changed() const { return changed_; }

  std::uint64_t woken_in_round;  // of LockSpace::wake_round_

 private:
  NameState& state_;
  const Mode mode_;
  std::shared_ptr<const std::function<void()>> changed_;
  std::list<FileWatch*>::iterator place_;
};

}  // namespace dlock::file
