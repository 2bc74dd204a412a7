#include "torture/run/known_holes.hpp"

namespace dlock::torture {

KnownHole known_hole(const Capabilities& capabilities) {
  const bool of_connections = capabilities.backend == "postgresql" && capabilities.lease_kind == LeaseKind::session;
  if (!of_connections) return {};
  return {.rules = {Rule::exclusion, Rule::growing_tokens},
          .told_at_once = true,  // no fault hides the end of a connection from its client
          .why =
              "the server frees a lock as soon as its end of the connection breaks; the holder learns of it a moment "
              "later, or when its process resumes, but no later than the end of its lease"};
}

Hole hole_under(const KnownHole& known, std::span<const Fault> faults, std::chrono::nanoseconds lease) {
  if (known.rules.empty()) return {};
  Hole hole{.rules = known.rules, .belief = lease + known.lasts, .told_at_once = known.told_at_once};
  for (const Fault& fault : faults) {
    if (fault.opens == Opens::when_struck) hole.strikes.insert(fault.kind);
    if (fault.opens == Opens::while_it_lasts) hole.faults.insert(fault.kind);
  }
  return hole;
}

}  // namespace dlock::torture
