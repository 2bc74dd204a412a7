// How much a connection has brought so far. libpq keeps what the server sends until an answer is complete, however long
// that takes, and says nothing about it; the kernel does.
#pragma once

#include <cstdint>
#include <string>

namespace dlock::postgres {

// The longest answer there is: a list of 100 000 locks with long names. A server that sends more without ending an
// answer means harm, or is none.
inline constexpr std::uint64_t longest_answer = std::uint64_t{96} << 20U;
// The same before it has let us in.
inline constexpr std::uint64_t longest_greeting = std::uint64_t{1} << 20U;

// Bytes that have come over a TCP connection; 0 for any other socket, at whose other end there is only this machine.
[[nodiscard]] std::uint64_t received_bytes(int socket) noexcept;

// The received bytes that were not read yet, or the first of them. They can still be read.
[[nodiscard]] std::string unread_bytes(int socket);
// The other end has closed its side of the connection, or it is broken.
[[nodiscard]] bool has_hung_up(int socket) noexcept;

}  // namespace dlock::postgres
