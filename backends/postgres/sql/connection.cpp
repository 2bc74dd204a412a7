#include "backends/postgres/sql/connection.hpp"

#include "util/number.hpp"

namespace dlock::postgres {

namespace {

const std::optional<std::string>* cell(const Rows& rows, std::size_t row, std::size_t column) noexcept {
  if (row >= rows.rows.size() || column >= rows.rows[row].size()) return nullptr;
  return &rows.rows[row][column];
}

}  // namespace

std::string Rows::text(std::size_t row, std::size_t column) const {
  const auto* const value = cell(*this, row, column);
  return value == nullptr ? std::string() : value->value_or(std::string());
}

bool Rows::is_null(std::size_t row, std::size_t column) const noexcept {
  const auto* const value = cell(*this, row, column);
  return value == nullptr || !value->has_value();
}

std::optional<std::int64_t> Rows::number(std::size_t row, std::size_t column) const noexcept {
  const auto* const value = cell(*this, row, column);
  if (value == nullptr || !value->has_value()) return std::nullopt;
  return util::parse_number<std::int64_t>(**value);
}

bool Rows::flag(std::size_t row, std::size_t column) const noexcept {
  const auto* const value = cell(*this, row, column);
  return value != nullptr && value->has_value() && **value == "t";
}

}  // namespace dlock::postgres
