// What the ZooKeeper backend costs, measured against the same requests written by hand on the C client. Starts servers
// of its own.
#include <chrono>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>

#include "zookeeper/measurements.hpp"

namespace bench {

double Service::figure(const std::string& name) const {
  double sum = 0;
  for (const dlock::test::ZooKeeperServer* each : servers) sum += static_cast<double>(each->figure(name));
  return sum;
}

}  // namespace bench

int main(int argc, char** argv) {
  CLI::App app("Benchmarks of dlock's ZooKeeper backend");
  int round_ms = 1000;
  bench::Plan plan;
  bool three = false;
  bool to_disk = true;
  std::vector<std::string> wanted = {"one-thread", "throughput", "herd"};
  app.add_option("--round-ms", round_ms, "length of one measurement")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--rounds", plan.rounds, "repetitions")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_flag("--ensemble", three, "three servers instead of one");
  app.add_flag("!--no-sync", to_disk, "servers that do not wait for the disk");
  app.add_option("what", wanted, "which measurements")->check(CLI::IsMember({"one-thread", "throughput", "herd"}));
  CLI11_PARSE(app, argc, argv);
  plan.round = std::chrono::milliseconds(round_ms);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // figures appear as they come, in a file as well
  try {
    const dlock::test::ZooKeeperConfig config{
        .tick = std::chrono::milliseconds(500), .sync_to_disk = to_disk, .for_long = true};
    std::unique_ptr<dlock::test::ZooKeeperEnsemble> ensemble;
    std::unique_ptr<dlock::test::ZooKeeperServer> server;
    bench::Service service;
    if (three) {
      ensemble = std::make_unique<dlock::test::ZooKeeperEnsemble>(config);
      service.addresses = ensemble->addresses();
      for (std::size_t i = 0; i < ensemble->size(); ++i) service.servers.push_back(&ensemble->server(i));
    } else {
      server = std::make_unique<dlock::test::ZooKeeperServer>(config);
      service = {.addresses = server->address(), .servers = {server.get()}};
    }
    std::printf("ZooKeeper, %zu server(s) %s, %u processors\n\n", service.servers.size(),
                to_disk ? "that wait for the disk" : "that do not wait for the disk",
                std::thread::hardware_concurrency());
    for (const std::string& each : wanted) {
      if (each == "one-thread") bench::measure_one_thread(service, plan);
      if (each == "throughput") bench::measure_throughput(service, plan);
      if (each == "herd") bench::measure_herd(service, plan);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_zookeeper: %s\n", error.what());
    return 1;
  }
  return 0;
}
