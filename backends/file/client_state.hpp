// The lock spaces of one client share the inotify instance and the counters of work.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <system_error>
#include <utility>

#include <dlock/spi/backend.hpp>

#include "backends/file/inotify.hpp"

namespace dlock::file {

struct ClientState {
  explicit ClientState(BackendHost& backend_host) : host(backend_host), inotify(backend_host.executor()) {}

  // As Inotify::subscribe(). False: inotify is not available; the observer is warned once.
  [[nodiscard]] bool subscribe(int fd, std::uint32_t mask, const std::string& directory,
                               Inotify::Subscription& subscription, Inotify::Handler handler) {
    const int error = inotify.subscribe(fd, mask, subscription, std::move(handler));
    if (error == 0) return true;
    inotify_error = error;
    if (!std::exchange(warned_of_polling, true)) {
      host.warn({"",
                 {errc::unavailable, "inotify is not available for " + directory + " (" +
                                         std::generic_category().message(error) +
                                         "): waiters poll instead; see fs.inotify in sysctl"}});
    }
    return false;
  }
  [[nodiscard]] TimePoint now() const noexcept { return host.executor().now(); }

  BackendHost& host;
  // The C library asks the kernel each time. A child made by fork() cannot use this client.
  const pid_t pid = ::getpid();
  Inotify inotify;
  int inotify_error = 0;  // of the last subscription that failed
  bool warned_of_polling = false;
  // Any thread may read the counters.
  std::atomic<std::uint64_t> kernel_tries{0};
  std::atomic<std::uint64_t> looks{0};
  std::atomic<std::uint64_t> wake_ups{0};
  std::atomic<std::uint64_t> path_looks{0};
};

}  // namespace dlock::file
