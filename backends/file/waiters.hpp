// The waiters of this client: each has a Watch, in a queue by name. A file event, or a timer without inotify, makes the
// first waiter of a name try again: with a closed gate the first writer, with an election all.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "backends/file/loss_monitor.hpp"
#include "backends/file/names.hpp"

namespace dlock::file {

class Waiters {
 public:
  Waiters(LockFiles& files, Names& names, LossMonitor& losses, ClientState& client)
      : files_(files), names_(names), losses_(losses), client_(client) {}

  [[nodiscard]] std::unique_ptr<Watch> add(Name& name, Mode mode, std::function<void()> changed);
  // After the first waiter of a name was added. open: the name's file is; if not, the waiter's next try reports why.
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
  friend struct FileWatch;
  void on_file_event(Name& name, std::uint32_t mask);
  void remove(FileWatch& watch);
  void check_again(Name& name);
  void deliver_wake(Name& name);
  void wake_all(Name& name);
  void poll(Name& name);
  void arm_poll(Name& name);
  void arm_recheck(Name& name, std::size_t step);

  LockFiles& files_;
  Names& names_;
  LossMonitor& losses_;
  ClientState& client_;
  std::uint64_t round_ = 0;  // of wake-ups of all waiters of an election
};

}  // namespace dlock::file
