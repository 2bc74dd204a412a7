// The network between simulated processes and the lock service: in good times every request is answered; in bad times
// anything may become of it, and the requests of one process may all meet with the same.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>

#include "tests/simulation/service.hpp"
#include "tests/simulation/world.hpp"

namespace dlock::simulation {

inline constexpr std::array<std::string_view, fates> fate_names{
    "answered", "request lost", "answer lost", "late", "held", "doubled", "refused", "silent", "expired"};
using FateCounts = std::array<std::size_t, fates>;

constexpr std::chrono::nanoseconds longest_delay = std::chrono::seconds(2);

// Faults that take a lock from its holder.
[[nodiscard]] inline Event session_expired(int process, TimePoint now) {
  return {
      .kind = Kind::struck, .until = now + std::chrono::milliseconds(1), .subject = process, .word = "session expired"};
}
[[nodiscard]] inline Event lock_broken(Kind kind, const SimulatedLock& lock) {
  return {.kind = kind, .lock = lock.name, .lock_kind = lock.lock_kind, .word = "lock broken"};
}

class Network {
 public:
  explicit Network(World& world) : world_(world) {}

  [[nodiscard]] Fate decide(int process) {
    Fate fate = Fate::answer;
    if (const auto cut = cut_.find(process); cut != cut_.end()) {
      fate = cut->second;
    } else if (trouble != 0 && world_.dice.chance(trouble)) {
      fate = some_fate();
    }
    if (fate == Fate::expire) world_.note(session_expired(process, world_.now()));
    ++counts_[static_cast<std::size_t>(fate)];
    return fate;
  }
  [[nodiscard]] std::chrono::nanoseconds delay() {
    return world_.dice.up_to(world_.dice.chance(25) ? longest_delay : std::chrono::milliseconds(100));
  }

  // So many requests of a hundred suffer from something.
  std::uint64_t trouble = 0;
  // All requests of this process meet with one fate, which is not an answer.
  void cut_off(int process) { cut_[process] = some_fate(); }
  void connect(int process) { cut_.erase(process); }
  void heal() {
    trouble = 0;
    cut_.clear();
  }
  [[nodiscard]] const FateCounts& counts() const { return counts_; }

 private:
  [[nodiscard]] Fate some_fate() { return static_cast<Fate>(1 + world_.dice.below(fates - 1)); }

  World& world_;
  std::map<int, Fate> cut_;
  FateCounts counts_{};
};

}  // namespace dlock::simulation
