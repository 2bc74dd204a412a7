#include "backends/file/location.hpp"

#include <charconv>
#include <system_error>

#include <dlock/error.hpp>

namespace dlock::file {

namespace {

constexpr mode_t all_mode_bits = 07777;
constexpr mode_t owner_bits = 0700;

mode_t parse_mode(const std::string& text) {
  unsigned mode = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, mode, 8);
  if (error != std::errc() || stop != end || mode > all_mode_bits) {
    throw Error(errc::invalid_argument, "mode: \"" + text + "\" is not an octal file mode such as 0700");
  }
  if ((mode & owner_bits) != owner_bits) {
    throw Error(errc::invalid_argument, "mode: \"" + text + "\" would keep the owner out of the directory; use 07xx");
  }
  return static_cast<mode_t>(mode);
}

}  // namespace

Location parse_location(Url url) {
  if (url.user() || url.password()) throw Error(errc::invalid_argument, "a file:// URL has no user or password");
  for (const auto& host : url.hosts()) {
    if ((!host.name.empty() && host.name != "localhost") || host.port) {
      throw Error(errc::invalid_argument,
                  "host \"" + host.name + "\": a file:// URL has no host; write file:///path with three slashes");
    }
  }
  if (url.hosts().size() > 1) throw Error(errc::invalid_argument, "host: a file:// URL has no host");
  Location location;
  location.path = url.path();
  if (!location.path.starts_with('/')) {
    throw Error(errc::invalid_argument, "path: a file:// URL names an absolute path, as in file:///run/lock/myapp");
  }
  if (const auto mode = url.take("mode")) location.mode = parse_mode(*mode);
  url.require_no_parameters();
  return location;
}

}  // namespace dlock::file
