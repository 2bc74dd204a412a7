// What a service is known not to promise, so that it is no violation.
#pragma once

#include <chrono>
#include <set>
#include <span>
#include <string>

#include <dlock/capabilities.hpp>

#include "torture/checker/checker.hpp"
#include "torture/nemesis/nemesis.hpp"

namespace dlock::torture {

struct KnownHole {
  std::set<Rule> rules{};     // as in Hole
  bool told_at_once = false;  // as in Hole
  // For how long a server that was replaced goes on renewing what it granted; from then on it is a lease.
  std::chrono::nanoseconds lasts{};
  std::string why{};
};

// Of the strategy that these are the capabilities of, under the faults of torture; docs/guarantees.md says the same.
[[nodiscard]] KnownHole known_hole(const Capabilities& capabilities);

// For the checker: with those of the faults that open it, and for how long a holder believes in a lock.
[[nodiscard]] Hole hole_under(const KnownHole& known, std::span<const Fault> faults, std::chrono::nanoseconds lease);

}  // namespace dlock::torture
