#include <cstddef>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <utility>

#include <dlock/dlock.hpp>

#include "postgres/measurements.hpp"
#include "samples.hpp"

namespace bench {

namespace {

using dlock::test::PostgresServer;

constexpr int warm_up = 50;
constexpr int calls = 2000;
constexpr int logged_calls = 500;
constexpr std::size_t connections = 50;

struct Cost {
  double statements;
  double wal;  // bytes, those that are in memory only as well
  Samples time;
};

// How often the clients' role had a statement carried out: pg_stat_statements leaves out those that fail, and prepared
// ones such as BEGIN.
std::size_t statements_so_far(PostgresServer& server) {
  static int marks = 0;
  const std::string mark = "mark " + std::to_string(++marks);
  server.run("SELECT '" + mark + "'");
  if (!server.process().wait_for_output("'" + mark + "'")) throw std::runtime_error("the server's log has ended");
  const std::string log = server.process().output();
  std::size_t count = 0;
  const std::string mine = "\n" + std::string(PostgresServer::user) + " LOG:  ";
  for (std::size_t at = log.find(mine); at != std::string::npos; at = log.find(mine, at + 1)) ++count;
  return count;
}

// The sessions notice soon, at their next statement.
void log_statements(PostgresServer& server, const std::string& which) {
  server.run("ALTER SYSTEM SET log_statement = '" + which + "'");
  server.run("SELECT pg_reload_conf()");
}

// Of one call. What the clients do besides, such as renewals, counts as well; it is little beside so many.
template <class F>
Cost cost_of(PostgresServer& server, F&& call) {
  const auto repeat = [&](int times) {
    for (int i = 0; i < times; ++i) call();
  };
  const auto wal = [&] { return std::stod(server.value("SELECT pg_current_wal_insert_lsn() - '0/0'")); };
  repeat(warm_up);
  const double before = wal();
  Samples time;
  for (int i = 0; i < calls; ++i) {
    const auto start = Samples::Clock::now();
    call();
    time.add(Samples::Clock::now() - start);
  }
  const double written = wal() - before;
  log_statements(server, "all");
  repeat(warm_up);
  const std::size_t statements = statements_so_far(server);
  repeat(logged_calls);
  const auto more = static_cast<double>(statements_so_far(server) - statements);
  log_statements(server, "none");
  return {.statements = more / logged_calls, .wal = written / calls, .time = std::move(time)};
}

void print(const std::string& strategy, const char* what, Cost cost) {
  std::printf("%-10s  %-13s  %5.2f statements   %6.1f bytes of WAL   p50 %7.1f us\n", strategy.c_str(), what,
              cost.statements, cost.wal, cost.time.percentile(0.5));
}

void run(PostgresServer& server, const std::string& strategy) {
  // Of for-update, every connection that is being rolled back is taken a little longer than the try lasts.
  const dlock::Client holder = dlock::connect(url_of(server, strategy, connections));
  const dlock::Client other = dlock::connect(url_of(server, strategy, connections));
  dlock::DistributedLock free = other.lock("free");
  print(strategy, "free and back", cost_of(server, [&] {
          dlock::Lease lease = free.acquire();
          if (!lease.release()) throw std::runtime_error("dlock lost a lock");
        }));
  dlock::DistributedLock held = holder.lock("busy");
  const dlock::Lease lease = held.acquire();
  dlock::DistributedLock busy = other.lock("busy");
  print(strategy, "busy", cost_of(server, [&] {
          if (busy.try_acquire()) throw std::runtime_error("dlock granted a lock that is held");
        }));
}

}  // namespace

void measure_busy(const Plan& plan) {
  // Without autovacuum and checkpoints, so that nobody else writes.
  PostgresServer server(durable_server({"autovacuum = off", "checkpoint_timeout = 1h", "log_line_prefix = '%u '"}));
  (void)dlock::connect(server.url()).initialize();
  for (const std::string& strategy : plan.strategies) run(server, strategy);
  std::printf("\n");
}

}  // namespace bench
