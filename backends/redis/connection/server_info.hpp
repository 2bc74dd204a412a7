// Parses what a server reports about itself: INFO, CONFIG GET, and the like. No I/O.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <dlock/spi/result.hpp>

#include "backends/redis/connection/reply.hpp"

namespace dlock::redis {

// The value of a "key:value" line; nullopt if there is none.
[[nodiscard]] std::optional<std::string_view> info_field(std::string_view info, std::string_view key);
[[nodiscard]] std::optional<std::uint64_t> info_number(std::string_view info, std::string_view key);

// The value after that name in a reply of alternating names and values, such as SENTINEL MASTER and CONFIG GET; empty,
// nullopt: there is none, or it is no number.
[[nodiscard]] std::string_view field_in(const Reply& reply, std::string_view name);
[[nodiscard]] std::optional<std::uint32_t> number_in(const Reply& reply, std::string_view name);

// A non-negative number in reply to a command that counts.
[[nodiscard]] Result<std::uint64_t> read_number(const Reply& reply);

// The role that a server names in its reply to ROLE or INFO: "master", "slave", "active-replica" (KeyDB), "sentinel".
// nullopt: it names none.
[[nodiscard]] std::optional<std::string_view> role_in(const Reply& reply);

// The warning if a server with this memory section may evict locks.
[[nodiscard]] std::optional<std::string> eviction_danger(std::string_view info);

}  // namespace dlock::redis
