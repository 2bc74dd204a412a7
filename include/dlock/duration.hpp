// Durations and time points that saturate instead of wrapping.
//
//   dlock::Duration wait = std::chrono::hours::max();   // becomes dlock::forever, not a negative number
//
// Everything here is constexpr, never blocks, never throws and may be used from any thread.
#pragma once

#include <chrono>
#include <cmath>
#include <compare>
#include <cstdint>
#include <limits>
#include <ratio>
#include <type_traits>

namespace dlock {

namespace detail {

template <class Rep, class Period>
constexpr std::chrono::nanoseconds saturate_to_nanoseconds(std::chrono::duration<Rep, Period> d) noexcept {
  using std::chrono::nanoseconds;
  if constexpr (std::is_floating_point_v<Rep>) {
    const auto ns = std::chrono::duration<long double, std::nano>(d).count();
    if (ns != ns) return nanoseconds::min();  // not a number: validation reports it as negative
    if (ns >= static_cast<long double>(nanoseconds::max().count())) return nanoseconds::max();
    if (ns <= static_cast<long double>(nanoseconds::min().count())) return nanoseconds::min();
    return nanoseconds(static_cast<nanoseconds::rep>(ns));
  } else {
    if constexpr (std::is_unsigned_v<Rep> && sizeof(Rep) >= sizeof(std::int64_t)) {
      if (d.count() > static_cast<Rep>(std::numeric_limits<std::int64_t>::max())) return nanoseconds::max();
    }
    // count * num / den, whole nanoseconds and the rest apart: a period need not divide a nanosecond (1/60 s does not).
    using InNanoseconds = std::ratio_divide<Period, std::nano>;
    const auto count = static_cast<std::int64_t>(d.count());
    const std::int64_t whole = count / InNanoseconds::den;
    const std::int64_t rest = count % InNanoseconds::den * InNanoseconds::num / InNanoseconds::den;
    if (whole > nanoseconds::max().count() / InNanoseconds::num) return nanoseconds::max();
    if (whole < nanoseconds::min().count() / InNanoseconds::num) return nanoseconds::min();
    const std::int64_t sum = whole * InNanoseconds::num;
    if (rest > 0 && sum > nanoseconds::max().count() - rest) return nanoseconds::max();
    if (rest < 0 && sum < nanoseconds::min().count() - rest) return nanoseconds::min();
    return nanoseconds(sum + rest);
  }
}

}  // namespace detail

// The type of every duration parameter and option: any std::chrono::duration converts to it, and a value beyond the
// range of nanoseconds becomes the nearest one that fits. A floating-point NaN becomes the most negative value, which
// every validation refuses.
class Duration {
 public:
  constexpr Duration() noexcept = default;

  template <class Rep, class Period>
  constexpr Duration(std::chrono::duration<Rep, Period> d) noexcept  // NOLINT(google-explicit-constructor): by design
      : value_(detail::saturate_to_nanoseconds(d)) {}

  [[nodiscard]] constexpr std::chrono::nanoseconds value() const noexcept { return value_; }

  friend constexpr auto operator<=>(Duration, Duration) noexcept = default;

 private:
  std::chrono::nanoseconds value_{0};
};

// No limit: an acquire that waits `forever` ends when it is granted, is cancelled, or fails.
inline constexpr Duration forever{std::chrono::nanoseconds::max()};

// t + d, or the last (first) representable time point if the sum would overflow.
template <class Clock>
constexpr std::chrono::time_point<Clock, std::chrono::nanoseconds> saturating_add(
    std::chrono::time_point<Clock, std::chrono::nanoseconds> t, std::chrono::nanoseconds d) noexcept {
  using Point = std::chrono::time_point<Clock, std::chrono::nanoseconds>;
  if (d.count() >= 0) {
    return t > Point::max() - d ? Point::max() : t + d;
  }
  return t < Point::min() - d ? Point::min() : t + d;
}

namespace detail {

// How long it is until a deadline; nothing if it has passed, forever if that does not fit. Deadlines in coarse units
// may lie far beyond what nanoseconds can count.
template <class Clock, class AnyDuration>
constexpr Duration time_left(std::chrono::time_point<Clock, AnyDuration> deadline,
                             typename Clock::time_point now) noexcept {
  using std::chrono::nanoseconds;
  const nanoseconds end = Duration(deadline.time_since_epoch()).value();
  const nanoseconds start = Duration(now.time_since_epoch()).value();
  if (end <= start) return {};
  if (end == nanoseconds::max()) return forever;
  if (start < nanoseconds::zero() && end > nanoseconds::max() + start) return forever;
  return end - start;
}

}  // namespace detail

}  // namespace dlock
