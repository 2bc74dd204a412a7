#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>

#include "arena.hpp"
#include "tests/torture/breakage/network.hpp"
#include "tests/torture/breakage/wall_clock.hpp"
#include "torture/rig/scratch_directory.hpp"
#include "torture/rig/tcp_proxy.hpp"
#include "util/process.hpp"

namespace dlock::torture {
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

// Dropped between workers and proxies. Neither so few that nobody notices, nor so many that nothing gets through.
Fault packet_loss(const std::vector<std::uint16_t>& ports, std::uint64_t seed) {
  const auto dice = std::make_shared<Dice>(seed);
  const auto strike = [ports, dice]() -> Heal {
    constexpr int least = 5;
    constexpr int most = 40;
    const int percent = least + static_cast<int>(dice->below(most - least));
    auto losses = std::make_shared<std::vector<std::unique_ptr<PacketLoss>>>();
    for (const std::uint16_t port : ports) {
      losses->push_back(std::make_unique<PacketLoss>(PacketLoss::Share{.percent = percent, .port = port}));
    }
    return [losses] { losses->clear(); };
  };
  return {"packets dropped", "packets", strike};
}

Fault stepped_wall_clock(const std::shared_ptr<WallClock>& clock, std::uint64_t seed) {
  const auto dice = std::make_shared<Dice>(seed);
  const auto strike = [clock, dice]() -> Heal {
    const auto by = std::chrono::duration_cast<std::chrono::seconds>(dice->between(1h, 5h));
    clock->step(dice->chance(50) ? by : -by);
    return [] {};  // it stays so
  };
  return {"wall clock stepped by hours", "wall clock", strike, Linger::briefly};
}

// Faults of the machine, as far as it permits them; what it does not permit is said.
void add_machine_faults(Setup& setup, const std::string& scratch, const std::vector<std::uint16_t>& ports,
                        const OwnNetwork& network) {
  const auto left_out = [](const std::string& what, const std::string& why) {
    std::cout << "left out: " << what << ": " << why << '\n';
  };
  std::string why_not = network.why_not;
  if (ports.empty()) {
    // There is no network to lose packets.
  } else if (network.entered && PacketLoss::available(why_not)) {
    setup.service_faults.push_back(packet_loss(ports, setup.seed));
  } else {
    left_out("packets dropped", why_not);
  }
  if (WallClock::available(why_not)) {
    const auto clock = std::make_shared<WallClock>(scratch);
    setup.variables = clock->variables();
    setup.worker_ended = &WallClock::remove_traces;
    setup.service_faults.push_back(stepped_wall_clock(clock, setup.seed));
  } else {
    left_out("wall clock stepped by hours", why_not);
  }
}

}  // namespace

Setup usual_setup() {
  Setup setup{.worker = {DLOCK_TORTURE_WORKER},
              .seed = number_from("DLOCK_TORTURE_SEED").value_or(util::kernel_random() % 1'000'000),
              .length = std::chrono::seconds(number_from("DLOCK_TORTURE_SECONDS").value_or(12)),
              .lease = 1s,
              .repetitions = 5};
  set_recovery(setup, 8s);
  return setup;
}

Outcome run_in(Arena& arena, const std::string& name, Setup setup, const OwnNetwork& network, bool keep) {
  setup.directory = directory_for(name, setup.seed);
  std::vector<std::unique_ptr<rig::TcpProxy>> proxies;
  std::vector<std::uint16_t> ports;
  for (const std::uint16_t port : arena.ports()) {
    proxies.push_back(std::make_unique<rig::TcpProxy>(rig::Endpoint::loopback(port)));
    setup.proxies.push_back(proxies.back().get());
    ports.push_back(proxies.back()->port());
  }
  arena.set_proxies(setup.proxies);
  setup.url = arena.url(ports);
  setup.direct_url = arena.url(arena.ports());
  setup.service_faults = arena.faults();
  const rig::ScratchDirectory scratch;
  add_machine_faults(setup, scratch.path(), ports, network);
  setup.leftovers = [&] { return arena.leftovers(setup.lock_kind, setup.locks); };
  arena.adjust(setup);
  const auto progress = [&](const std::string& text) {
    std::cout << name << ", seed " << setup.seed << ": " << text << std::endl;
  };
  Outcome outcome = run(setup, progress);
  std::cout << report(outcome) << std::endl;
  keep = std::getenv("DLOCK_TORTURE_DIRECTORY") != nullptr || (outcome.violated() && keep);
  if (!keep) std::filesystem::remove_all(setup.directory);
  return outcome;
}

}  // namespace dlock::torture
