// The bytes that a connection has received. libpq stores an answer until it is complete, however long it is, and does
// not say how much it has; the kernel does.
#pragma once

#include <cstdint>
#include <string>

namespace dlock::postgres {

// The longest answer is a list of 100 000 locks with long names. A server that sends more is hostile, or no PostgreSQL.
inline constexpr std::uint64_t longest_answer = std::uint64_t{96} << 20U;
// Before the login is complete.
inline constexpr std::uint64_t longest_greeting = std::uint64_t{1} << 20U;

// 0 for a Unix socket, whose server is on this machine.
[[nodiscard]] std::uint64_t received_bytes(int socket) noexcept;

// The beginning of the bytes that have arrived. They can still be read.
[[nodiscard]] std::string unread_bytes(int socket);
// The server has closed the connection, or it is broken.
[[nodiscard]] bool has_hung_up(int socket) noexcept;

}  // namespace dlock::postgres
