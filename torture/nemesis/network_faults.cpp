#include "torture/nemesis/network_faults.hpp"

#include <array>
#include <chrono>
#include <memory>
#include <utility>

namespace dlock::torture {

namespace {

using namespace std::chrono_literals;
using rig::Direction;
using rig::TcpProxy;
using rig::Traffic;

// Requests and answers have some ten to some hundred bytes; a cut is in one of the next few.
constexpr std::uint64_t cut_within = 300;
constexpr auto most_delay = 300ms;
constexpr std::size_t drip = 8;  // bytes
constexpr auto drip_interval = 2ms;

struct Network {
  std::vector<TcpProxy*> proxies;
  Dice dice;

  Direction any_direction() { return dice.chance(50) ? Direction::to_server : Direction::to_client; }
  void heal() const {
    for (TcpProxy* const proxy : proxies) {
      proxy->refuse(false);
      proxy->pass();
    }
  }
};

struct Trouble {
  const char* kind;
  Linger linger;
  void (*strike)(Network&, TcpProxy&);
  Opens opens = Opens::nothing;  // nothing: it ends connections at the server's side, too
};

constexpr std::array troubles{
    Trouble{"connection cut at some byte", Linger::within_lease,
            [](Network& n, TcpProxy& p) { p.cut_after(n.any_direction(), n.dice.below(cut_within)); },
            Opens::while_it_lasts},
    Trouble{"connections reset", Linger::briefly, [](Network&, TcpProxy& p) { p.drop(); }, Opens::when_struck},
    Trouble{"connections refused", Linger::within_lease,
            [](Network&, TcpProxy& p) {
              p.refuse(true);
              p.drop();
            },
            Opens::when_struck},
    Trouble{"black hole", Linger::beyond_lease, [](Network&, TcpProxy& p) { p.set({.mode = Traffic::Mode::hold}); }},
    Trouble{"requests held up", Linger::within_lease,
            [](Network&, TcpProxy& p) { p.set(Direction::to_server, {.mode = Traffic::Mode::hold}); }},
    Trouble{"answers held up", Linger::within_lease,
            [](Network&, TcpProxy& p) { p.set(Direction::to_client, {.mode = Traffic::Mode::hold}); }},
    // The connection and its locks survive; a request that times out meanwhile has an unknown outcome.
    Trouble{"answers held up for a moment", Linger::briefly,
            [](Network&, TcpProxy& p) { p.set(Direction::to_client, {.mode = Traffic::Mode::hold}); }},
    Trouble{"peer stopped reading", Linger::within_lease,
            [](Network&, TcpProxy& p) { p.set(Direction::to_server, {.mode = Traffic::Mode::stop}); }},
    Trouble{"slow network", Linger::within_lease,
            [](Network& n, TcpProxy& p) { p.set({.delay = n.dice.between(most_delay / 10, most_delay)}); }},
    Trouble{"slow drip", Linger::within_lease,
            [](Network&, TcpProxy& p) { p.set({.drip_bytes = drip, .drip_interval = drip_interval}); }},
};

}  // namespace

std::vector<Fault> network_faults(std::vector<TcpProxy*> proxies, std::uint64_t seed) {
  const auto network = std::make_shared<Network>(Network{std::move(proxies), Dice(seed)});
  if (network->proxies.empty()) return {};
  std::vector<Fault> faults;
  for (const Trouble& trouble : troubles) {
    const auto strike = [network, strike = trouble.strike]() -> Heal {
      for (TcpProxy* const proxy : network->proxies) strike(*network, *proxy);
      return [network] { network->heal(); };
    };
    faults.push_back({trouble.kind, "network", strike, trouble.linger, 1, trouble.opens});
  }
  return faults;
}

}  // namespace dlock::torture
