// Filling in the parts of a statement that cannot be parameters. No I/O.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/postgres/options.hpp"

namespace dlock::postgres {

// What stands for a {word}.
using Fillings = std::vector<std::pair<std::string_view, std::string>>;

// The text with every {word} replaced, and every run of blanks and line ends outside of them made one blank. What is
// filled in is not looked at again, whatever it contains. A word without a filling, and a brace without its other, are
// mistakes in the program and throw std::logic_error.
//
// Whatever the server looks up along the search_path is to be written with its schema, or something of the same name
// that another role has created may be run instead. For that these words need no filling: {=}, {<=}, {+}, ... are the
// operators of pg_catalog, {text}, {int8}, ... its types, {C} its collation. Such operators all bind alike, tighter
// than AND, OR, NOT and IS and looser than ::, so where there are several it takes parentheses.
[[nodiscard]] std::string fill(std::string_view text, const Fillings& fillings);

// {now}: the server's clock. {us}: its microseconds since 1970. {old}: behind a token, that it is as old as $2 says,
// in microseconds. {ms}: one millisecond, to be multiplied. {brief}: true, and from then on this transaction waits
// for no other one for long: 55P03. {commit}: for the end of a list of columns that is evaluated where something was
// written: what makes this transaction wait for the disk or not, as the durability says and whatever the server's
// default is; nothing where there is none, because that is the business of a caller whose transaction it is. Then
// each of the tables' names, qualified.
[[nodiscard]] Fillings common_fillings(std::string_view schema, std::optional<Durability> durability);

}  // namespace dlock::postgres
