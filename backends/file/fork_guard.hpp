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

// The process's record of guarded descriptors. Any thread.
class ForkGuard {
 public:
  // How often this process has forked.
  [[nodiscard]] static std::uint64_t forks() noexcept;
  // False, and the descriptor is closed: the process forked after forks() answered that, so a child may have it.
  [[nodiscard]] static bool add(int fd, std::uint64_t forks_before_open) noexcept;
  // Closes a descriptor that was added in the process of that fork_generation(); in any other process does nothing.
  static void close(int fd, std::uint64_t generation) noexcept;
};

// Like UniqueFd, but the child of a fork() has it closed, and this object empty-handed.
class GuardedFd {
 public:
  GuardedFd() noexcept = default;
  GuardedFd(GuardedFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)), generation_(other.generation_) {}
  GuardedFd& operator=(GuardedFd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
      generation_ = other.generation_;
    }
    return *this;
  }
  ~GuardedFd() { reset(); }

  // Owns what open_fd() answers; empty, with errno set, if that is negative. A descriptor that a fork may have caught
  // on its way here is closed and opened again: whatever the child has then carries no lock.
  template <class Open>
  [[nodiscard]] static GuardedFd open(Open&& open_fd) {
    constexpr int attempts = 100;  // each is lost only to another fork() within a microsecond
    for (int i = 0; i < attempts; ++i) {
      const std::uint64_t forks = ForkGuard::forks();
      const int fd = open_fd();
      if (fd < 0) return {};
      if (ForkGuard::add(fd, forks)) return GuardedFd(fd);
    }
    errno = EAGAIN;
    return {};
  }

  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] explicit operator bool() const noexcept { return fd_ >= 0; }
  void reset() noexcept {
    if (fd_ >= 0) ForkGuard::close(std::exchange(fd_, -1), generation_);
  }

 private:
  explicit GuardedFd(int fd) noexcept : fd_(fd), generation_(util::fork_generation()) {}

  int fd_ = -1;
  std::uint64_t generation_ = 0;
};

}  // namespace dlock::file
