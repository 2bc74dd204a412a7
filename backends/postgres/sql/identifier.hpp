// Names of schemas, tables and channels inside SQL. Everything else that comes from outside travels as a bind
// parameter. No I/O.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <dlock/lock_kind.hpp>

namespace dlock::postgres {

// NAMEDATALEN - 1. The server cuts off what is longer, and two names would become one.
inline constexpr std::size_t max_identifier_bytes = 63;

// What is wrong with an identifier, in words; nullopt for a good one: UTF-8 of 1..63 bytes without control characters.
[[nodiscard]] std::optional<std::string> problem_with_identifier(std::string_view identifier);

// In double quotes, those inside it doubled, as PQescapeIdentifier does it. The identifier must be a good one: throws
// Error(invalid_argument) for any other.
[[nodiscard]] std::string quote_identifier(std::string_view identifier);

// schema.table, both quoted.
[[nodiscard]] std::string qualified(std::string_view schema, std::string_view table);

// The channel that releases of locks of that kind in that schema are told on. An identifier for LISTEN, a plain text
// for pg_notify.
[[nodiscard]] std::string channel_of(std::string_view schema, LockKind kind = LockKind::lock);

}  // namespace dlock::postgres
