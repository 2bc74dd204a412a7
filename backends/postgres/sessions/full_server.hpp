// A server that refuses connections because it has no more (SQLSTATE 53300), as one client deals with it. A client that
// holds a lock needs a connection soon, or its lock expires. One that only waits for a lock makes room: it connects
// every few seconds, and closes such a connection as soon as its requests are answered.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include <dlock/error.hpp>
#include <dlock/spi/executor.hpp>

namespace dlock::postgres {

// In tasks only.
class FullServer {
 public:
  explicit FullServer(Executor& executor) : executor_(executor) {}
  FullServer(const FullServer&) = delete;
  FullServer& operator=(const FullServer&) = delete;

  // Asked often while the server is full: whether this client holds a lock, of any of those that can tell.
  void holds_if(std::function<bool()> holds) { holds_.push_back(std::move(holds)); }

  // The server was full when a connection was tried.
  void refused(const Failure& why);
  // A client that makes room has a connection: it makes the next one some seconds later.
  void keep_away();

  // The server refused this client not long ago, and this client holds no lock.
  [[nodiscard]] bool makes_room() const;
  // And does not connect yet.
  [[nodiscard]] bool keeps_away() const { return makes_room() && executor_.now() < next_; }
  // What the server said.
  [[nodiscard]] const Failure& why() const noexcept { return why_; }
  // When this client connects next.
  [[nodiscard]] TimePoint next() const;

 private:
  Executor& executor_;
  std::vector<std::function<bool()>> holds_;
  std::optional<TimePoint> last_refusal_;
  Failure why_;
  TimePoint next_ = TimePoint::min();  // unless it holds a lock
};

}  // namespace dlock::postgres
