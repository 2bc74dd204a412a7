#include "torture/rig/pause.hpp"

#include <condition_variable>
#include <mutex>

namespace dlock::rig {

bool pause(std::chrono::nanoseconds length, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  (void)never.wait_for(lock, stop, length, [] { return false; });
  return !stop.stop_requested();
}

}  // namespace dlock::rig
