// Injects faults, one after the other and two at once, in an order from a seed.
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

// Ends a fault.
using Heal = std::function<void()>;

// How long a fault lasts.
enum class Linger {
  briefly,       // only its begin matters
  within_lease,  // up to about one lease
  beyond_lease,  // longer than a lease, so that a different process gets the lock
};

// When a fault opens a known hole of the service: locks are taken from holders that have not learned of it.
enum class Opens {
  nothing,
  when_struck,     // while it begins
  while_it_lasts,  // until it is healed
};

struct Fault {
  std::string kind;
  // The thing that it affects, if all share it: such faults are never combined, as healing one could heal the other.
  // Empty: a fault of one process, which may be combined with any other.
  std::string group;
  // Injects the fault; returns nullptr if there is no victim now.
  std::function<Heal()> strike;
  Linger linger = Linger::within_lease;
  std::size_t weight = 1;  // how often it is struck, compared with others
  Opens opens = Opens::nothing;
};

// Use it on the crew's thread.
class Nemesis {
 public:
  Nemesis(std::vector<Fault> faults, std::chrono::nanoseconds lease, std::uint64_t seed, Crew& crew,
          HistoryFile& notes);

  // Returns once the time has passed and all faults are healed. False: a stop was requested.
  bool rage(std::chrono::nanoseconds length, const std::stop_token& stop);
  // Injects nothing for so long, but replaces workers that have ended. False: a stop was requested.
  bool wait(std::chrono::nanoseconds length, const std::stop_token& stop);
  // How often each kind of fault was struck; has all kinds.
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
