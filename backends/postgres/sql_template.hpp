// Filling in the parts of a statement that cannot be parameters. No I/O.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlock::postgres {

// What stands for a {word}.
using Fillings = std::vector<std::pair<std::string_view, std::string>>;

// The text with every {word} replaced, and every run of blanks and line ends outside of them made one blank. What is
// filled in is not looked at again, whatever it contains. A word without a filling, and a brace without its other, are
// mistakes in the program and throw std::logic_error.
[[nodiscard]] std::string fill(std::string_view text, const Fillings& fillings);

// {now}: the server's clock. {us}: its microseconds since 1970. {ms}: one millisecond, to be multiplied. {async}: for
// the end of a list of columns that is evaluated where something was written: nothing, or what makes this transaction
// not wait for the disk. Then each of the tables' names, qualified.
[[nodiscard]] Fillings common_fillings(std::string_view schema, bool waits_for_disk);

}  // namespace dlock::postgres
