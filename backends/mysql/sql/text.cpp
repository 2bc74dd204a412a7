#include "backends/mysql/sql/text.hpp"

#include <array>
#include <stdexcept>

namespace dlock::mysql {

namespace {

const Fillings& common_fillings() {
  static const Fillings fillings = {
      {"now", "UTC_TIMESTAMP(6)"},
      {"us", "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"},
      {"me", "CONNECTION_ID()"},
      {"old", "token <= TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) - #"},
  };
  return fillings;
}

const std::string& filling_of(std::string_view word, const Fillings& fillings) {
  for (const Fillings* some : {&fillings, &common_fillings()}) {
    for (const auto& [name, text] : *some) {
      if (name == word) return text;
    }
  }
  throw std::logic_error("no filling for {" + std::string(word) + "}");
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
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '{') {
      const std::size_t end = text.find('}', at);
      out += filling_of(text.substr(at + 1, end - at - 1), fillings);
      at = end;
    } else if (text[at] != ' ' && text[at] != '\n') {
      out += text[at];
    } else if (!out.empty() && out.back() != ' ') {
      out += ' ';
    }
  }
  if (out.ends_with(' ')) out.pop_back();
  return out;
}

std::string quoted(std::string_view identifier) {
  std::string out = "`";
  for (const char c : identifier) out.append(c == '`' ? 2 : 1, c);
  return out + "`";
}

std::string qualified(std::string_view schema, std::string_view table) {
  return quoted(schema) + "." + quoted(table);
}

std::string table_of(std::string_view table, LockKind kind) {
  constexpr std::array<std::string_view, 4> ends = {"", "_rw", "_sem", "_elect"};
  return std::string(table).append(ends.at(static_cast<std::size_t>(kind)));
}

std::string user_lock(std::string_view purpose, std::string_view schema, std::string_view table,
                      std::string_view name) {
  std::string prefix = "dlock";
  for (const std::string_view part : {purpose, schema, table}) prefix.append(1, '\0').append(part);
  prefix += '\0';
  return "SHA2(CONCAT(X'" + hex(prefix) + "', " + std::string(name) + "), 256)";
}

}  // namespace dlock::mysql
