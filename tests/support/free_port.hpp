// A loopback port for a server that a test starts.
#pragma once

#include <cstdint>

namespace dlock::test {

// A port that nobody uses right now. It lies outside the range from which the system takes the ports of outgoing
// connections, so that it is still free when the server is started again later. Somebody else may take it in between:
// whoever starts a server on it tries again with another one.
[[nodiscard]] std::uint16_t free_port();

}  // namespace dlock::test
