#include <cstdio>
#include <stdexcept>
#include <string>

#include <dlock/dlock.hpp>

#include "postgres/measurements.hpp"
#include "samples.hpp"

namespace bench {

namespace {

using dlock::test::PostgresServer;

constexpr int warm_up = 50;
constexpr int calls = 2000;

struct Cost {
  double statements;  // of our role, by pg_stat_statements
  double wal;         // bytes, as far as the log is written or still in memory
  Samples time;
};

// Of one call. What others of this client do meanwhile, such as renewals, counts as well; it is little beside so many.
template <class F>
Cost cost_of(PostgresServer& server, F&& call) {
  for (int i = 0; i < warm_up; ++i) call();
  (void)server.value("SELECT pg_stat_statements_reset()");
  const auto wal = [&] { return std::stod(server.value("SELECT pg_current_wal_insert_lsn() - '0/0'")); };
  const double before = wal();
  Samples time;
  for (int i = 0; i < calls; ++i) {
    const auto start = Samples::Clock::now();
    call();
    time.add(Samples::Clock::now() - start);
  }
  const double written = wal() - before;
  const double statements = std::stod(
      server.value("SELECT coalesce(sum(calls), 0) FROM pg_stat_statements AS s JOIN pg_roles AS r ON r.oid = s.userid "
                   "WHERE r.rolname = '" +
                   std::string(PostgresServer::user) + "'"));
  return {.statements = statements / calls, .wal = written / calls, .time = std::move(time)};
}

void print(const std::string& strategy, const char* what, Cost cost) {
  std::printf("%-10s  %-13s  %5.2f statements   %6.1f bytes of WAL   p50 %7.1f us\n", strategy.c_str(), what,
              cost.statements, cost.wal, cost.time.percentile(0.5));
}

void run(PostgresServer& server, const std::string& strategy) {
  const dlock::Client holder = dlock::connect(server.url("strategy=" + strategy));
  const dlock::Client other = dlock::connect(server.url("strategy=" + strategy));
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
  PostgresServer server(durable_server(
      {"shared_preload_libraries = 'pg_stat_statements'", "autovacuum = off", "checkpoint_timeout = 1h"}));
  server.run("CREATE EXTENSION pg_stat_statements");
  (void)dlock::connect(server.url()).initialize();
  for (const std::string& strategy : plan.strategies) run(server, strategy);
  std::printf("\n");
}

}  // namespace bench
