#include "backends/file/file_name.hpp"

#include <algorithm>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <dlock/token.hpp>

#include "util/percent.hpp"

namespace dlock::file {

namespace {

constexpr std::string_view lock_suffix = ".lock";
constexpr std::size_t max_stem = 200;
constexpr std::size_t cut_stem = 160;
constexpr std::size_t hash_digits = 32;
constexpr std::size_t escape_mark = 3;
constexpr char cut_mark = '~';

bool plain_in_file_name(unsigned char c) noexcept {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
}

std::string encode_stem(std::string_view lock_name) {
  std::string stem = util::percent_encode(lock_name, plain_in_file_name);
  if (stem.starts_with('.')) stem.replace(0, 1, "%2E");
  return stem;
}

// Empty: not a name of ours.
std::string_view stem_of(std::string_view file_name) noexcept {
  return file_name.ends_with(lock_suffix) ? file_name.substr(0, file_name.size() - lock_suffix.size()) : "";
}

}  // namespace

std::string encode_file_name(std::string_view lock_name) {
  std::string stem = encode_stem(lock_name);
  if (stem.size() > max_stem) {
    const std::size_t escape = stem.rfind('%', cut_stem - 1);
    const bool splits = escape != std::string::npos && escape + escape_mark > cut_stem;
    stem.resize(splits ? escape : cut_stem);
    stem += cut_mark + hash_of(lock_name);
  }
  return stem.append(lock_suffix);
}

std::optional<std::string> decode_file_name(std::string_view file_name) {
  const std::string_view stem = stem_of(file_name);
  if (stem.empty() || stem.size() > max_stem) return std::nullopt;
  auto name = util::percent_decode(stem);
  // One name has one spelling: what is escaped without need, or in lower case, is a stranger's file.
  if (!name || encode_stem(*name) != stem) return std::nullopt;
  return name;
}

bool is_shortened(std::string_view file_name) noexcept {
  const std::string_view stem = stem_of(file_name);
  const std::size_t cut = stem.size() - std::min(stem.size(), hash_digits + 1);
  return cut <= cut_stem && cut > cut_stem - escape_mark && stem[cut] == cut_mark &&
         std::all_of(stem.begin() + static_cast<std::ptrdiff_t>(cut) + 1, stem.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

std::string hash_of(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return OwnerId(hash.high64, hash.low64).to_string();
}

}  // namespace dlock::file
