// The generator splitmix64 (S. Vigna): good enough to keep clients apart.
#pragma once

#include <cstdint>

namespace dlock::util {

inline constexpr std::uint64_t splitmix_step = 0x9e3779b97f4a7c15U;

// The next number; the state moves on by one step.
constexpr std::uint64_t splitmix(std::uint64_t& state) noexcept {
  state += splitmix_step;
  std::uint64_t z = state;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}

}  // namespace dlock::util
