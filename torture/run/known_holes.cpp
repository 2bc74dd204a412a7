#include "torture/run/known_holes.hpp"

namespace dlock::torture {

KnownHole known_hole(const Capabilities& capabilities) {
  const bool of_connections = capabilities.backend == "postgresql" && capabilities.lease_kind == LeaseKind::session;
  if (!of_connections) return {};
  return {
      .without = {Rule::exclusion, Rule::growing_tokens},
      .why =
          "the server frees a lock as soon as its end of the connection breaks, and the holder may hear of it later, "
          "though not later than at the end of its lease"};
}

}  // namespace dlock::torture
