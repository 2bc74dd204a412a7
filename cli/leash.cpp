#include "cli/leash.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "cli/arguments.hpp"
#include "cli/process_tree.hpp"
#include "cli/system.hpp"

namespace dlock::cli {

namespace {

// The interval at which a process without a pidfd is checked.
constexpr int look_ms = 200;

// A process, not a later one with its number.
class WatchedProcess {
 public:
  WatchedProcess(pid_t pid, bool pinned) : pid_(pid) {
    if (pinned) fd_ = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    if (const auto status = status_of(pid)) started_ = status->started;
    if (!fd_ && !is_there()) throw UsageError(fmt::format("--parent: there is no process {}", pid));
  }

  // Readable once the process has ended; -1: call is_there() periodically.
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  // Without a pidfd.
  [[nodiscard]] bool is_there() const noexcept {
    if (const auto status = status_of(pid_)) return status->started == started_ && !status->dead;
    return started_ == 0 && (::kill(pid_, 0) == 0 || errno == EPERM);  // without /proc
  }

 private:
  pid_t pid_;
  UniqueFd fd_;
  std::uint64_t started_ = 0;
};

// Whether more input may follow.
bool skip_input() noexcept {
  std::array<char, 4096> bytes;
  const ssize_t count = ::read(STDIN_FILENO, bytes.data(), bytes.size());
  return count > 0 || (count < 0 && (errno == EINTR || errno == EAGAIN));
}

void await_end(bool with_input, const std::optional<WatchedProcess>& process) noexcept {
  std::array sources{pollfd{.fd = with_input ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0},
                     pollfd{.fd = process ? process->fd() : -1, .events = POLLIN, .revents = 0}};
  const bool looks = process && process->fd() < 0;
  for (;;) {
    const int ready = ::poll(sources.data(), sources.size(), looks ? look_ms : -1);
    if (looks && !process->is_there()) return;
    if (ready <= 0) continue;
    if (sources[1].revents != 0) return;
    if (sources[0].revents != 0 && !skip_input()) return;
  }
}

}  // namespace

Leash::Leash(const Ends& ends, bool pinned) {
  std::optional<WatchedProcess> process;
  if (ends.with_process) process.emplace(*ends.with_process, pinned);
  if (!ends.with_input && !ends.with_process) return;
  // Detached, because it may block in a read of input that a different process has read meanwhile.
  std::thread([ended = ended_, with_input = ends.with_input, process = std::move(process)] {
    await_end(with_input, process);
    ended->notify();
  }).detach();
}

}  // namespace dlock::cli
