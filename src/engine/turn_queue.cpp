#include "engine/turn_queue.hpp"

#include <thread>
#include <utility>

#include "engine/hand_over.hpp"
#include "util/futex.hpp"
#include "util/pause.hpp"

namespace dlock::engine {

namespace {

// A waiting thread checks seldom, after pauses that double: if two processors took every other turn, the data would
// move between them each time, and a turn would take several times as long.
template <class Condition>
void spin_until(Condition condition) {
  constexpr int first_pauses = 32;
  constexpr int last_pauses = 512;
  static const bool several_processors = std::thread::hardware_concurrency() > 1;
  for (int pauses = first_pauses; several_processors && pauses <= last_pauses && !condition(); pauses *= 2) {
    for (int i = 0; i < pauses; ++i) util::pause_processor();
  }
}

}  // namespace

TurnQueue::Added TurnQueue::add(Task& task, bool begins) noexcept {
  const util::MutexLock lock(mutex_);
  const State before = state_;
  if (before == State::stopped) return Added::refused;
  if (before == State::idle) state_ = begins ? State::taken : State::for_loop;
  if (before == State::idle && begins) return Added::with_turn;
  tasks_.push_back(std::move(task));
  return before == State::idle ? Added::ask_loop : Added::to_turn;
}

bool TurnQueue::begin_for_loop() {
  const util::MutexLock lock(mutex_);
  if (state_ != State::for_loop) return false;
  state_ = State::taken;
  return true;
}

TurnQueue::State TurnQueue::wait_to_begin() {
  for (bool slept = false;; slept = true) {
    spin_until([this] { return state_ != State::taken; });
    std::uint32_t wakes = 0;
    {
      const util::MutexLock lock(mutex_);
      if (slept) {
        --sleepers_;
        coming_ = false;
      }
      if (state_ == State::stopped) break;
      if (state_ != State::taken) return state_.exchange(State::taken);
      ++sleepers_;
      wakes = wakes_;
    }
    hand_over();
    util::futex_wait(wakes_, wakes);
  }
  (void)give_back(State::stopped);  // the next sleeper learns of it
  return State::stopped;
}

bool TurnQueue::take_tasks(std::deque<Task>& batch) {
  const util::MutexLock lock(mutex_);
  batch.swap(tasks_);
  return !batch.empty();
}

bool TurnQueue::try_end(bool last) {
  return give_back(last ? State::stopped : State::idle);
}

void TurnQueue::pass_to_loop() {
  (void)give_back(State::for_loop);  // true
}

// False: tasks wait, and no thread has been asked to run them.
bool TurnQueue::give_back(State state) {
  {
    const util::MutexLock lock(mutex_);
    if (state != State::for_loop && !tasks_.empty()) return false;
    state_ = state;
    if (sleepers_ == 0 || std::exchange(coming_, true)) return true;
    ++wakes_;
  }
  hand_over();
  util::futex_wake(&wakes_, 1);
  return true;
}

}  // namespace dlock::engine
