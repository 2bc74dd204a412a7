// One name that a client of the file backend holds or waits for.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <dlock/executor.hpp>
#include <dlock/token.hpp>
#include <dlock/try_backend.hpp>

#include "backends/file/fork_guard.hpp"
#include "backends/file/inotify.hpp"
#include "backends/file/lock_file.hpp"

namespace dlock::file {

class FileBackend;
class FileWatch;

struct HeldLock {
  OwnerId owner;
  FencingToken token;
};

// Lives as long as there is a lease or a waiter. All waiters of the client share one descriptor and one inotify watch,
// and only the first of them is woken:
//
//   lease | waiters | fd                          | subscription
//   ------+---------+-----------------------------+---------------------------------------------
//   yes   | none    | carries the lock            | none: the directory's watch tells of loss
//   yes   | some    | carries the lock            | active, or polling
//   no    | some    | for tries; empty after our  | active, or polling
//         |         | own release until the next  |
class NameState final : public Inotify::Listener {
 public:
  NameState(FileBackend& owner, Executor& executor, std::string lock_name, std::string file_name, std::string file_path)
      : backend(owner),
        name(std::move(lock_name)),
        file(std::move(file_name)),
        path(std::move(file_path)),
        recheck(executor),
        poll(executor) {}

  void on_event(std::uint32_t mask, std::string_view entry) override;

  FileBackend& backend;
  const std::string name;
  const std::string file;
  const std::string path;
  GuardedFd fd;
  FileIdentity identity;                  // of what fd has open, or had last
  TimePoint found_at = TimePoint::min();  // when the file was last found under its path
  std::optional<HeldLock> lease;
  std::list<NameState*> not_held{this};  // its one entry is in FileBackend::held_ while there is a lease
  const std::list<NameState*>::iterator list_entry = not_held.begin();

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
  FileWatch(NameState& state, std::function<void()> changed);
  ~FileWatch() override;

  // Shared, because the waiter may end while it is being called.
  [[nodiscard]] std::shared_ptr<const std::function<void()>> changed() const { return changed_; }

 private:
  NameState& state_;
  std::shared_ptr<const std::function<void()>> changed_;
  std::list<FileWatch*>::iterator place_;
};

}  // namespace dlock::file
