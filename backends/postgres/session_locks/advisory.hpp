// strategy=advisory: PostgreSQL's own locks, which belong to sessions. See docs/backends/postgres.md for what is
// guaranteed.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <dlock/spi/backend.hpp>

#include "backends/postgres/services.hpp"
#include "backends/postgres/session_locks/advisory_contention.hpp"
#include "backends/postgres/session_locks/holders.hpp"
#include "backends/postgres/session_locks/snapshot_watch.hpp"
#include "backends/postgres/session_locks/waiting_room.hpp"
#include "backends/postgres/sql/lock_key.hpp"

namespace dlock::postgres {

class AdvisoryLocks final : public Backend {
 public:
  struct Limits {
    WaitSlices slices = {};
    // The server's table of locks has a fixed size, and when it is full even logins fail.
    std::size_t locks = 1000;
    std::size_t sessions = 2;  // that locks are tried for in
  };

  explicit AdvisoryLocks(const Services& services);
  // All references outlive it.
  AdvisoryLocks(BackendHost& host, const Options& options, const Dialling& dialling, AdvisoryContention::SetUp set_up,
                Limits limits);
  ~AdvisoryLocks() override;

  [[nodiscard]] Capabilities capabilities() const noexcept override;
  [[nodiscard]] std::unique_ptr<Contention> contend(const LockRequest& request, GrantSink& sink) override;
  void release(const Grant& grant, ReleaseHandler done) override;
  void close(std::function<void()> done) override;

  [[nodiscard]] const AdvisorySql& sql() const noexcept { return sql_; }
  // Waits in the server end where a transaction waits for the end of their snapshots.
  void watch_snapshots();
  // How many acquires of that name wait in this client, and not in the server.
  [[nodiscard]] std::size_t waiting_here(LockKind kind, const std::string& name) const;

 private:
  [[nodiscard]] std::optional<Failure> problem_with(const LockRequest& request) const;
  void report_if_quiet();

  const Options& options_;
  const AdvisorySql sql_;
  WaitingRoom room_;
  const std::size_t most_locks_;  // in the holders
  Holders holders_;
  const AdvisoryContention::Common common_;
  std::optional<SnapshotWatch> snapshot_watch_;
  std::function<void()> closed_;
};

}  // namespace dlock::postgres
