// What drives a client: an Executor plus what only the core may use. Its two implementations are ThreadEngine (a thread
// and the machine's clock) and, for tests and simulation, one that a single thread drives by hand.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include <dlock/executor.hpp>

#include "util/event.hpp"

namespace dlock::engine {

// What of the program's own code is to run.
enum class UserCode {
  loss_signal,  // the callbacks of lost(): before all other user code, because work goes on without the lock until then
  other,
};

class Engine : public Executor {
 public:
  // Runs the task serialised with all others: right away on this thread if the engine is idle, else as if posted; from
  // inside a task always the latter. False: the engine was stopped and the task will never run. Any thread.
  [[nodiscard]] virtual bool dispatch(Task task) = 0;

  // Like post(), but answers false instead of dropping the task silently.
  [[nodiscard]] virtual bool submit(Task task) = 0;

  // Runs user code on the engine thread, outside the serialisation, what is of one kind in the order of the calls.
  // Tasks and timers that are due run between any two short batches of it. False: the engine was stopped and the code
  // will never run; never from inside a task. Any thread.
  [[nodiscard]] virtual bool notify(Task user_code, UserCode kind) = 0;
  [[nodiscard]] bool notify(Task user_code) { return notify(std::move(user_code), UserCode::other); }

  // Blocks the calling thread until the event is set, at most `limit` of real time. Answers whether it is set.
  virtual bool wait(util::Event& event, std::optional<std::chrono::nanoseconds> limit = std::nullopt) = 0;

  // Whether the caller is on the engine's own thread, or inside a task, so that waiting for the engine would be
  // forever.
  [[nodiscard]] virtual bool must_not_block() const noexcept = 0;

  // Runs what was submitted, then ends the thread; later submissions are refused. Where must_not_block() it returns at
  // once and the thread ends by itself. At most one call.
  virtual void stop() = 0;
};

}  // namespace dlock::engine
