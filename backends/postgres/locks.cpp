#include "backends/postgres/locks.hpp"

#include <chrono>
#include <cstdint>
#include <utility>

#include "backends/postgres/rows/row_commands.hpp"
#include "backends/postgres/rows/wake_ups.hpp"
#include "backends/postgres/session_locks/advisory_tries.hpp"
#include "backends/postgres/session_locks/session_dialects.hpp"
#include "backends/postgres/sql/identifier.hpp"
#include "backends/postgres/sql/statements.hpp"

namespace dlock::postgres {

namespace {

Capabilities capabilities_of(const Options& options) {
  return {
      .backend = "postgresql",
      .strategy = to_string(options.strategy),
      .scope = Scope::network,
      .fencing = FencingDurability::wall_clock,
      .can_inspect = true,
      .can_list = true,
      .can_break = true,
      .can_forget = true,
      .can_forget_idle = true,
  };
}

}  // namespace

std::unique_ptr<RowLocks> make_row_locks(const Services& services, const Options& options, LockKind kind) {
  const bool optimistic = options.strategy == Strategy::optimistic;
  const bool wakes = options.pooler != Pooler::transaction;
  Capabilities capabilities = capabilities_of(options);
  capabilities.lease_kind = LeaseKind::per_lock;
  capabilities.wakes_waiters = wakes;
  capabilities.read_write_locks = capabilities.semaphores = !optimistic;
  capabilities.elections = true;
  capabilities.min_lease = std::chrono::milliseconds(20);
  capabilities.max_lease = std::chrono::hours(24);
  RowLocks::MakeWaker wake_ups = [services](const RowStore& store) {
    return std::make_unique<WakeUps>(
        services.commands, services.dialling, static_cast<const RowCommands&>(store),
        [host = &services.host](Failure why) { host->warn({.name = "", .reason = std::move(why)}); });
  };
  return std::make_unique<RowLocks>(
      services, capabilities, optimistic,
      std::make_unique<RowCommands>(row_statements(options.strategy, options.schema, options.durability, kind), kind,
                                    channel_of(options.schema, kind)),
      wakes ? wake_ups : nullptr);
}

std::unique_ptr<SessionLocks> make_session_locks(const Services& services, const Options& options) {
  const bool advisory = options.strategy == Strategy::advisory;
  Capabilities capabilities = capabilities_of(options);
  capabilities.lease_kind = LeaseKind::session;
  // for-update: waiters are served in their order, but a newcomer may come in between, and waits are interrupted.
  capabilities.fair = advisory;
  capabilities.wakes_waiters = capabilities.wakes_one = true;
  capabilities.counts_waiters = capabilities.one_waiter_per_client = true;
  capabilities.max_locks = static_cast<std::uint32_t>(advisory ? most_advisory_locks : options.max_connections);
  capabilities.read_write_locks = capabilities.elections = advisory;
  capabilities.min_lease = shortest_session_lease;
  capabilities.max_lease = options.lease;
  if (!advisory) {
    return std::make_unique<SessionLocks>(services, capabilities, options.max_connections, for_update_dialect(options));
  }
  const auto make_tries = [&](common::ConnectionObserver& observer, std::function<void()> when_quiet) {
    return std::make_unique<AdvisoryTries>(services, options, observer, std::move(when_quiet));
  };
  return std::make_unique<SessionLocks>(services, capabilities, options.max_connections, advisory_dialect(options),
                                        make_tries);
}

}  // namespace dlock::postgres
