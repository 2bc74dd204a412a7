// Small wrappers over Linux that throw std::system_error instead of returning -1.
#pragma once

#include <dlock/clock.hpp>

#include <string_view>
#include <utility>

#include "cli/unique_fd.hpp"

namespace dlock::cli {

// Returns result, or throws what errno says about `what`.
int check(int result, const char* what);

// Both ends are close-on-exec: first reads, second writes.
[[nodiscard]] std::pair<UniqueFd, UniqueFd> make_pipe();

// Writes all of it, riding out interruptions and full pipes. False when the other side is gone or the disk is full.
bool write_all(int fd, std::string_view text) noexcept;

// Closes all descriptors from first to last that are open. Async-signal-safe.
void close_descriptors(unsigned first, unsigned last) noexcept;

// Becomes readable when notify() was called; from any thread.
class Event {
 public:
  Event();
  void notify() const noexcept;
  void clear() const noexcept;
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }

 private:
  UniqueFd fd_;
};

// Becomes readable when the lease clock reaches a time point.
class Alarm {
 public:
  Alarm();
  // TimePoint::max(): never.
  void set(TimePoint at);
  void clear() const noexcept;
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }

 private:
  UniqueFd fd_;
};

}  // namespace dlock::cli
