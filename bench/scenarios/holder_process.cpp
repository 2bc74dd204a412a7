#include "bench/scenarios/holder_process.hpp"

#include <csignal>
#include <stdexcept>
#include <string_view>

namespace dlock::bench {

namespace {

// Whether one of the lines is a token.
bool has_token(std::string_view printed) {
  for (auto end = printed.find('\n'); end != std::string_view::npos; end = printed.find('\n')) {
    const std::string_view line = printed.substr(0, end);
    if (!line.empty() && line.find_first_not_of("0123456789") == std::string_view::npos) return true;
    printed.remove_prefix(end + 1);
  }
  return false;
}

}  // namespace

HolderProcess::HolderProcess(const std::string& program, const std::string& url, const std::string& lease,
                             const std::string& name)
    : process_({program, "hold", "--quiet", "--lease", lease, name}, {"DLOCK_URL=" + url}) {}

bool HolderProcess::await_lock(std::chrono::nanoseconds limit, const std::stop_token& stop) const {
  if (process_.wait_until(has_token, limit, stop)) return true;
  if (stop.stop_requested()) return false;
  const char* const why = process_.output_ended() ? "the holder ended: " : "the holder did not get the lock in time: ";
  throw std::runtime_error(why + process_.output());
}

void HolderProcess::kill() {
  process_.signal(SIGKILL);
  (void)process_.wait();
}

}  // namespace dlock::bench
