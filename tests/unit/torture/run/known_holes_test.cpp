#include "torture/run/known_holes.hpp"

#include <gtest/gtest.h>

namespace dlock::torture {
namespace {

TEST(KnownHolesTest, LocksThatLiveInAConnectionToPostgresqlMayBeFreedUnderTheirHolder) {
  const KnownHole hole =
      known_hole({.backend = "postgresql", .strategy = "advisory", .lease_kind = LeaseKind::session});
  EXPECT_TRUE(hole.without.contains(Rule::exclusion));
  EXPECT_FALSE(hole.without.contains(Rule::fencing)) << "what checks tokens is safe nevertheless";
  EXPECT_FALSE(hole.why.empty());
}

TEST(KnownHolesTest, AllOthersKeepAllPromises) {
  for (const Capabilities& capabilities :
       {Capabilities{.backend = "postgresql", .strategy = "table", .lease_kind = LeaseKind::per_lock},
        Capabilities{.backend = "zookeeper", .strategy = "sequential", .lease_kind = LeaseKind::session},
        Capabilities{.backend = "redis", .strategy = "queue", .lease_kind = LeaseKind::per_lock},
        Capabilities{.backend = "file", .lease_kind = LeaseKind::process}}) {
    EXPECT_TRUE(known_hole(capabilities).without.empty()) << capabilities.backend;
  }
}

}  // namespace
}  // namespace dlock::torture
