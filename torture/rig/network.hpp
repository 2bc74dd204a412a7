// Plain TCP connections to a service's hosts, for what no client library does.
#pragma once

#include <chrono>
#include <string>

#include "torture/rig/url_text.hpp"
#include "util/unique_fd.hpp"

namespace dlock::rig {

// A connected, blocking socket to the first address of the host that answers. Throws std::runtime_error if none has
// within the limit, which does not include resolving the name.
[[nodiscard]] util::UniqueFd connect_to(const HostPort& host, std::chrono::milliseconds limit);

// The peer's address, without port: "127.0.0.1", "::1".
[[nodiscard]] std::string peer_address(int fd);

// Sends the text, and returns all data until the peer closes the connection. Throws std::runtime_error if it has not
// within the limit.
[[nodiscard]] std::string ask(const HostPort& host, const std::string& text, std::chrono::milliseconds limit);

}  // namespace dlock::rig
