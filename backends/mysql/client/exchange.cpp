#include "backends/mysql/client/exchange.hpp"

#include <errmsg.h>

#include <utility>

namespace dlock::mysql {

int Exchange::start(std::string text, std::size_t most) {
  call_ = Call::query;
  text_ = std::move(text);
  most_ = most;
  results_.clear();
  error_ = 0;
  return run(std::nullopt);
}

int Exchange::resume(int events) {
  return run(events);
}

// Each call ends with an error, or with bytes that had arrived before, which do not last.
void Exchange::abandon() noexcept {
  while (waits_ != 0) (void)run(MYSQL_WAIT_TIMEOUT);
}

std::string Exchange::error_text() const {
  const std::string text = mysql_error(&connection_);
  return text.empty() ? "an answer that belongs to no statement" : text;
}

// Without events: begins the call.
int Exchange::call(std::optional<int> events) {
  MYSQL* const connection = &connection_;
  switch (call_) {
    case Call::query:
      return events ? mysql_real_query_cont(&status_, connection, *events)
                    : mysql_real_query_start(&status_, connection, text_.data(), text_.size());
    case Call::store:
      status_ = 0;
      return events ? mysql_store_result_cont(&stored_, connection, *events)
                    : mysql_store_result_start(&stored_, connection);
    case Call::next:
      return events ? mysql_next_result_cont(&status_, connection, *events)
                    : mysql_next_result_start(&status_, connection);
  }
  return 0;
}

int Exchange::run(std::optional<int> events) {
  std::optional<TlsCall> guard;
  if (mysql_get_ssl_cipher(&connection_) != nullptr) guard.emplace();
  do {
    waits_ = call(events);
    if (waits_ != 0) return waits_;
    events.reset();
  } while (advance());
  return 0;
}

// After a call. False: it was the last one.
bool Exchange::advance() {
  const bool has_columns = mysql_field_count(&connection_) > 0;
  if (status_ != 0 || (call_ == Call::store && stored_ == nullptr)) {
    error_ = mysql_errno(&connection_);
    if (error_ == 0) error_ = CR_UNKNOWN_ERROR;
    return false;
  }
  if (call_ != Call::store && has_columns) {
    call_ = Call::store;
    return true;
  }
  take_rows();
  if (mysql_more_results(&connection_) == 0) return false;
  if (results_.size() == most_) {
    error_ = CR_COMMANDS_OUT_OF_SYNC;
    return false;
  }
  call_ = Call::next;
  return true;
}

void Exchange::take_rows() {
  sql::Rows& rows = results_.emplace_back();
  rows.affected = mysql_affected_rows(&connection_);
  rows.inserted = mysql_insert_id(&connection_);
  const MysqlResult result(std::exchange(stored_, nullptr));
  if (!result) return;
  const unsigned width = mysql_num_fields(result.get());
  while (MYSQL_ROW texts = mysql_fetch_row(result.get())) {
    const unsigned long* const lengths = mysql_fetch_lengths(result.get());
    sql::Rows::Row& row = rows.rows.emplace_back(width);
    for (unsigned i = 0; i < width; ++i) {
      if (texts[i] != nullptr) row[i].emplace(texts[i], lengths[i]);
    }
  }
}

}  // namespace dlock::mysql
