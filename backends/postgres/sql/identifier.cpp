#include "backends/postgres/sql/identifier.hpp"

#include <array>

#include <dlock/error.hpp>

#include "backends/postgres/sql/digest.hpp"
#include "util/names.hpp"

namespace dlock::postgres {

std::optional<std::string> problem_with_identifier(std::string_view identifier) {
  if (identifier.size() > max_identifier_bytes) {
    return util::quoted(identifier) + " is " + std::to_string(identifier.size()) +
           " bytes long; PostgreSQL keeps only " + std::to_string(max_identifier_bytes);
  }
  // The rules for names of locks are the same except for the length.
  constexpr std::string_view subject = "lock name ";
  auto problem = util::problem_with_name(identifier);
  if (problem && problem->starts_with(subject)) problem->erase(0, subject.size());
  return problem;
}

std::string quote_identifier(std::string_view identifier) {
  if (const auto problem = problem_with_identifier(identifier)) {
    throw Error(errc::invalid_argument, "identifier: " + *problem);
  }
  std::string out = "\"";
  for (const char c : identifier) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

std::string qualified(std::string_view schema, std::string_view table) {
  return quote_identifier(schema) + "." + quote_identifier(table);
}

std::string channel_of(std::string_view schema, LockKind kind) {
  constexpr std::array<std::string_view, 4> ends = {"", ".rw", ".sem", ".elect"};
  std::string out = "dlock" + std::string(ends.at(static_cast<std::size_t>(kind)));
  if (out.size() + 1 + schema.size() <= max_identifier_bytes) return out + ":" + std::string(schema);
  // '#' instead of ':', so that it is not the channel of a schema with that name.
  constexpr std::string_view digits = "0123456789abcdef";
  out += '#';
  const auto digest = sha256(schema);
  for (std::size_t i = 0; i < 16; ++i) {
    out += digits[digest[i] >> 4U];
    out += digits[digest[i] & 0xfU];
  }
  return out;
}

}  // namespace dlock::postgres
