// The names that one client holds or waits for, in one lock space.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/file/inotify.hpp"
#include "backends/file/lock_files.hpp"

namespace dlock::file {

struct FileWatch;

struct HeldLock {
  OwnerId owner;
  FencingToken token;
  Mode mode = Mode::exclusive;
  GuardedFd fd = {};  // carries the lock, where several may hold it
};

// Lives as long as there is a lease or a waiter. All waiters of the client share one descriptor and one inotify watch:
//
//   leases | waiters | file.fd                     | subscription
//   -------+---------+-----------------------------+---------------------------------------------
//   some   | none    | carries the lock, or with   | none: the directory's watch reports a loss
//          |         | that in each lease, nothing |
//   some   | some    | carries the lock, or is     | active, or polling
//          |         | for tries                   |
//   none   | some    | for tries; empty after a    | active, or polling
//          |         | release until the next try  |
struct Name {
  Name(LockFile lock_file, Executor& executor) : file(std::move(lock_file)), recheck(executor), poll(executor) {}

  [[nodiscard]] HeldLock* find_lease(const OwnerId& owner) noexcept;
  // This client can let no other owner in beside its own leases.
  [[nodiscard]] bool full() const noexcept;

  LockFile file;
  std::vector<HeldLock> leases;
  std::list<Name*>::iterator held_entry;  // of LossMonitor, while there is a lease

  std::list<FileWatch*> waiters;  // first come, first woken
  Inotify::Subscription subscription;
  bool wake_posted = false;
  std::size_t recheck_step = 0;
  Timer recheck;  // the kernel reports the close of a killed holder's file a moment before it removes the lock
  Timer poll;     // instead of a subscription
};

class Names {
 public:
  Names(LockFiles& files, Executor& executor) : files_(files), executor_(executor) {}

  [[nodiscard]] Name* find(std::string_view entry) noexcept;
  [[nodiscard]] Name& obtain(const std::string& entry, const std::string& lock_name);
  // Closes what is no longer needed. A name without lease and waiter is destroyed.
  void settle(Name& name);
  // Calls f in a later task, if the name still exists then.
  template <class F>
  void post(const Name& name, F f) {
    executor_.post(lifetime_.guard([this, entry = name.file.entry, f] {
      if (Name* const found = find(entry)) f(*found);
    }));
  }
  // The entries of all names.
  [[nodiscard]] std::vector<std::string> entries() const;

 private:
  LockFiles& files_;
  Executor& executor_;
  std::unordered_map<std::string_view, std::unique_ptr<Name>> names_;  // by their file's entry
  Lifetime lifetime_;
};

}  // namespace dlock::file
