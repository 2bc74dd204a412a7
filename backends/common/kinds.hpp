// Where the kinds of locks are kept apart by what comes in front of their names.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <dlock/error.hpp>
#include <dlock/space.hpp>
#include <dlock/url.hpp>

#include "util/names.hpp"

namespace dlock::common {

// "", ".rw", ".sem", ".elect"
[[nodiscard]] constexpr std::string_view kind_suffix(Space space) noexcept {
  switch (space) {
    case Space::lock:
      return "";
    case Space::read_write:
      return ".rw";
    case Space::semaphore:
      return ".sem";
    case Space::election:
      return ".elect";
  }
  return "";
}

// The prefix of a kind: "dlock:" becomes "dlock.rw:", "dlock/" becomes "dlock.rw/", "x" becomes "x.rw". An empty one
// stays empty: then all kinds are in one place, and the user keeps their names apart.
[[nodiscard]] inline std::string kind_prefix(std::string_view prefix, Space space, std::string_view behind = {}) {
  const bool ends = prefix.ends_with(':') || prefix.ends_with('/');
  const std::size_t at = prefix.size() - (ends ? 1 : 0);
  const std::string_view kind = prefix.empty() ? "" : kind_suffix(space);
  std::string text;
  text.reserve(prefix.size() + kind.size() + behind.size());
  text += prefix.substr(0, at);
  text += kind;
  text += prefix.substr(at);
  text += behind;
  return text;
}

// The "prefix" of a URL, which may be empty; the usual one where it has none. Throws Error(invalid_argument).
[[nodiscard]] inline std::string take_prefix(Url& url, std::string usual, std::size_t longest) {
  auto prefix = url.take("prefix");
  if (!prefix) return usual;
  auto problem = prefix->empty() ? std::nullopt : util::problem_with_name(*prefix);
  if (prefix->size() > longest) problem = "longer than " + std::to_string(longest) + " bytes";
  if (problem) throw Error(errc::invalid_argument, "prefix: " + *problem);
  return *std::move(prefix);
}

}  // namespace dlock::common
