// Names of schemas, tables and channels inside SQL. All other input is a bind parameter. No I/O.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <dlock/lock_kind.hpp>

namespace dlock::postgres {

// NAMEDATALEN - 1. The server would cut off the rest, and two names could become one.
inline constexpr std::size_t max_identifier_bytes = 63;

// In words; nullopt for a good identifier: UTF-8 of 1..63 bytes without control characters.
[[nodiscard]] std::optional<std::string> problem_with_identifier(std::string_view identifier);

// In double quotes, with those inside it doubled, as PQescapeIdentifier does it. Throws Error(invalid_argument) for a
// bad identifier.
[[nodiscard]] std::string quote_identifier(std::string_view identifier);

// schema.table, both quoted.
[[nodiscard]] std::string qualified(std::string_view schema, std::string_view table);

// The channel for releases of locks of that kind in that schema. An identifier for LISTEN, a plain text for pg_notify.
[[nodiscard]] std::string channel_of(std::string_view schema, LockKind kind = LockKind::lock);

}  // namespace dlock::postgres
