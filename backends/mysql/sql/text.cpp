#include "backends/mysql/sql/text.hpp"

#include <optional>

namespace dlock::mysql {

namespace {

std::optional<std::string> of_all_statements(std::string_view word) {
  if (word == "now") return "UTC_TIMESTAMP(6)";
  if (word == "us") return "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))";
  if (word == "me") return "CONNECTION_ID()";
  if (word == "old") return "token <= TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) - #";
  return std::nullopt;
}

std::string hex(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    out += {digits[value >> 4], digits[value & 15]};
  }
  return out;
}

}  // namespace

std::string fill(std::string_view text, const Fillings& fillings) {
  return sql::fill(text, fillings, of_all_statements);
}

std::string quoted(std::string_view identifier) {
  std::string out = "`";
  for (const char c : identifier) out.append(c == '`' ? 2 : 1, c);
  return out + "`";
}

std::string qualified(std::string_view schema, std::string_view table) {
  return quoted(schema) + "." + quoted(table);
}

std::string user_lock(std::string_view purpose, std::string_view schema, std::string_view table,
                      std::string_view name) {
  std::string prefix = "dlock";
  for (const std::string_view part : {purpose, schema, table}) prefix.append(1, '\0').append(part);
  prefix += '\0';
  return "SHA2(CONCAT(X'" + hex(prefix) + "', " + std::string(name) + "), 256)";
}

}  // namespace dlock::mysql
