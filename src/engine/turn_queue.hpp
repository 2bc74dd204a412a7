// The turn of an engine, and the tasks that wait for one.
//
//   state    | means                                            | becomes
//   ---------+--------------------------------------------------+-------------------------------------------
//   idle     | no turn is under way, no task waits              | taken: add(), wait_to_begin()
//            |                                                  | for_loop: add()
//   taken    | a turn is under way, which runs what waits       | idle, stopped: try_end()
//            |                                                  | for_loop: pass_to_loop()
//   for_loop | no turn is under way, tasks wait for the loop,   | taken: begin_for_loop(), wait_to_begin()
//            | which was asked to run them                      |
//   stopped  | the last turn has ended, all tasks are refused   |
//
// Threads that wait for the turn spin for a moment, then sleep. A running thread takes the turn before those that
// sleep, so with more callers than processors a turn costs no switch of threads. The end of a turn wakes a sleeper only
// if no other is waking up: otherwise each turn would cost a wake-up, and the loop's thread would share its processor
// with all of them. (As in Go's sync.Mutex, but without its bound on how often a sleeper is overtaken. A std::mutex has
// neither; with 64 callers on two processors it had a third of the rate.)
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>

#include <dlock/spi/task.hpp>

#include "util/mutex.hpp"
#include "util/thread_annotations.hpp"

namespace dlock::engine {

class DLOCK_CAPABILITY("turn") TurnQueue {
 public:
  enum class State { idle, taken, for_loop, stopped };
  enum class Added {
    with_turn,  // the caller has the turn now, and the task still
    to_turn,    // the turn that is under way runs the task, or the loop, which has been asked before
    ask_loop,   // the caller has to ask the loop
    refused,
  };
  // Puts the task behind all that wait. `begins`: takes the turn instead if none is under way and no task waits.
  [[nodiscard]] Added add(Task& task, bool begins) noexcept DLOCK_EXCLUDES(mutex_);
  // Takes the turn for what waits for the loop, unless another thread has.
  [[nodiscard]] bool begin_for_loop() DLOCK_TRY_ACQUIRE(true) DLOCK_EXCLUDES(mutex_);
  // Blocks until no turn is under way, and takes it. Answers the state before: idle, for_loop, or stopped without a
  // turn.
  [[nodiscard]] State wait_to_begin() DLOCK_EXCLUDES(mutex_);

  // In a turn: moves the tasks that wait to `batch`, which is empty. Answers whether there are any.
  bool take_tasks(std::deque<Task>& batch) DLOCK_REQUIRES(this) DLOCK_EXCLUDES(mutex_);
  // Gives the turn back; the `last` one for good. False: tasks wait, and the caller still has the turn.
  [[nodiscard]] bool try_end(bool last) DLOCK_EXCLUDES(mutex_);
  // Gives the turn back though tasks wait. The caller has to ask the loop.
  void pass_to_loop() DLOCK_RELEASE() DLOCK_EXCLUDES(mutex_) DLOCK_NO_THREAD_SAFETY_ANALYSIS;

 private:
  bool give_back(State state) DLOCK_EXCLUDES(mutex_);

  util::Mutex mutex_;                       // a leaf
  std::atomic<State> state_ = State::idle;  // changes under mutex_
  std::deque<Task> tasks_ DLOCK_GUARDED_BY(mutex_);
  int sleepers_ DLOCK_GUARDED_BY(mutex_) = 0;
  bool coming_ DLOCK_GUARDED_BY(mutex_) = false;  // one of them was woken and has not run yet
  std::atomic<std::uint32_t> wakes_{0};           // the futex on which they sleep
};

}  // namespace dlock::engine
