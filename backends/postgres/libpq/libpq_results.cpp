#include "backends/postgres/libpq/libpq_results.hpp"

#include <charconv>
#include <cstring>
#include <string_view>

#include "backends/postgres/sql/connect_failure.hpp"
#include "backends/postgres/sql/sqlstate.hpp"

namespace dlock::postgres {

namespace {

std::string_view field(const PGresult& result, int code) {
  const char* const text = PQresultErrorField(&result, code);
  return text == nullptr ? std::string_view() : std::string_view(text);
}

}  // namespace

Rows to_rows(const PGresult& result) {
  Rows rows;
  const int height = PQntuples(&result);
  const int width = PQnfields(&result);
  rows.rows.reserve(static_cast<std::size_t>(height));
  for (int y = 0; y < height; ++y) {
    Rows::Row& row = rows.rows.emplace_back();
    row.reserve(static_cast<std::size_t>(width));
    for (int x = 0; x < width; ++x) {
      if (PQgetisnull(&result, y, x) != 0) {
        row.emplace_back();
      } else {
        row.emplace_back(std::in_place, PQgetvalue(&result, y, x),
                         static_cast<std::size_t>(PQgetlength(&result, y, x)));
      }
    }
  }
  // PQcmdTuples() takes no constant, although it changes nothing.
  const char* const affected = PQcmdTuples(const_cast<PGresult*>(&result));          // NOLINT(*-const-cast)
  (void)std::from_chars(affected, affected + std::strlen(affected), rows.affected);  // empty where it does not apply
  return rows;
}

Failure server_failure(const std::string& endpoint, const PGresult& result) {
  const std::string_view sqlstate = field(result, PG_DIAG_SQLSTATE);
  std::string words = endpoint + ": " + in_one_line(field(result, PG_DIAG_MESSAGE_PRIMARY));
  if (const auto detail = field(result, PG_DIAG_MESSAGE_DETAIL); !detail.empty()) words += "; " + in_one_line(detail);
  words += " (SQLSTATE " + std::string(sqlstate) + ")";
  return {meaning_of(sqlstate).code, words};
}

}  // namespace dlock::postgres
