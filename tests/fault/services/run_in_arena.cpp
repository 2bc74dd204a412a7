#include "run_in_arena.hpp"

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>

#include "tests/support/scratch_directory.hpp"
#include "tests/support/tcp_proxy.hpp"
#include "util/process.hpp"

namespace dlock::fault {

namespace {

using namespace std::chrono_literals;

std::optional<std::uint64_t> number_from(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? std::nullopt : std::optional<std::uint64_t>(std::stoull(text));
}

std::filesystem::path directory_for(const std::string& name, std::uint64_t seed) {
  const char* const kept = std::getenv("DLOCK_TORTURE_DIRECTORY");
  const auto parent = kept == nullptr ? std::filesystem::temp_directory_path() : std::filesystem::path(kept);
  auto directory = parent / ("dlock-torture-" + name + "-" + std::to_string(seed));
  std::filesystem::remove_all(directory);  // of an earlier run with this seed
  std::filesystem::create_directories(directory);
  return directory;
}

}  // namespace

Outcome run_in(Arena& arena, const std::string& name, const RunOptions& options) {
  Setup setup;
  setup.worker = {options.worker};
  setup.seed = options.seed.value_or(number_from("DLOCK_TORTURE_SEED").value_or(util::kernel_random() % 1'000'000));
  setup.length = options.length.value_or(std::chrono::seconds(number_from("DLOCK_TORTURE_SECONDS").value_or(12)));
  setup.lease = 1s;
  setup.repetitions = options.repetitions;
  // A session may take twice its time to end, and a connection one second to be set up.
  setup.rules.recovery = 8s;
  setup.rules.settled = 8s;
  setup.directory = directory_for(name, setup.seed);
  std::vector<std::unique_ptr<test::TcpProxy>> proxies;
  std::vector<std::uint16_t> ports;
  for (const std::uint16_t port : arena.ports()) {
    proxies.push_back(std::make_unique<test::TcpProxy>(test::Endpoint::loopback(port)));
    setup.proxies.push_back(proxies.back().get());
    ports.push_back(proxies.back()->port());
  }
  setup.url = arena.url(ports);
  setup.direct_url = arena.url(arena.ports());
  setup.service_faults = arena.faults();
  setup.leftovers = [&] { return arena.leftovers(setup.locks); };
  arena.adjust(setup);
  const auto progress = [&](const std::string& text) {
    std::cout << name << ", seed " << setup.seed << ": " << text << std::endl;
  };
  Outcome outcome = torture(setup, progress);
  std::cout << report(outcome) << std::endl;
  const bool keep = std::getenv("DLOCK_TORTURE_DIRECTORY") != nullptr || (outcome.violated() && options.keep);
  if (!keep) std::filesystem::remove_all(setup.directory);
  return outcome;
}

}  // namespace dlock::fault
