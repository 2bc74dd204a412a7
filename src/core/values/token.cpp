#include <dlock/token.hpp>

#include <charconv>
#include <cstddef>

namespace dlock {

std::array<char, 32> OwnerId::digits() const noexcept {
  constexpr std::string_view hexadecimal = "0123456789abcdef";
  std::array<char, 32> out{};
  std::size_t at = 0;
  for (const std::uint64_t half : {high_, low_}) {
    for (int shift = 60; shift >= 0; shift -= 4) out[at++] = hexadecimal[(half >> static_cast<unsigned>(shift)) & 0xfU];
  }
  return out;
}

std::string OwnerId::to_string() const {
  const auto text = digits();
  return {text.begin(), text.end()};
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
