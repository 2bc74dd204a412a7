// Claims of a process to locks: how many of its acquires may have left something in the service.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include <dlock/clock.hpp>

namespace dlock::simulation {

class Claims {
 public:
  void begin(const std::string& lock) { ++locks_[lock].in_progress; }
  // It was denied, or given back.
  void end(const std::string& lock, TimePoint now) {
    Claim& claim = locks_[lock];
    --claim.in_progress;
    std::erase_if(claim.ended, [now](TimePoint at) { return at + grace < now; });
    claim.ended.push_back(now);
  }

  // Those in progress, and those that ended only just, for whom something may still be under way.
  [[nodiscard]] std::size_t count(const std::string& lock, TimePoint now) const {
    const auto found = locks_.find(lock);
    if (found == locks_.end()) return 0;
    const Claim& claim = found->second;
    const auto recent =
        std::count_if(claim.ended.begin(), claim.ended.end(), [now](TimePoint at) { return at + grace >= now; });
    return claim.in_progress + static_cast<std::size_t>(recent);
  }

 private:
  // Longer than it takes to clean up in good times.
  static constexpr auto grace = std::chrono::milliseconds(200);
  struct Claim {
    std::size_t in_progress = 0;
    std::vector<TimePoint> ended;
  };
  std::map<std::string, Claim> locks_;
};

}  // namespace dlock::simulation
