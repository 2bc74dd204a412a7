// Runs the program's own code for a client: handlers, and calls of its observer. An exception from it is caught and
// counted. Any thread.
#pragma once

#include <cstdint>
#include <memory>

#include <dlock/observer.hpp>
#include <dlock/spi/task.hpp>

#include "core/client/counters.hpp"
#include "engine/engine.hpp"

namespace dlock::detail {

class Notifier : public std::enable_shared_from_this<Notifier> {
 public:
  Notifier(std::shared_ptr<engine::Engine> engine, std::shared_ptr<Observer> observer);

  // Whether there is an observer.
  [[nodiscard]] bool observed() const noexcept { return observer_ != nullptr; }
  // Queues the event for the observer, if there is one. Drops and counts it if too many are queued.
  void tell(Callback<Observer&> event);

  // Runs a handler of the program on the engine thread; right here if that has ended.
  void complete(Task handler);
  // As tell(), for the callbacks of lost(): before all other code of the program. It must not throw.
  void signal_loss(Task signal);

  void add_to(Stats& stats) const noexcept;

 private:
  template <class Code>
  void guarded(const Code& code) noexcept;
  void tell_of_dropped_events();
  // False: the code has not run and never will.
  bool run(Task code, engine::UserCode kind);

  const std::shared_ptr<engine::Engine> engine_;
  const std::shared_ptr<Observer> observer_;
  const std::uint64_t fork_generation_;
  Counters::Counter exceptions_{0};
  Counters::Counter events_dropped_{0};
  Counters::Counter events_dropped_untold_{0};  // not yet reported to the observer
};

}  // namespace dlock::detail
