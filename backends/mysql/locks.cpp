#include "backends/mysql/locks.hpp"

#include <chrono>
#include <utility>

#include "backends/mysql/rows/turnstile.hpp"
#include "backends/mysql/sql/row_commands.hpp"
#include "backends/mysql/sql/session_statements.hpp"

namespace dlock::mysql {

namespace {

Capabilities capabilities_of(const Options& options) {
  return {
      .backend = "mysql",
      .strategy = to_string(options.strategy),
      .scope = Scope::network,
      .fencing = FencingDurability::wall_clock,
      .one_waiter_per_client = true,
      .sharers_poll = true,
      .can_inspect = true,
      .can_list = true,
      .can_break = true,
      .can_forget = true,
      .can_forget_idle = true,
      .close_on_exec = false,  // libmariadb opens its socket without the flag, which is set once it is connected
  };
}

}  // namespace

std::unique_ptr<sql::RowLocks> make_row_locks(const sql::Services& services, const Options& options, LockKind kind) {
  const bool optimistic = options.strategy == Strategy::optimistic;
  const bool wakes = options.pooler != Pooler::transaction;
  Capabilities capabilities = capabilities_of(options);
  capabilities.lease_kind = LeaseKind::per_lock;
  capabilities.fair = capabilities.wakes_waiters = capabilities.wakes_one = wakes;
  capabilities.read_write_locks = capabilities.semaphores = !optimistic;
  capabilities.elections = true;
  capabilities.min_lease = std::chrono::milliseconds(20);
  capabilities.max_lease = std::chrono::hours(24);
  auto rows = std::make_unique<RowCommands>(options.schema, kind, optimistic, [&commands = services.commands, wakes] {
    const sql::ServerInfo& server = commands.server();
    return wakes && !server.pooled;
  });
  sql::RowLocks::MakeWaker turnstile;
  if (wakes && rows->has_bells()) {
    turnstile = [services, max_places = options.max_connections](const sql::RowStore& store) {
      return std::make_unique<Turnstile>(services, static_cast<const RowCommands&>(store), max_places);
    };
  }
  return std::make_unique<sql::RowLocks>(services, capabilities, optimistic, std::move(rows), turnstile);
}

std::unique_ptr<sql::SessionLocks> make_session_locks(const sql::Services& services, const Options& options) {
  Capabilities capabilities = capabilities_of(options);
  capabilities.lease_kind = LeaseKind::session;
  capabilities.wakes_waiters = capabilities.wakes_one = true;
  capabilities.max_locks = options.max_connections;
  capabilities.elections = options.strategy == Strategy::named;
  capabilities.min_lease = shortest_session_lease;
  capabilities.max_lease = options.lease;
  auto dialect = options.strategy == Strategy::named
                     ? named_dialect(options.schema, options.verbatim_keys ? KeyNames::verbatim : KeyNames::sha256)
                     : for_update_dialect(options.schema);
  return std::make_unique<sql::SessionLocks>(services, capabilities, options.max_connections, std::move(dialect));
}

}  // namespace dlock::mysql
