#include "util/names.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

#include <dlock/info.hpp>

namespace dlock::util {

namespace {

constexpr std::size_t max_name_bytes = 512;
constexpr std::size_t max_label_bytes = 64;
constexpr std::size_t max_value_bytes = 1024;
constexpr std::size_t max_quoted_bytes = 80;

struct Decoded {
  std::uint32_t code_point = 0;
  std::size_t length = 0;  // 0: malformed
};

// One code point by RFC 3629's table: shortest form only, no surrogates, nothing above U+10FFFF.
Decoded decode_utf8(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  constexpr std::array<std::uint32_t, 5> smallest = {0, 0, 0x80, 0x800, 0x10000};
  constexpr std::array<std::uint8_t, 5> lead_mask = {0, 0, 0x1f, 0x0f, 0x07};
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return {};
  std::uint32_t code_point = lead & lead_mask[length];
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80U) return {};
    code_point = (code_point << 6U) | (byte(i) & 0x3fU);
  }
  const bool surrogate = code_point >= 0xd800 && code_point <= 0xdfff;
  if (code_point < smallest[length] || code_point > 0x10ffff || surrogate) return {};
  return {code_point, length};
}

bool is_control(std::uint32_t code_point) noexcept {
  return code_point < 0x20 || (code_point >= 0x7f && code_point <= 0x9f);
}

// Characters that move the cursor or reorder the text around them: line and paragraph separators, and the controls of
// bidirectional text (Unicode Standard Annex #9, section 2).
bool is_layout(std::uint32_t code_point) noexcept {
  return code_point == 0x61c || code_point == 0x200e || code_point == 0x200f ||
         (code_point >= 0x2028 && code_point <= 0x202e) || (code_point >= 0x2066 && code_point <= 0x2069);
}

// Cuts one code point, or one byte that belongs to none, off the text and returns it as people may see it.
std::string take_printable(std::string_view& text) {
  constexpr std::string_view digits = "0123456789abcdef";
  const Decoded decoded = decode_utf8(text);
  const std::string_view bytes = text.substr(0, decoded.length == 0 ? 1 : decoded.length);
  text.remove_prefix(bytes.size());
  if (decoded.length != 0 && !is_control(decoded.code_point) && !is_layout(decoded.code_point)) {
    return std::string(bytes);
  }
  std::string out;
  for (const char c : bytes) {
    const auto byte = static_cast<std::uint8_t>(c);
    out += "\\x";
    out += digits[byte >> 4U];
    out += digits[byte & 0xfU];
  }
  return out;
}

std::optional<std::string> problem_with_text(std::string_view text, std::string_view what, std::size_t max_bytes) {
  const auto problem = [&](std::string_view why) { return std::string(what) + " " + std::string(why); };
  if (text.size() > max_bytes) {
    return problem("is " + std::to_string(text.size()) + " bytes long; at most " + std::to_string(max_bytes) +
                   " are allowed");
  }
  for (std::size_t at = 0; at < text.size();) {
    const Decoded decoded = decode_utf8(text.substr(at));
    if (decoded.length == 0) {
      return problem(quoted(text) + " is not valid UTF-8 at byte " + std::to_string(at));
    }
    if (is_control(decoded.code_point)) {
      return problem(quoted(text) + " has a control character at byte " + std::to_string(at));
    }
    at += decoded.length;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> problem_with_name(std::string_view name) {
  if (name.empty()) return "lock name is empty";
  return problem_with_text(name, "lock name", max_name_bytes);
}

std::optional<std::string> problem_with_label(std::string_view label) {
  if (label.empty()) return "label is empty";
  return problem_with_text(label, "label", max_label_bytes);
}

std::optional<std::string> problem_with_value(std::string_view value) {
  return problem_with_text(value, "value", max_value_bytes);
}

bool is_scheme(std::string_view text) noexcept {
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz";
  constexpr std::string_view allowed = "abcdefghijklmnopqrstuvwxyz0123456789+-.";
  return !text.empty() && letters.find(text.front()) != std::string_view::npos &&
         text.find_first_not_of(allowed) == std::string_view::npos;
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const std::string next = take_printable(text);
    if (out.size() + next.size() > max_quoted_bytes) return out + "...\"";
    out += next;
  }
  return out + "\"";
}

}  // namespace dlock::util

namespace dlock {

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) out += util::take_printable(text);
  return out;
}

}  // namespace dlock
