#include <dlock/token.hpp>

#include <charconv>

namespace dlock {

namespace {

void append_hex(std::string& out, std::uint64_t value) {
  constexpr std::string_view digits = "0123456789abcdef";
  for (int shift = 60; shift >= 0; shift -= 4) out += digits[(value >> static_cast<unsigned>(shift)) & 0xfU];
}

}  // namespace

std::string OwnerId::to_string() const {
  std::string out;
  out.reserve(32);
  append_hex(out, high_);
  append_hex(out, low_);
  return out;
}

std::optional<OwnerId> OwnerId::parse(std::string_view text) noexcept {
  if (text.size() != 32 || text.find_first_not_of("0123456789abcdef") != std::string_view::npos) return std::nullopt;
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  (void)std::from_chars(text.data(), text.data() + 16, high, 16);  // checked above
  (void)std::from_chars(text.data() + 16, text.data() + 32, low, 16);
  return OwnerId(high, low);
}

}  // namespace dlock
