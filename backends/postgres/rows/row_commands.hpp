// The statements in which requests about rows go out together, and what their answers say.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "backends/postgres/rows/row_request.hpp"
#include "backends/postgres/rows/row_sql.hpp"
#include "backends/postgres/sessions/commands.hpp"

namespace dlock::postgres {

class RowCommands {
 public:
  // What is different about the statements.
  struct Variant {
    bool optimistic = false;
    bool announces = false;  // grants, and not only releases, send notifications
    bool sharing = false;    // several may hold a lock, and all that is asked of its row is one statement
  };
  using Requests = std::vector<const RowRequest*>;

  // The statements outlive it. channel: where waiters listen.
  RowCommands(const RowSql& sql, Variant variant, std::string channel)
      : sql_(sql), variant_(variant), channel_(std::move(channel)) {}

  // Requests of one kind. quiet: no client is notified.
  [[nodiscard]] Command of(const Requests& requests, bool quiet) const;
  // Of any kinds, where several may hold a lock: all that is asked of a row at once is worked out together, for a
  // statement changes a row only once.
  [[nodiscard]] Command changes_of(const Requests& requests, bool quiet) const;

  // An answer for each request, in their order.
  [[nodiscard]] static std::vector<RowAnswer> answers_to(const Requests& requests, const Rows& rows, TimePoint sent);
  [[nodiscard]] static std::vector<RowAnswer> answers_to_changes(std::size_t requests, const Rows& rows,
                                                                 TimePoint sent);

 private:
  [[nodiscard]] Command releases_of(const Requests& requests, const std::string& channel) const;
  [[nodiscard]] Command renewals_of(const Requests& requests) const;
  [[nodiscard]] Command acquires_of(const Requests& requests, const std::string& channel) const;

  const RowSql& sql_;
  const Variant variant_;
  const std::string channel_;
};

}  // namespace dlock::postgres
