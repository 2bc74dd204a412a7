// Prefixes of names that keep the kinds of locks apart.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <dlock/error.hpp>
#include <dlock/lock_kind.hpp>
#include <dlock/spi/url.hpp>

#include "util/names.hpp"

namespace dlock::common {

// "", ".rw", ".sem", ".elect"
[[nodiscard]] constexpr std::string_view kind_suffix(LockKind kind) noexcept {
  switch (kind) {
    case LockKind::lock:
      return "";
    case LockKind::read_write:
      return ".rw";
    case LockKind::semaphore:
      return ".sem";
    case LockKind::election:
      return ".elect";
  }
  return "";
}

// The prefix of a kind: "dlock:" becomes "dlock.rw:", "dlock/" becomes "dlock.rw/", "x" becomes "x.rw". An empty one
// stays empty: then all kinds are in one place, and the user keeps their names apart.
[[nodiscard]] inline std::string kind_prefix(std::string_view prefix, LockKind kind, std::string_view behind = {}) {
  const bool ends = prefix.ends_with(':') || prefix.ends_with('/');
  const std::size_t at = prefix.size() - (ends ? 1 : 0);
  const std::string_view suffix = prefix.empty() ? "" : kind_suffix(kind);
  std::string text;
  text.reserve(prefix.size() + suffix.size() + behind.size());
  text += prefix.substr(0, at);
  text += suffix;
  text += prefix.substr(at);
  text += behind;
  return text;
}

// The "prefix" of a URL, which may be empty; `usual` if the URL has none. Throws Error(invalid_argument).
[[nodiscard]] inline std::string take_prefix(Url& url, std::string usual, std::size_t longest) {
  auto prefix = url.take("prefix");
  if (!prefix) return usual;
  auto problem = prefix->empty() ? std::nullopt : util::problem_with_name(*prefix);
  if (prefix->size() > longest) problem = "longer than " + std::to_string(longest) + " bytes";
  if (problem) throw Error(errc::invalid_argument, "prefix: " + *problem);
  return *std::move(prefix);
}

}  // namespace dlock::common
