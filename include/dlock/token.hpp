// Fencing tokens and owner ids.
//
//   db.exec("update t set ... , fence = $1 where id = $2 and fence <= $1", lease.token().value(), id);
//
// Plain values: cheap to copy, usable from any thread.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace dlock {

// A number that grows with every lease of a name. Pass it to the protected resource, and let the resource refuse tokens
// older than the newest it has seen. Then even a holder that was paused past its lease does no harm (M. Kleppmann, "How
// to do distributed locking", 2016). Always below 2^63, so it fits a signed bigint.
class FencingToken {
 public:
  constexpr FencingToken() noexcept = default;
  constexpr explicit FencingToken(std::uint64_t value) noexcept : value_(value) {}

  [[nodiscard]] constexpr std::uint64_t value() const noexcept { return value_; }
  constexpr operator std::uint64_t() const noexcept { return value_; }  // NOLINT(google-explicit-constructor)

  friend constexpr auto operator<=>(FencingToken, FencingToken) noexcept = default;

 private:
  std::uint64_t value_ = 0;
};

// The owner of a lock: 128 random bits, new for every acquire, so that a late request of an old lease can never touch a
// newer one. For people there is LockInfo::holder.
class OwnerId {
 public:
  constexpr OwnerId() noexcept = default;
  constexpr OwnerId(std::uint64_t high, std::uint64_t low) noexcept : high_(high), low_(low) {}

  // 32 lower-case hexadecimal digits.
  [[nodiscard]] std::string to_string() const;
  // The same without a heap allocation.
  [[nodiscard]] std::array<char, 32> digits() const noexcept;
  // The inverse; nullopt for anything that to_string() does not print.
  [[nodiscard]] static std::optional<OwnerId> parse(std::string_view text) noexcept;

  [[nodiscard]] constexpr std::uint64_t high() const noexcept { return high_; }
  [[nodiscard]] constexpr std::uint64_t low() const noexcept { return low_; }

  friend constexpr auto operator<=>(const OwnerId&, const OwnerId&) noexcept = default;

 private:
  std::uint64_t high_ = 0;
  std::uint64_t low_ = 0;
};

}  // namespace dlock

template <>
struct std::hash<dlock::OwnerId> {
  std::size_t operator()(const dlock::OwnerId& id) const noexcept {
    return static_cast<std::size_t>(id.high() ^ id.low());  // the bits are random already
  }
};
