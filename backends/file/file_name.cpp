#include "backends/file/file_name.hpp"

#include <algorithm>

#include "backends/file/hash.hpp"
#include "util/percent.hpp"

namespace dlock::file {

namespace {

constexpr std::size_t max_stem = 200;
constexpr std::size_t cut_stem = 160;
constexpr std::size_t hash_digits = 32;
constexpr std::size_t escape_mark = 3;
constexpr char cut_mark = '~';

bool plain_in_file_name(unsigned char c) noexcept {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
}

std::string encode_stem(std::string_view lock_name) {
  std::string stem = percent_encode(lock_name, plain_in_file_name);
  if (stem.starts_with('.')) stem.replace(0, 1, "%2E");
  return stem;
}

// The last place at or before `limit` that does not split an escape.
std::size_t cut_position(std::string_view stem, std::size_t limit) noexcept {
  const std::size_t escape = stem.rfind('%', limit - 1);
  return escape != std::string_view::npos && escape + escape_mark > limit ? escape : limit;
}

std::optional<std::string_view> stem_of(std::string_view file_name) noexcept {
  if (!file_name.ends_with(lock_suffix)) return std::nullopt;
  file_name.remove_suffix(lock_suffix.size());
  if (file_name.empty()) return std::nullopt;
  return file_name;
}

}  // namespace

std::string percent_encode(std::string_view text, bool (*plain)(unsigned char)) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (plain(byte)) {
      out.push_back(c);
    } else {
      out.push_back('%');
      out.push_back(digits[byte >> 4]);
      out.push_back(digits[byte & 0xf]);
    }
  }
  return out;
}

std::string encode_file_name(std::string_view lock_name) {
  std::string stem = encode_stem(lock_name);
  if (stem.size() > max_stem) {
    stem.resize(cut_position(stem, cut_stem));
    stem += cut_mark;
    stem += to_hex(hash128(lock_name));
  }
  return stem.append(lock_suffix);
}

std::optional<std::string> decode_file_name(std::string_view file_name) {
  const auto stem = stem_of(file_name);
  if (!stem || stem->size() > max_stem) return std::nullopt;
  auto name = util::percent_decode(*stem);
  // One name has one spelling: what is escaped without need, or in lower case, is a stranger's file.
  if (!name || encode_stem(*name) != *stem) return std::nullopt;
  return name;
}

bool is_shortened(std::string_view file_name) noexcept {
  const auto stem = stem_of(file_name);
  if (!stem || stem->size() < hash_digits + 1) return false;
  const std::string_view tail = stem->substr(stem->size() - hash_digits - 1);
  return tail.front() == cut_mark && stem->size() - tail.size() <= cut_stem &&
         stem->size() - tail.size() > cut_stem - escape_mark && std::all_of(tail.begin() + 1, tail.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

}  // namespace dlock::file
