// The hosts that a URL names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dlock/spi/url.hpp>

namespace dlock::common {

struct Host {
  std::string name;  // an IPv6 address is without its brackets; or a directory with a socket
  std::uint16_t port = 0;

  [[nodiscard]] bool is_socket_directory() const noexcept { return name.starts_with('/'); }
  // By its name; false where only the resolver could tell.
  [[nodiscard]] bool is_this_machine() const noexcept;
  // "name:port", an IPv6 address in brackets.
  [[nodiscard]] std::string to_string() const;

  friend bool operator==(const Host&, const Host&) = default;
};

// Throws Error(invalid_argument) if that cannot be a host's name.
void check_host_name(const std::string& name);
[[nodiscard]] bool is_host_name(const std::string& name);
// The hosts of the URL, in its order; localhost if it names none. Throws Error(invalid_argument) if there are more than
// `most`, and what check throws for a name.
[[nodiscard]] std::vector<Host> hosts_of(const Url& url, std::uint16_t default_port, std::size_t most,
                                         void (*check)(const std::string& name) = check_host_name);

// A part of the URL that may be before or after the '?', but not twice. in_front: the part before it. Throws
// Error(invalid_argument), also for an empty parameter.
[[nodiscard]] std::optional<std::string> take_either(Url& url, std::string_view key,
                                                     std::optional<std::string> in_front);

// "a:1,b:2", for messages.
[[nodiscard]] std::string to_string(const std::vector<Host>& hosts);

}  // namespace dlock::common
