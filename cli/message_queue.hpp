// Messages whose senders do not wait: a thread of the queue writes them. If nothing reads the pipe, or the terminal was
// stopped, only that thread blocks.
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
  // flush() if the system refuses that thread. At most `room` bytes wait, or one longer message.
  MessageQueue(std::function<void(std::string_view)> write, std::size_t room);
  MessageQueue(const MessageQueue&) = delete;
  MessageQueue& operator=(const MessageQueue&) = delete;
  // Does not wait: discards unwritten messages, and abandons a write that blocks.
  ~MessageQueue();

  // Starts the thread; otherwise the first message does. Throws std::system_error when the system refuses it.
  void start();
  // Any thread; does not wait for `write`. A message without room is dropped. Once there is room again, the next
  // message begins with the number of dropped ones.
  void push(std::string message) noexcept;
  // Counts a message as dropped that could not even be formatted.
  void drop() noexcept;
  // Waits until all messages are written. False: one write took longer than `patience`.
  // NOLINTNEXTLINE(modernize-use-nodiscard): done for its effect
  bool flush(std::chrono::nanoseconds patience);

 private:
  struct State;
  const std::shared_ptr<State> state_;  // the thread's, too
};

}  // namespace dlock::cli
