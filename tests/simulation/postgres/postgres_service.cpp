// PostgreSQL for a simulation.
#include "backends/common/sql/text.hpp"
#include "backends/postgres/options.hpp"
#include "backends/postgres/postgres_backend.hpp"
#include "backends/postgres/sql/lock_key.hpp"
#include "tests/simulation/postgres/fake_postgres.hpp"
#include "tests/simulation/sql/database_service.hpp"

namespace dlock::simulation {
namespace {

struct Postgres {
  static constexpr const char* name = "postgresql";
  static constexpr std::chrono::nanoseconds hand_over_in_table = std::chrono::milliseconds(250);
  static constexpr std::chrono::nanoseconds min_session_lease = sql::shortest_session_lease;
  using Server = postgres::FakePostgres;

  static void set_schema(Server& server, bool chance) { server.has_schema = chance; }
  [[nodiscard]] static std::unique_ptr<Backend> connect(BackendHost& host, const BackendConfig& config,
                                                        postgres::OpenConnection open) {
    return postgres::make_backend(host, postgres::parse_options(config), std::move(open));
  }
  [[nodiscard]] static std::vector<int> processes(Server& server, Strategy strategy, LockKind kind,
                                                  const std::string& name, bool waiters) {
    if (strategy == Strategy::for_update) return server.sessions_of_row(name, waiters);
    if (strategy == Strategy::advisory) {
      return server.sessions_of_key(postgres::lock_key({}, name, kind).parameter, waiters);
    }
    return server.holders_of_rows(sql::table_of(strategy == Strategy::table ? "lease" : "optimistic", kind), name);
  }
};

}  // namespace

std::vector<Subject> subjects() {
  using enum LockKind;
  // An advisory waiter that has left the server's queue keeps readers out for half a second.
  return subjects_of<Postgres>(Strategy::advisory, {lock, read_write, election}, std::chrono::milliseconds(750));
}

}  // namespace dlock::simulation
