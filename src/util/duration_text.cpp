#include "util/duration_text.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

#include <dlock/spi/url.hpp>

namespace dlock {

namespace {

struct Unit {
  std::string_view name;
  std::chrono::nanoseconds size;
};

// The largest first.
constexpr std::array<Unit, 7> known_units = {{{"d", std::chrono::hours(24)},
                                              {"h", std::chrono::hours(1)},
                                              {"m", std::chrono::minutes(1)},
                                              {"s", std::chrono::seconds(1)},
                                              {"ms", std::chrono::milliseconds(1)},
                                              {"us", std::chrono::microseconds(1)},
                                              {"ns", std::chrono::nanoseconds(1)}}};

const Unit* find_unit(std::string_view name) noexcept {
  for (const Unit& unit : known_units) {
    if (unit.name == name) return &unit;
  }
  return nullptr;
}

}  // namespace

std::optional<Duration> parse_duration(std::string_view text) noexcept {
  if (text == "0") return Duration();
  if (text == "forever" || text == "inf") return forever;
  // from_chars takes "-1", "inf", "nan" and "1e9", none of which is a duration here.
  const std::size_t digits = text.find_first_not_of("0123456789.");
  if (digits == 0 || digits == std::string_view::npos || text.front() == '.') return std::nullopt;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + digits, number, std::chars_format::fixed);
  const Unit* unit = find_unit(text.substr(digits));
  if (error != std::errc() || end != text.data() + digits || unit == nullptr) return std::nullopt;
  const std::string_view number_text = text.substr(0, digits);
  if (number_text.find('.') == std::string_view::npos) {  // whole numbers exactly
    std::int64_t whole = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + digits, whole);
    if (parsed.ec != std::errc() || whole > std::chrono::nanoseconds::max() / unit->size) return std::nullopt;
    return Duration(whole * unit->size);
  }
  const double nanoseconds = number * static_cast<double>(unit->size.count());
  if (nanoseconds >= static_cast<double>(std::chrono::nanoseconds::max().count())) return std::nullopt;
  return Duration(std::chrono::nanoseconds(std::llround(nanoseconds)));
}

namespace util {

std::string to_text(std::chrono::nanoseconds duration) {
  if (duration == forever.value()) return "forever";
  if (duration == std::chrono::nanoseconds::zero()) return "0";
  for (const Unit& unit : known_units) {
    if (duration % unit.size == std::chrono::nanoseconds::zero()) {
      return std::to_string(duration / unit.size) + std::string(unit.name);
    }
  }
  return std::to_string(duration.count()) + "ns";
}

}  // namespace util

}  // namespace dlock
