// The lock service of a simulation: the memory backend's store with a clock of its own, and what can be wrong with it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <dlock/token.hpp>

#include "backends/memory/memory_backend.hpp"
#include "backends/memory/memory_store.hpp"
#include "torture/simulation/clocks.hpp"
#include "torture/simulation/mutation.hpp"
#include "torture/simulation/network.hpp"
#include "torture/simulation/world.hpp"

namespace dlock::torture::simulation {

// A session without an owner, which hears nothing.
class Nobody final : public memory::Session {
 public:
  Nobody() : Session("nobody") {}
  void granted(LockKind, const std::string&, const OwnerId&, FencingToken, TimePoint) override {}
  void first_in_line(LockKind, const std::string&, const OwnerId&, TimePoint) override {}
  void freed(std::uint64_t) override {}
  void killed() override {}
};

struct Service {
  Service(World& world, memory::Strategy way_to_wait, std::chrono::nanoseconds latency, Mutation what_is_wrong)
      : strategy(way_to_wait),
        mutation(what_is_wrong),
        network(std::make_shared<Network>(world, latency, what_is_wrong == Mutation::lost_wake_up)),
        clock(world.time) {}

  // From now on messages travel through the network; or for all that we ask for, the store is called.
  void travel(bool by_network) {
    network_used_ += by_network ? 1 : -1;
    store->faults().inject(network_used_ > 0 ? network : nullptr);
  }

  const memory::Strategy strategy;
  const Mutation mutation;
  const std::shared_ptr<memory::MemoryStore> store = std::make_shared<memory::MemoryStore>();
  const std::shared_ptr<Network> network;
  ServiceClock clock;
  // For mutations: another owner, the last token of each lock, how many held each at the last request, who was granted
  // each, and how often something could have gone wrong.
  Nobody nobody;
  std::map<std::string, FencingToken> last_token;
  std::map<std::string, std::size_t> counted;
  std::map<std::string, std::vector<OwnerId>> owners;
  std::uint64_t occasions = 0;

 private:
  int network_used_ = 0;  // by so many
};

}  // namespace dlock::torture::simulation
