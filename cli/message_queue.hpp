// Messages that nobody waits for: whoever has something to say leaves it here, and a thread of the queue writes it. A
// pipe that nobody reads, or a terminal that was stopped, holds up that thread alone.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace dlock::cli {

class MessageQueue {
 public:
  // `write` is called for one message at a time and may block for ever. It is called on the queue's thread, or in
  // flush() where the system refuses that thread. At most `room` bytes wait, or one message that is longer.
  MessageQueue(std::function<void(std::string_view)> write, std::size_t room);
  MessageQueue(const MessageQueue&) = delete;
  MessageQueue& operator=(const MessageQueue&) = delete;
  // Does not wait: what was not written by now is given up, and a write that blocks is left behind.
  ~MessageQueue();

  // Starts the thread; otherwise the first message does. Throws std::system_error when the system refuses it.
  void start();
  // Any thread; does not wait for `write`. A message that finds no room is dropped. When there is room again, a message
  // in its place says how many were.
  void push(std::string message) noexcept;
  // A message that could not even be made counts as dropped.
  void drop() noexcept;
  // Waits until everything was written, however long that takes. False: one write took longer than that.
  // NOLINTNEXTLINE(modernize-use-nodiscard): done for its effect
  bool flush(std::chrono::nanoseconds patience);

 private:
  struct State;
  const std::shared_ptr<State> state_;  // the thread's, too
};

}  // namespace dlock::cli
