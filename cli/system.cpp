#include "cli/system.hpp"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <system_error>

namespace dlock::cli {

int check(int result, const char* what) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), what);
  return result;
}

std::pair<UniqueFd, UniqueFd> make_pipe() {
  int ends[2];
  check(::pipe2(ends, O_CLOEXEC), "pipe");
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

bool write_all(int fd, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n >= 0) {
      text.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno == EAGAIN) {
      // The caller's descriptor is non-blocking, and perhaps shared: dlock must not change its flags.
      pollfd writable{.fd = fd, .events = POLLOUT, .revents = 0};
      if (::poll(&writable, 1, -1) < 0 && errno != EINTR) return false;
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

ssize_t read_some(int fd, void* into, std::size_t size) noexcept {
  ssize_t n = 0;
  do {
    n = ::read(fd, into, size);
  } while (n < 0 && errno == EINTR);
  return n;
}

namespace {

void close_range_of(unsigned first, unsigned last, Closing when) noexcept {
  const int flags = when == Closing::on_exec ? CLOSE_RANGE_CLOEXEC : 0;
  if (first > last || ::close_range(first, last, flags) == 0) return;
  constexpr unsigned highest_probed = 65536;
  for (unsigned probed = first; probed <= std::min(last, highest_probed); ++probed) {
    const int fd = static_cast<int>(probed);  // most are not open
    (void)(when == Closing::on_exec ? ::fcntl(fd, F_SETFD, FD_CLOEXEC) : ::close(fd));
  }
}

}  // namespace

void close_all_but(const std::vector<int>& kept, Closing when) noexcept {
  unsigned gap = 0;
  for (const int fd : kept) {
    if (fd > 0) close_range_of(gap, static_cast<unsigned>(fd) - 1, when);
    gap = static_cast<unsigned>(fd) + 1;
  }
  close_range_of(gap, ~0U, when);
}

void close_from(unsigned first) noexcept {
  close_range_of(first, ~0U, Closing::now);
}

void kill_and_reap(pid_t child) noexcept {
  (void)::kill(child, SIGKILL);
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Event::Event() : fd_(check(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")) {}

void Event::notify() const noexcept {
  const std::uint64_t one = 1;
  // It fails only if the counter is full, and then the event is signalled already.
  (void)!::write(fd_.get(), &one, sizeof one);
}

void Event::clear() const noexcept {
  std::uint64_t count = 0;
  (void)!::read(fd_.get(), &count, sizeof count);  // nothing to read: it was clear
}

Alarm::Alarm() : fd_(check(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK), "timerfd_create")) {}

void Alarm::set(TimePoint at) {
  itimerspec spec{};
  if (at != TimePoint::max()) {
    const auto since_boot = at.time_since_epoch();
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since_boot);
    spec.it_value.tv_sec = seconds.count();
    spec.it_value.tv_nsec = (since_boot - seconds).count();
    // All zero would disarm it; a time before boot means now.
    if (spec.it_value.tv_sec < 0 || since_boot.count() <= 0) spec.it_value = {.tv_sec = 0, .tv_nsec = 1};
  }
  check(::timerfd_settime(fd_.get(), TFD_TIMER_ABSTIME, &spec, nullptr), "timerfd_settime");
}

void Alarm::clear() const noexcept {
  std::uint64_t count = 0;
  (void)!::read(fd_.get(), &count, sizeof count);  // nothing to read: it had not expired
}

}  // namespace dlock::cli
