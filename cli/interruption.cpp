#include "cli/interruption.hpp"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <optional>

#include "cli/exit_code.hpp"
#include "cli/output.hpp"

namespace dlock::cli {

Interruption::~Interruption() {
  watcher_.request_stop();
  over_.notify();
  watcher_.join();
}

void Interruption::watch(const std::stop_token& end) {
  while (!end.stop_requested()) {
    std::array fds{pollfd{.fd = signals_.fd(), .events = POLLIN, .revents = 0},
                   pollfd{.fd = over_.fd(), .events = POLLIN, .revents = 0}};
    (void)::poll(fds.data(), fds.size(), -1);  // the loop checks, whatever ended it
    while (const std::optional<int> signal = signals_.next()) {
      if (!SignalQueue::ends(*signal)) continue;
      if (signal_ != 0) {
        flush_messages();
        ::_exit(signalled(*signal));
      }
      signal_ = *signal;
      source_.request_stop();
    }
  }
}

}  // namespace dlock::cli
