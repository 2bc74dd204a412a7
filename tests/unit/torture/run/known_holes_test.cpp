#include "torture/run/known_holes.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "torture/nemesis/network_faults.hpp"

namespace dlock::torture {
namespace {

using namespace std::chrono_literals;

TEST(KnownHolesTest, LocksThatLiveInAConnectionToPostgresqlMayBeFreedUnderTheirHolder) {
  const KnownHole hole =
      known_hole({.backend = "postgresql", .strategy = "advisory", .lease_kind = LeaseKind::session});
  EXPECT_TRUE(hole.rules.contains(Rule::exclusion));
  EXPECT_FALSE(hole.rules.contains(Rule::fencing)) << "what checks tokens is safe nevertheless";
  EXPECT_TRUE(hole.told_at_once);
  EXPECT_FALSE(hole.why.empty());
}

TEST(KnownHolesTest, AreOpenedByTheFaultsThatSaySoForAsLongAsALease) {
  const std::vector<Fault> faults{{"reset", "", nullptr, Linger::briefly, 1, Opens::when_struck},
                                  {"cut", "", nullptr, Linger::briefly, 1, Opens::while_it_lasts},
                                  {"slow", "", nullptr}};
  const Hole hole = hole_under({.rules = {Rule::exclusion}, .told_at_once = true}, faults, 3s);
  EXPECT_EQ(hole.rules, std::set<Rule>{Rule::exclusion});
  EXPECT_EQ(hole.strikes, std::set<std::string>{"reset"});
  EXPECT_EQ(hole.faults, std::set<std::string>{"cut"});
  EXPECT_EQ(hole.belief, 3s);
  EXPECT_TRUE(hole.told_at_once);
  EXPECT_TRUE(hole_under({}, faults, 3s).strikes.empty()) << "there is no hole";
}

TEST(KnownHolesTest, FaultsOfTheNetworkThatEndConnectionsOpenThem) {
  rig::TcpProxy proxy(rig::Endpoint::loopback(1));
  const Hole hole = hole_under({.rules = {Rule::exclusion}}, network_faults({&proxy}, 1), 1s);
  EXPECT_EQ(hole.strikes, (std::set<std::string>{"connections reset", "connections refused"}));
  EXPECT_EQ(hole.faults, std::set<std::string>{"connection cut at some byte"});
}

TEST(KnownHolesTest, AllOthersKeepAllPromises) {
  for (const Capabilities& capabilities :
       {Capabilities{.backend = "postgresql", .strategy = "table", .lease_kind = LeaseKind::per_lock},
        Capabilities{.backend = "zookeeper", .strategy = "sequential", .lease_kind = LeaseKind::session},
        Capabilities{.backend = "redis", .strategy = "queue", .lease_kind = LeaseKind::per_lock},
        Capabilities{.backend = "file", .lease_kind = LeaseKind::process}}) {
    EXPECT_TRUE(known_hole(capabilities).rules.empty()) << capabilities.backend;
  }
}

}  // namespace
}  // namespace dlock::torture
