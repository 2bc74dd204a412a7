// A query as one text with several statements. No I/O.
//
// In the SQL of a command, `?` stands for a text, which is written as a binary literal, and `#` for a whole number of
// 64 bits, which is written as digits. Neither occurs in it for anything else.
//
// The server needs longer to parse an INSERT or an UPDATE than to execute it, so a session prepares these statements at
// their first use. Others are written out: administrators, and inspect(), see the text of a statement that waits.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <dlock/spi/result.hpp>

#include "backends/common/sql/connection.hpp"

namespace dlock::mysql {

// The statements that a session has prepared: the first one is called d0, the next one d1.
using Prepared = std::vector<const sql::Statement*>;

struct QueryText {
  std::string text;
  std::size_t commands = 0;
  // START TRANSACTION and COMMIT are around the commands, because one of them writes in front of another, which may
  // fail, and none of them is about a transaction. A command that begins with SELECT, DO, SET or SHOW does not write.
  bool wrapped = false;
  bool forbids_retries = false;  // Galera's, by a setting before START TRANSACTION; if a command writes
  Prepared prepares = {};        // in front of everything else

  [[nodiscard]] std::size_t before_commands() const noexcept {
    return prepares.size() + (forbids_retries ? 1 : 0) + (wrapped ? 1 : 0);
  }
  [[nodiscard]] std::size_t statements() const noexcept { return before_commands() + commands + (wrapped ? 1 : 0); }
};

// prepared: by the session; nullptr: it prepares nothing. retries: as ServerInfo has it. errc::invalid_argument: there
// is no command, a parameter is missing, left over, not a number or has a zero byte.
[[nodiscard]] Result<QueryText> text_of(const sql::Query& query, const Prepared* prepared = nullptr,
                                        bool retries = false);

}  // namespace dlock::mysql
