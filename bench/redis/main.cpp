// What the Redis backend costs, measured against the same commands written by hand on blocking hiredis. Starts a Redis
// server of its own.
#include <chrono>
#include <cstdio>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>

#include "redis/measurements.hpp"

int main(int argc, char** argv) {
  CLI::App app("Benchmarks of dlock's Redis backend");
  int round_ms = 500;
  bench::Plan plan;
  std::vector<std::string> wanted = {"one-thread", "throughput", "hand-off"};
  app.add_option("--round-ms", round_ms, "length of one measurement")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--rounds", plan.rounds, "repetitions")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("what", wanted, "which measurements")->check(CLI::IsMember({"one-thread", "throughput", "hand-off"}));
  CLI11_PARSE(app, argc, argv);
  plan.round = std::chrono::milliseconds(round_ms);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // figures appear as they come, in a file as well
  try {
    dlock::test::RedisServer server;
    std::printf("redis-server %s, %u processors\n\n", server.info("server", "redis_version").c_str(),
                std::thread::hardware_concurrency());
    for (const std::string& each : wanted) {
      if (each == "one-thread") bench::measure_one_thread(server, plan);
      if (each == "throughput") bench::measure_throughput(server, plan);
      if (each == "hand-off") bench::measure_hand_off(server, plan);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_redis: %s\n", error.what());
    return 1;
  }
  return 0;
}
