#include "backends/etcd/locks/keys.hpp"

#include <array>
#include <charconv>
#include <utility>

#include "backends/common/kinds.hpp"
#include "util/number.hpp"
#include "util/percent.hpp"

namespace dlock::etcd {

namespace {

constexpr std::string_view read_part = "read/";
constexpr std::string_view write_part = "write/";

std::string hex(std::uint64_t number) {
  std::array<char, 16> digits{};
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), number, 16);
  const std::string_view text(digits.data(), static_cast<std::size_t>(end - digits.data()));
  return std::string(digits.size() - text.size(), '0') + std::string(text);
}

std::string hex(std::int64_t lease) {
  return hex(static_cast<std::uint64_t>(lease));
}

std::string name_in(const Options& options, std::string_view component) {
  if (options.verbatim) return component.starts_with('.') ? std::string() : std::string(component);  // or dlock's own
  auto name = util::percent_decode(component);
  return name && encode_name(*name) == component ? *std::move(name) : std::string();
}

// Of two components behind the name.
bool parse_part(LockKind kind, std::string_view part, KeyParts& parts) {
  if (kind == LockKind::read_write) {
    parts.mode = part == read_part ? Mode::shared : Mode::exclusive;
    return part == read_part || part == write_part;
  }
  if (part.starts_with('0')) return false;
  parts.permits = util::parse_number<std::uint32_t>(part.substr(0, part.size() - 1)).value_or(0);
  return parts.permits != 0;
}

}  // namespace

std::string encode_name(std::string_view name) {
  std::string out;
  out.reserve(name.size());
  for (const char c : name) {
    if (c == '%') {
      out += "%25";
    } else if (c == '/') {
      out += "%2F";
    } else if (c == '.' && out.empty()) {
      out += "%2E";  // our own keys begin with one
    } else {
      out += c;
    }
  }
  return out;
}

std::string kind_prefix(const Options& options, LockKind kind) {
  return common::kind_prefix(options.prefix, kind);
}

std::string lock_prefix(const Options& options, LockKind kind, std::string_view name) {
  return common::kind_prefix(options.prefix, kind, options.verbatim ? std::string(name) : encode_name(name)) + '/';
}

Place place_of(const Options& options, const LockRequest& request) {
  Place place;
  place.lock = lock_prefix(options, request.kind, request.name);
  place.own = place.lock;
  place.before = beginning_with(place.lock);
  if (request.kind == LockKind::read_write) {
    const bool shared = request.mode == Mode::shared;
    place.own += shared ? read_part : write_part;
    if (shared) place.before = beginning_with(place.lock + std::string(write_part));
  }
  if (request.kind == LockKind::semaphore) {
    place.own += std::to_string(request.permits) + '/';
    place.before = beginning_with(place.own);
    place.capacity = request.permits;
    place.barred = {{place.lock, place.own}, {place.before.end, beginning_with(place.lock).end}};
  }
  return place;
}

std::string key_of(const Place& place, std::int64_t lease, std::uint32_t number) {
  return place.own + hex(lease) + '.' + std::to_string(number);
}

std::uint32_t key_number(std::string_view key) {
  return util::parse_number<std::uint32_t>(key.substr(key.rfind('.') + 1)).value_or(0);
}

bool is_of_lease(std::string_view key, std::int64_t lease) {
  const std::string text = hex(lease) + '.';
  return key.substr(key.rfind('/') + 1).starts_with(text);
}

std::string session_key(const Options& options, std::int64_t lease) {
  return options.prefix + ".session/" + hex(lease);
}

std::string gone_key(const Options& options, std::int64_t lease, std::uint64_t request) {
  return options.prefix + ".gone/" + hex(lease) + '/' + hex(request);
}

KeyRange gone_since(const Options& options, std::int64_t lease, std::uint64_t request) {
  return {gone_key(options, lease, request), options.prefix + ".gone/" + hex(lease) + '0'};  // behind '/'
}

std::optional<KeyParts> parse_key(const Options& options, LockKind kind, std::string_view behind_prefix) {
  KeyParts parts;
  std::size_t slash = behind_prefix.rfind('/');
  if (slash == std::string_view::npos || slash + 1 == behind_prefix.size()) return std::nullopt;
  std::string_view before = behind_prefix.substr(0, slash);
  if (kind == LockKind::read_write || kind == LockKind::semaphore) {
    const std::size_t part = before.rfind('/');
    if (part == std::string_view::npos) return std::nullopt;
    if (!parse_part(kind, behind_prefix.substr(part + 1, slash - part), parts)) return std::nullopt;
    before = before.substr(0, part);
  }
  parts.name = name_in(options, before);
  if (parts.name.empty()) return std::nullopt;
  return parts;
}

}  // namespace dlock::etcd
