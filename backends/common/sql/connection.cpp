#include "backends/common/sql/connection.hpp"

#include <string_view>

#include <dlock/duration.hpp>

#include "util/number.hpp"

namespace dlock::sql {

namespace {

// nullopt: NULL, or there is no such row or column.
std::optional<std::string_view> cell(const Rows& rows, std::size_t row, std::size_t column) noexcept {
  if (row >= rows.rows.size() || column >= rows.rows[row].size()) return std::nullopt;
  return rows.rows[row][column];
}

}  // namespace

std::string Rows::text(std::size_t row, std::size_t column) const {
  return std::string(cell(*this, row, column).value_or(""));
}

bool Rows::is_null(std::size_t row, std::size_t column) const noexcept {
  return !cell(*this, row, column);
}

std::optional<std::int64_t> Rows::number(std::size_t row, std::size_t column) const noexcept {
  return util::parse_number<std::int64_t>(cell(*this, row, column).value_or(""));
}

std::optional<std::chrono::nanoseconds> Rows::duration(std::size_t row, std::size_t column) const noexcept {
  const auto ms = number(row, column);
  if (!ms) return std::nullopt;
  return Duration(std::chrono::milliseconds(*ms)).value();
}

bool Rows::flag(std::size_t row, std::size_t column) const noexcept {
  const auto text = cell(*this, row, column);
  return text == "t" || text == "1";
}

}  // namespace dlock::sql
