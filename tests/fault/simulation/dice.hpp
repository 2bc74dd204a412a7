// Chance from a seed. Not the standard distributions: what those make of a seed differs between libraries.
#pragma once

#include <chrono>
#include <cstdint>
#include <random>

namespace dlock::fault {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed) {}

  [[nodiscard]] std::uint64_t roll() { return random_(); }
  // 0 .. limit - 1; the limit must not be 0.
  [[nodiscard]] std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
  [[nodiscard]] bool chance(std::uint64_t percent) { return below(100) < percent; }
  // In [from, to).
  [[nodiscard]] std::chrono::nanoseconds between(std::chrono::nanoseconds from, std::chrono::nanoseconds to) {
    return from + std::chrono::nanoseconds(below(static_cast<std::uint64_t>((to - from).count())));
  }
  [[nodiscard]] std::chrono::nanoseconds up_to(std::chrono::nanoseconds limit) { return between({}, limit); }

 private:
  std::mt19937_64 random_;
};

}  // namespace dlock::fault
