// Small wrappers over Linux that throw std::system_error instead of returning -1.
#pragma once

#include <dlock/clock.hpp>

#include <sys/types.h>

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "util/unique_fd.hpp"

namespace dlock::cli {

using util::UniqueFd;

// Returns result; if it is -1, throws errno's error about `what`.
int check(int result, const char* what);

// Both ends are close-on-exec: first reads, second writes.
[[nodiscard]] std::pair<UniqueFd, UniqueFd> make_pipe();

// Writes all of it, despite interruptions and full pipes. False if the other side is gone or the disk is full.
bool write_all(int fd, std::string_view text) noexcept;

// read(), repeated after interruptions. Async-signal-safe, like all that follow.
ssize_t read_some(int fd, void* into, std::size_t size) noexcept;

enum class Closing { now, on_exec };
// Closes all open descriptors except `kept`, which is sorted.
void close_all_but(const std::vector<int>& kept, Closing when) noexcept;
// All from this one up.
void close_from(unsigned first) noexcept;

// Ends a child process, whose status is not needed.
void kill_and_reap(pid_t child) noexcept;

// Readable after notify(); any thread.
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
