// One text with several statements, from its first byte to the last result: the library's calls, one after the other.
// None of them blocks. The socket is in non-blocking mode.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "backends/common/sql/connection.hpp"
#include "backends/mysql/client/handle.hpp"

namespace dlock::mysql {

class Exchange {
 public:
  // The connection outlives it.
  explicit Exchange(MYSQL& connection) : connection_(connection) {}

  // Each returns the events (MYSQL_WAIT_*) for one of which resume() is to be called; 0: the exchange has ended. It may
  // begin again after that. most: more statements than that have no result.
  [[nodiscard]] int start(std::string text, std::size_t most);
  [[nodiscard]] int resume(int events);

  // The connection was cut: ends the library's call in progress, which would leak its memory. The results must not be
  // used.
  void abandon() noexcept;

  // Once it has ended: the results of the statements in front of the first that failed, and the error; 0: there is
  // none.
  [[nodiscard]] sql::Results& results() noexcept { return results_; }
  [[nodiscard]] unsigned error() const noexcept { return error_; }
  [[nodiscard]] std::string error_text() const;

 private:
  enum class Call { query, store, next };

  [[nodiscard]] int call(std::optional<int> events);
  [[nodiscard]] int run(std::optional<int> events);
  [[nodiscard]] bool advance();
  void take_rows();

  MYSQL& connection_;
  Call call_ = Call::query;
  std::string text_;
  std::size_t most_ = 0;
  int waits_ = 0;                // of a call in progress
  int status_ = 0;               // of a call that the library has ended
  MYSQL_RES* stored_ = nullptr;  // the same
  sql::Results results_;
  unsigned error_ = 0;
};

}  // namespace dlock::mysql
