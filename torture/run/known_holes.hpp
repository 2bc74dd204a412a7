// What a service is known not to promise, so that it is no violation.
#pragma once

#include <set>
#include <string>

#include <dlock/capabilities.hpp>

#include "torture/checker/checker.hpp"

namespace dlock::torture {

struct KnownHole {
  std::set<Rule> without{};  // nothing: there is none
  std::string why{};
};

// Of the strategy that these are the capabilities of, under the faults of torture; docs/guarantees.md says the same.
[[nodiscard]] KnownHole known_hole(const Capabilities& capabilities);

}  // namespace dlock::torture
