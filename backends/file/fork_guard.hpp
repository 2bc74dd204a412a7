// Descriptors that a child made by fork() does not keep.
//
// A kernel lock on an open file description lives until the last descriptor of it is closed, wherever that is: a child
// that inherited one would hold its parent's lock after the parent's death. Close-on-exec does not help a child that
// never calls exec, so a handler of fork() closes them in the child. (A child made by a bare clone() is out of reach;
// posix_spawn() and vfork() end in exec.)
#pragma once

#include <cerrno>
#include <cstdint>
#include <utility>

#include "util/process.hpp"

namespace dlock::file {

// Like UniqueFd, but in the child of a fork() the descriptor is closed, and this object is empty. Any thread.
class GuardedFd {
 public:
  GuardedFd() noexcept = default;
  GuardedFd(GuardedFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)), generation_(other.generation_) {}
  GuardedFd& operator=(GuardedFd&& other) noexcept {
    if (this == &other) return *this;
    reset();
    fd_ = std::exchange(other.fd_, -1);
    generation_ = other.generation_;
    return *this;
  }
  ~GuardedFd() { reset(); }

  // Owns what open_fd() answers; empty, with errno set, if that is negative. A descriptor that a fork may have caught
  // on its way here is closed and opened again: whatever the child has then carries no lock.
  template <class Open>
  [[nodiscard]] static GuardedFd open(Open&& open_fd) {
    constexpr int attempts = 100;  // each is lost only to another fork() within a microsecond
    for (int i = 0; i < attempts; ++i) {
      const std::uint64_t before = forks();
      const int fd = open_fd();
      if (fd < 0) return {};
      if (guard(fd, before)) return GuardedFd(fd);
    }
    errno = EAGAIN;
    return {};
  }

  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] explicit operator bool() const noexcept { return fd_ >= 0; }
  void reset() noexcept;

 private:
  explicit GuardedFd(int fd) noexcept : fd_(fd), generation_(util::fork_generation()) {}
  // How often this process has forked.
  [[nodiscard]] static std::uint64_t forks() noexcept;
  // False, and the descriptor is closed: the process forked after forks() answered that, so a child may have it.
  [[nodiscard]] static bool guard(int fd, std::uint64_t forks_before_open) noexcept;

  int fd_ = -1;
  std::uint64_t generation_ = 0;  // of the process that opened it
};

}  // namespace dlock::file
