// The waiters of this client: each has a FileWatch, in a queue by name. A file event, or a timer without inotify, makes
// the first waiter of a name try again: with a closed gate the first writer, with an election all.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>

#include "backends/file/loss_monitor.hpp"
#include "backends/file/names.hpp"

namespace dlock::file {

// One waiter's place in the queue.
class FileWatch final : public Watch {
 public:
  FileWatch(Waiters& waiters, Name& name, Mode mode, std::function<void()> changed);
  ~FileWatch() override;

  [[nodiscard]] Mode mode() const noexcept { return mode_; }
  // Shared, because the waiter may end while it is being called.
  [[nodiscard]] std::shared_ptr<const std::function<void()>> changed() const { return changed_; }

  std::uint64_t woken_in_round;  // of Waiters::round_

 private:
  friend class Waiters;
  Waiters& waiters_;
  Name& name_;
  const Mode mode_;
  std::shared_ptr<const std::function<void()>> changed_;
  std::list<FileWatch*>::iterator place_;
};

class Waiters {
 public:
  Waiters(LockFiles& files, Names& names, LossMonitor& losses, ClientState& client)
      : files_(files), names_(names), losses_(losses), client_(client) {}

  // The name has its first waiter, and its file is open; or it could not be opened, which the waiter's next try
  // reports.
  void start(Name& name, bool open);
  // Subscribes to the file that is open now, or polls.
  void subscribe(Name& name);
  // Has the first waiter try if it might get the lock. While it cannot, checks again a few times within 85 ms.
  void check(Name& name);
  // One more check, soon.
  void check_soon(Name& name);
  void wake_first(Name& name);
  [[nodiscard]] static bool writer_waits(const Name& name) noexcept;

 private:
  friend class FileWatch;
  friend struct Name;
  void on_file_event(Name& name, std::uint32_t mask);
  void remove(FileWatch& watch);
  void check_again(Name& name);
  void deliver_wake(Name& name);
  void wake_all(Name& name);
  void poll(Name& name);
  void arm_poll(Name& name);
  void arm_recheck(Name& name, std::size_t step);
  [[nodiscard]] TimePoint now() const noexcept { return client_.host.executor().now(); }

  LockFiles& files_;
  Names& names_;
  LossMonitor& losses_;
  ClientState& client_;
  std::uint64_t round_ = 0;  // of wake-ups of all waiters of an election
};

}  // namespace dlock::file
