// A server that refuses connections because it has no more (SQLSTATE 53300), as one client deals with it. A client that
// holds a lock needs a connection soon, or its lock expires; a client that only waits for one makes room: it tries to
// connect every few seconds only, and closes the connections that it can do without.
#pragma once

#include <algorithm>
#include <chrono>
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
  // Called when a connection is refused. Lives as long as this, or answers nothing any more.
  void when_refused(std::function<void()> told) { told_.push_back(std::move(told)); }

  // The server was full when a connection was tried.
  void refused(const Failure& why);
  // A client that makes room has looked at its locks, and has closed the connection.
  void looked();

  // It was so not long ago.
  [[nodiscard]] bool recently() const;
  // This client makes room for others.
  [[nodiscard]] bool makes_room() const { return recently() && !holds(); }
  // And does not connect yet.
  [[nodiscard]] bool keeps_away() const { return makes_room() && executor_.now() < next_; }
  // What the server said.
  [[nodiscard]] const Failure& why() const noexcept { return why_; }
  // When a client that makes room connects next.
  [[nodiscard]] TimePoint next() const noexcept { return next_; }

 private:
  [[nodiscard]] bool holds() const {
    return std::any_of(holds_.begin(), holds_.end(), [](const auto& any) { return any(); });
  }
  [[nodiscard]] std::chrono::nanoseconds pause() const;

  Executor& executor_;
  std::vector<std::function<bool()>> holds_;
  std::vector<std::function<void()>> told_;
  std::optional<TimePoint> last_refusal_;
  Failure why_;
  std::chrono::nanoseconds at_most_{};  // the next pause
  TimePoint next_ = TimePoint::min();
};

}  // namespace dlock::postgres
