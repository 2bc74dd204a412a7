// Promises that a service is known not to keep, which are no violations.
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
  // How long a replaced server continues to renew its grants; they last a lease longer.
  std::chrono::nanoseconds lasts{};
  std::string why{};
};

// Of the strategy with these capabilities, under the faults of torture; docs/guarantees.md lists the same.
[[nodiscard]] KnownHole known_hole(const Capabilities& capabilities);

// For the checker: with the faults that open it, and the time for which a holder may believe in a lock.
[[nodiscard]] Hole hole_under(const KnownHole& known, std::span<const Fault> faults, std::chrono::nanoseconds lease);

}  // namespace dlock::torture
