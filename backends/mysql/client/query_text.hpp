// A query as one text with several statements. No I/O.
//
// In the SQL of a command, `?` stands for a text, which is written as a binary literal, and `#` for a whole number of
// 64 bits, which is written as digits. Neither occurs in it for anything else.
#pragma once

#include <cstddef>
#include <string>

#include <dlock/spi/result.hpp>

#include "backends/common/sql/connection.hpp"

namespace dlock::mysql {

struct QueryText {
  std::string text;
  std::size_t commands = 0;
  // START TRANSACTION and COMMIT are around the commands, because one of them writes in front of another, which may
  // fail, and none of them is about a transaction. A command that begins with SELECT, DO, SET or SHOW does not write.
  bool wrapped = false;

  [[nodiscard]] std::size_t statements() const noexcept { return commands + (wrapped ? 2 : 0); }
};

// errc::invalid_argument: there is no command, a parameter is missing, left over, not a number or has a zero byte.
[[nodiscard]] Result<QueryText> text_of(const sql::Query& query);

}  // namespace dlock::mysql
