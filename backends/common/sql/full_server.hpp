// A client at a server that refuses connections because it has no more (SQLSTATE 53300). If the client holds a lock, it
// needs a connection soon, or its lock expires. Otherwise it makes room: it connects every few seconds, and closes such
// a connection as soon as its requests are answered.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include <dlock/error.hpp>
#include <dlock/spi/executor.hpp>

namespace dlock::sql {

// In tasks only.
class FullServer {
 public:
  explicit FullServer(Executor& executor) : executor_(executor) {}
  FullServer(const FullServer&) = delete;
  FullServer& operator=(const FullServer&) = delete;

  // holds: called often while the server is full. The client holds a lock if any of these functions says so.
  void holds_if(std::function<bool()> holds) { holds_.push_back(std::move(holds)); }

  // The server refused a connection because it is full.
  void refused(const Failure& why);
  // This client makes room and has a connection: the next one follows some seconds later.
  void keep_away();

  // The server refused this client recently, and this client holds no lock.
  [[nodiscard]] bool makes_room() const;
  // And does not connect yet.
  [[nodiscard]] bool keeps_away() const { return makes_room() && executor_.now() < next_; }
  // The last refusal.
  [[nodiscard]] const Failure& why() const noexcept { return why_; }
  // When this client connects next.
  [[nodiscard]] TimePoint next() const;

 private:
  Executor& executor_;
  std::vector<std::function<bool()>> holds_;
  std::optional<TimePoint> last_refusal_;
  Failure why_;
  TimePoint next_ = TimePoint::min();  // while this client holds no lock
};

}  // namespace dlock::sql
