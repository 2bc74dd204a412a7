// What the PostgreSQL backend costs, measured against the same statements by hand on blocking libpq. Starts servers of
// its own, which wait for the disk.
#include <chrono>
#include <cstdio>
#include <exception>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <dlock/dlock.hpp>

#include "postgres/measurements.hpp"

namespace bench {

dlock::test::PostgresConfig durable_server(std::vector<std::string> lines) {
  // What tests have no need of.
  lines.insert(lines.end(), {"fsync = on", "full_page_writes = on", "shared_buffers = 128MB"});
  return {.max_connections = 500, .lines = std::move(lines)};
}

std::string url_of(const dlock::test::PostgresServer& server, const std::string& strategy, std::size_t connections) {
  return server.url("strategy=" + strategy + "&max_connections=" + std::to_string(connections));
}

}  // namespace bench

int main(int argc, char** argv) {
  CLI::App app("Benchmarks of dlock's PostgreSQL backend");
  int round_ms = 500;
  bench::Plan plan;
  std::vector<std::string> wanted = {"one-thread", "throughput", "hand-off", "busy"};
  app.add_option("--round-ms", round_ms, "length of one measurement")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--rounds", plan.rounds, "repetitions")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--strategy", plan.strategies, "which strategies")
      ->check(CLI::IsMember({"table", "optimistic", "for-update", "advisory"}))
      ->take_all();
  app.add_option("what", wanted, "which measurements")
      ->check(CLI::IsMember({"one-thread", "throughput", "hand-off", "busy"}));
  CLI11_PARSE(app, argc, argv);
  plan.round = std::chrono::milliseconds(round_ms);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // figures appear as they come, in a file as well
  try {
    dlock::test::PostgresServer server(bench::durable_server());
    (void)dlock::connect(server.url()).initialize();
    std::printf("PostgreSQL %s that waits for the disk, %u processors\n\n", server.value("SHOW server_version").c_str(),
                std::thread::hardware_concurrency());
    for (const std::string& each : wanted) {
      if (each == "one-thread") bench::measure_one_thread(server, plan);
      if (each == "throughput") bench::measure_throughput(server, plan);
      if (each == "hand-off") bench::measure_hand_off(server, plan);
      if (each == "busy") bench::measure_busy(plan);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_postgres: %s\n", error.what());
    return 1;
  }
  return 0;
}
