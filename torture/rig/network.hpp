// Plain TCP connections to a service's hosts, for what no client library does.
#pragma once

#include <chrono>
#include <string>

#include "torture/rig/url_text.hpp"
#include "util/unique_fd.hpp"

namespace dlock::rig {

// A connected, blocking socket to the first address of the host that answers. Throws std::runtime_error when none has
// within the limit, which does not bound the look-up of the name.
[[nodiscard]] util::UniqueFd connect_to(const HostPort& host, std::chrono::milliseconds limit);

// The address of the other side, without port: "127.0.0.1", "::1".
[[nodiscard]] std::string peer_address(int fd);

// Sends the text, and returns all that comes until the other side closes the connection. Throws std::runtime_error when
// it has not within the limit.
[[nodiscard]] std::string ask(const HostPort& host, const std::string& text, std::chrono::milliseconds limit);

}  // namespace dlock::rig
