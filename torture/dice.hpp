// Choices that are the same for the same seed on every machine. Not the standard distributions: what those make of a
// seed differs between libraries.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>
#include <vector>

namespace dlock::torture {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed) {}

  [[nodiscard]] std::uint64_t roll() { return random_(); }
  // From 0 to count - 1; slightly prefers small numbers, which does not matter here.
  [[nodiscard]] std::uint64_t below(std::uint64_t count) { return random_() % count; }
  [[nodiscard]] bool chance(std::uint64_t percent) { return below(100) < percent; }
  // From `least` to, but not including, `most`.
  [[nodiscard]] std::chrono::nanoseconds between(std::chrono::nanoseconds least, std::chrono::nanoseconds most) {
    const auto width = static_cast<std::uint64_t>((most - least).count());
    return least + std::chrono::nanoseconds(static_cast<std::int64_t>(width == 0 ? 0 : below(width)));
  }
  // Within the same bounds, with each order of magnitude equally likely. `least` is positive.
  [[nodiscard]] std::chrono::nanoseconds of_any_size(std::chrono::nanoseconds least, std::chrono::nanoseconds most) {
    std::uint64_t doublings = 1;
    for (auto size = least; size < most / 2; size *= 2) ++doublings;
    const auto low = least * (std::int64_t{1} << below(doublings));
    return between(low, std::min(2 * low, most));
  }
  [[nodiscard]] std::chrono::nanoseconds up_to(std::chrono::nanoseconds limit) { return between({}, limit); }
  template <class T>
  [[nodiscard]] const T& pick(const std::vector<T>& all) {
    return all[below(all.size())];
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace dlock::torture
