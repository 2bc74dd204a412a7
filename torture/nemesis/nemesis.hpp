// Breaks things, one after the other and two at once, in an order that is a seed's.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "torture/dice.hpp"
#include "torture/history/history_file.hpp"
#include "torture/nemesis/crew.hpp"
#include "torture/worker/board.hpp"

namespace dlock::torture {

// Mends what was broken.
using Heal = std::function<void()>;

// For how long something stays broken.
enum class Linger {
  briefly,       // it is the break that counts
  within_lease,  // up to about a lease
  beyond_lease,  // longer than a lease, so that another process has the lock by then
};

// When a fault makes a known hole of the service matter: locks are taken from holders that do not know of it yet.
enum class Opens {
  nothing,
  when_struck,     // as long as it takes to break it
  while_it_lasts,  // at any time until it is mended
};

struct Fault {
  std::string kind;
  // What it breaks, where that is one thing for all: such faults do not meet, as one would mend what another broke.
  // Empty for a fault of one process, of which each meets any other.
  std::string group;
  // Breaks something; empty where there is nothing to break at the moment.
  std::function<Heal()> strike;
  Linger linger = Linger::within_lease;
  std::size_t weight = 1;  // how often it is struck, compared with others
  Opens opens = Opens::nothing;
};

// One thread, the crew's.
class Nemesis {
 public:
  Nemesis(std::vector<Fault> faults, std::chrono::nanoseconds lease, std::uint64_t seed, Crew& crew,
          HistoryFile& notes);

  // Until the time has passed and everything that was broken is mended. False: a stop was requested.
  bool rage(std::chrono::nanoseconds length, const std::stop_token& stop);
  // Breaks nothing for so long, but replaces workers that have ended. False: a stop was requested.
  bool wait(std::chrono::nanoseconds length, const std::stop_token& stop);
  // How often each kind of fault was struck; all kinds are there.
  [[nodiscard]] const std::map<std::string, std::size_t>& struck() const noexcept { return struck_; }

 private:
  struct Strike {
    const Fault* fault = nullptr;
    Heal heal{};
  };

  [[nodiscard]] std::vector<const Fault*> in_turn(bool of_process);
  [[nodiscard]] Strike strike(const Fault& fault);
  [[nodiscard]] std::chrono::nanoseconds how_long(Linger linger);
  void mend(Strike& strike);
  void one_or_two(const std::stop_token& stop);

  std::vector<Fault> faults_;
  const std::chrono::nanoseconds lease_;
  Dice dice_;
  Crew& crew_;
  HistoryFile& notes_;
  std::map<std::string, std::size_t> struck_;
};

}  // namespace dlock::torture
