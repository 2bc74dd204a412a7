// The bytes that a connection has received. Client libraries store an answer until it is complete, however long it is,
// and do not say how much they have; the kernel does.
#pragma once

#include <cstdint>

namespace dlock::common {

// The longest answer of a database is a list of 100 000 locks with long names. A server that sends more is hostile.
inline constexpr std::uint64_t longest_answer = std::uint64_t{96} << 20U;
// Before the login is complete.
inline constexpr std::uint64_t longest_greeting = std::uint64_t{1} << 20U;

// 0 for a Unix socket, whose server is on this machine.
[[nodiscard]] std::uint64_t received_bytes(int socket) noexcept;

}  // namespace dlock::common
