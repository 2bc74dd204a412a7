// The engine of a client: an Executor, plus functions for the core alone. Its implementations are ThreadEngine (a
// thread and the machine's clock) and, for tests and simulation, some that a single thread drives by hand.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include <dlock/spi/executor.hpp>

#include "engine/user_code.hpp"
#include "util/event.hpp"

namespace dlock::engine {

enum class Notified {
  accepted,
  refused,  // too much of its kind waits already
  stopped,  // the engine was stopped and the code will never run; never from inside a task
};

enum class IfBusy {
  leave_task,     // the task runs as if posted, and the call returns
  wait_for_turn,  // the call returns when the task has run: for tasks that take less time than a sleep and a wake-up;
                  // as leave_task inside a task of another engine and on the thread of any engine
};

class Engine : public Executor {
 public:
  // Runs the task serialised with all others: right away on this thread if the engine is idle, else as if_busy says;
  // from inside a task as if posted. False: the engine was stopped and the task will never run. Any thread.
  [[nodiscard]] virtual bool dispatch(Task task, IfBusy if_busy = IfBusy::leave_task) = 0;

  // Like post(), but answers false instead of dropping the task silently.
  [[nodiscard]] virtual bool submit(Task task) = 0;

  // Runs user code on the engine thread, outside the serialisation; see UserCodeQueue for the order. Tasks and timers
  // that are due run between any two short batches of it. Moves from it only if it is accepted. Any thread.
  [[nodiscard]] virtual Notified notify(Task&& user_code, UserCode kind) = 0;

  // Blocks the calling thread until the event is set, at most `limit` of real time. Answers whether it is set.
  virtual bool wait(util::Event& event, std::optional<std::chrono::nanoseconds> limit = std::nullopt) = 0;

  // Whether the caller is on the engine's own thread, or inside one of its tasks, where waiting for the engine would
  // never end.
  [[nodiscard]] virtual bool must_not_block() const noexcept = 0;

  // Runs what was submitted, then ends the thread; later submissions are refused. Where must_not_block() it returns at
  // once and the thread ends by itself. At most one call.
  virtual void stop() = 0;
};

}  // namespace dlock::engine
