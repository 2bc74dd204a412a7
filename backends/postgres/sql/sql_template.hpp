// Filling in the parts of a statement that cannot be parameters. No I/O.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "backends/common/sql/text.hpp"
#include "backends/postgres/options.hpp"

namespace dlock::postgres {

// As sql::fill().
//
// Everything that the server searches for along the search_path has its schema in front, or a function of that name
// that another role has created might run. Some words need no filling for that: {=}, {<=}, {+}, ... are operators of
// pg_catalog, {text}, {int8}, ... its types, {C} its collation. Such operators all have one precedence, above AND, OR,
// NOT and IS and below ::, so several of them need parentheses.
[[nodiscard]] std::string fill(std::string_view text, const Fillings& fillings);

// {now}: the server's clock. {us}: its microseconds since 1970. {old}: condition behind a token: it is at least $2
// microseconds old. {ms}: one millisecond. {brief}: true; from then on this transaction waits only briefly for another
// one: 55P03. {commit}: the end of a list of columns that the server evaluates if it writes a row: makes this
// transaction wait for the disk or not, as the durability says and whatever the server's default is; empty without a
// durability, in the caller's transaction. And the name of each table, qualified.
[[nodiscard]] Fillings common_fillings(std::string_view schema, std::optional<Durability> durability);

}  // namespace dlock::postgres
