// The knowledge of a service about the rows that locks live in: the statements for requests, the answers in their
// results, and what wakes waiters. RowBatch and RowLocks do the rest.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <dlock/spi/backend.hpp>

#include "backends/common/sql/connection.hpp"
#include "backends/common/sql/row_request.hpp"

namespace dlock::sql {

class RowStore {
 public:
  using Requests = std::vector<const RowRequest*>;

  RowStore() = default;
  RowStore(const RowStore&) = delete;
  RowStore& operator=(const RowStore&) = delete;
  virtual ~RowStore() = default;

  [[nodiscard]] virtual LockKind kind() const noexcept = 0;
  // Several may hold a lock, and requests of any kind but marks go into one call of commands_for(), because a statement
  // changes a row only once.
  [[nodiscard]] virtual bool sharing() const noexcept = 0;
  // The commands depend on Commands::server().
  [[nodiscard]] virtual bool depends_on_server() const noexcept { return false; }
  // An answer to this request may have notified clients.
  [[nodiscard]] virtual bool notifies(const RowRequest& request) const noexcept = 0;
  // A session may keep something for an owner that does not end with the lease: a release by the owner gives it back.
  [[nodiscard]] virtual bool outlives_leases() const noexcept { return false; }
  // For requests of one kind; if sharing(), of any but marks. quiet: no client is notified.
  [[nodiscard]] virtual std::vector<Command> commands_for(const Requests& requests, bool quiet) const = 0;
  // These undo what the session may keep of requests that were rolled back.
  [[nodiscard]] virtual std::vector<Command> after_refusal(const Requests& /*requests*/) const { return {}; }
  // For each request, in their order. results: one for each of those commands.
  [[nodiscard]] virtual std::vector<RowAnswer> answers_to(const Requests& requests, std::span<const Rows> results,
                                                          TimePoint sent) const = 0;
};

}  // namespace dlock::sql
