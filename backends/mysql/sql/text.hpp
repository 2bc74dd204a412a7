// The parts of SQL texts that all strategies share. No I/O.
//
// In a statement, ? is a parameter that is a text, and # one that is a whole number of 64 bits; the connection writes
// both into the text. These characters and {} have no other use in a statement.
#pragma once

#include <string>
#include <string_view>

#include "backends/common/sql/text.hpp"

namespace dlock::mysql {

using sql::Fillings;
using sql::table_of;

// As sql::fill(), and fills in:
//   {now}  the time of the server when the statement began, UTC. If the statement then waits for a row, the time is
//          older than the change: a lease is not taken too early for that reason.
//   {us}   its microseconds since 1970
//   {me}   the number of this session
//   {old}  condition: the last token is at least # microseconds old
[[nodiscard]] std::string fill(std::string_view text, const Fillings& fillings = {});

// `name`, with backticks doubled.
[[nodiscard]] std::string quoted(std::string_view identifier);
// `schema`.`table`
[[nodiscard]] std::string qualified(std::string_view schema, std::string_view table);
// An expression: the name of a lock for GET_LOCK(), 64 lower-case hexadecimal digits. The server's own names are valid
// in all of its databases, up to 64 bytes long on MySQL, and not case-sensitive there. name: an expression, of bytes.
[[nodiscard]] std::string user_lock(std::string_view purpose, std::string_view schema, std::string_view table,
                                    std::string_view name);

}  // namespace dlock::mysql
