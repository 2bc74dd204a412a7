// strategy=for-update: a lock is a row that an open transaction has locked, and lives as long as that does. See
// statements.hpp for the SQL.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include <dlock/spi/backend.hpp>

#include "backends/postgres/services.hpp"
#include "backends/postgres/session_locks/for_update_transactions.hpp"
#include "backends/postgres/session_locks/snapshot_watch.hpp"
#include "backends/postgres/session_locks/turns.hpp"
#include "backends/postgres/sql/statements.hpp"

namespace dlock::postgres {

// In tasks only, except capabilities().
class ForUpdateLocks final : public Backend {
 public:
  explicit ForUpdateLocks(const Services& services);
  ~ForUpdateLocks() override;

  [[nodiscard]] Capabilities capabilities() const noexcept override;
  [[nodiscard]] std::unique_ptr<Contention> contend(const LockRequest& request, GrantSink& sink) override;
  void release(const Grant& grant, ReleaseHandler done) override;

  // Waits in the server end where a transaction waits for the end of their snapshots.
  void watch_snapshots();

  // How many acquires of that name wait in this client, and not in the server.
  [[nodiscard]] std::size_t waiting_here(LockKind /*kind*/, const std::string& name) const {
    return turns_.outside(name);
  }

  // --- For its contentions and holds ---
  [[nodiscard]] Executor& executor() const noexcept { return services_.host.executor(); }
  [[nodiscard]] const Services& services() const noexcept { return services_; }
  [[nodiscard]] const ForUpdateStatements& statements() const noexcept { return statements_; }
  [[nodiscard]] Transactions& transactions() noexcept { return transactions_; }
  [[nodiscard]] Turns& turns() noexcept { return turns_; }
  // As many locks are held as there may be connections.
  [[nodiscard]] bool all_hold() const noexcept { return holds_.size() >= services_.options.max_connections; }
  // A request has applied for one, or a connection that would have come free stays taken.
  void connection_wanted();
  // The lock is ours, in the transaction of this connection.
  void hold(const Grant& grant, Transactions::Member member);

 private:
  class Hold;

  // By value: they may be the hold's, which goes.
  void lose(OwnerId owner, Failure why);

  const Services services_;
  const ForUpdateStatements statements_;
  Transactions transactions_;
  Turns turns_;
  std::optional<SnapshotWatch> snapshot_watch_;
  std::unordered_map<OwnerId, std::unique_ptr<Hold>> holds_;
};

}  // namespace dlock::postgres
