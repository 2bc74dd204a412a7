// The state of a connection that the kernel knows and libpq does not report.
#pragma once

#include <string>

namespace dlock::postgres {

// The beginning of the bytes that have arrived. They can still be read.
[[nodiscard]] std::string unread_bytes(int socket);
// The server has closed the connection, or it is broken.
[[nodiscard]] bool has_hung_up(int socket) noexcept;

}  // namespace dlock::postgres
