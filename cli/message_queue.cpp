#include "cli/message_queue.hpp"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "util/signals_blocked.hpp"

namespace dlock::cli {

namespace {

std::string notice(std::uint64_t dropped) {
  return fmt::format("dlock: {} message{} dropped, because nothing was read for too long\n", dropped,
                     dropped == 1 ? " was" : "s were");
}

}  // namespace

struct MessageQueue::State {
  const std::function<void(std::string_view)> write;
  const std::size_t room;

  std::mutex mutex;  // guards what follows
  std::condition_variable changed;
  std::deque<std::string> waiting;
  std::size_t bytes = 0;      // of those in `waiting`
  std::uint64_t dropped = 0;  // and not reported yet
  std::uint64_t written = 0;  // messages, so far
  bool started = false;
  bool writing = false;
  bool over = false;

  State(std::function<void(std::string_view)> how, std::size_t kind) : write(std::move(how)), room(kind) {}

  // With the mutex held:
  [[nodiscard]] bool has_work() const noexcept { return !waiting.empty() || dropped > 0; }
  void start(const std::shared_ptr<State>& self);
  void write_next(std::unique_lock<std::mutex>& lock);

  void run();
};

void MessageQueue::State::start(const std::shared_ptr<State>& self) {
  if (started) return;
  const util::SignalsBlocked blocked;
  // A thread whose write never returns cannot be joined.
  std::thread([self] { self->run(); }).detach();
  started = true;
}

void MessageQueue::State::write_next(std::unique_lock<std::mutex>& lock) {
  std::string message;
  if (waiting.empty()) {
    message = notice(std::exchange(dropped, 0));
  } else {
    message = std::move(waiting.front());
    waiting.pop_front();
    bytes -= message.size();
  }
  writing = true;
  changed.notify_all();
  lock.unlock();
  write(message);
  lock.lock();
  writing = false;
  ++written;
  changed.notify_all();
}

void MessageQueue::State::run() {
  std::unique_lock lock(mutex);
  for (;;) {
    changed.wait(lock, [this] { return over || has_work(); });
    if (over) return;
    write_next(lock);
  }
}

MessageQueue::MessageQueue(std::function<void(std::string_view)> write, std::size_t room)
    : state_(std::make_shared<State>(std::move(write), room)) {}

MessageQueue::~MessageQueue() {
  const std::scoped_lock lock(state_->mutex);
  state_->over = true;
  state_->changed.notify_all();
}

void MessageQueue::start() {
  const std::scoped_lock lock(state_->mutex);
  state_->start(state_);
}

void MessageQueue::push(std::string message) noexcept {
  const std::scoped_lock lock(state_->mutex);
  State& state = *state_;
  try {
    if (state.dropped > 0) message.insert(0, notice(state.dropped));
    if (state.bytes + message.size() <= state.room || state.waiting.empty()) {
      const std::size_t size = message.size();
      state.waiting.push_back(std::move(message));
      state.bytes += size;
      state.dropped = 0;
    } else {
      ++state.dropped;
    }
  } catch (const std::bad_alloc&) {
    ++state.dropped;
  }
  try {
    state.start(state_);
  } catch (const std::system_error&) {
    // flush() writes instead.
  }
  state.changed.notify_all();
}

void MessageQueue::drop() noexcept {
  const std::scoped_lock lock(state_->mutex);
  ++state_->dropped;
  state_->changed.notify_all();
}

bool MessageQueue::flush(std::chrono::nanoseconds patience) {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  while (state.has_work() || state.writing) {
    if (!state.started && state.has_work()) {
      state.write_next(lock);
      continue;
    }
    if (!state.writing) {
      state.changed.wait(lock);  // the thread only waits for a processor
      continue;
    }
    const std::uint64_t before = state.written;
    if (!state.changed.wait_for(lock, patience, [&] { return state.written != before; })) return false;
  }
  return true;
}

}  // namespace dlock::cli
