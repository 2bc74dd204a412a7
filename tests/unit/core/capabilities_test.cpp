#include <dlock/capabilities.hpp>

#include <gtest/gtest.h>

namespace dlock {
namespace {

TEST(Capabilities, EveryValueHasItsName) {
  EXPECT_EQ(to_string(Scope::process), "process");
  EXPECT_EQ(to_string(Scope::machine), "machine");
  EXPECT_EQ(to_string(Scope::network), "network");
  EXPECT_EQ(to_string(LeaseKind::per_lock), "per_lock");
  EXPECT_EQ(to_string(LeaseKind::session), "session");
  EXPECT_EQ(to_string(LeaseKind::process), "process");
  EXPECT_EQ(to_string(FencingDurability::none), "none");
  EXPECT_EQ(to_string(FencingDurability::wall_clock), "wall_clock");
  EXPECT_EQ(to_string(FencingDurability::service), "service");
}

TEST(Capabilities, AValueFromNowhereIsUnknown) {
  EXPECT_EQ(to_string(static_cast<Scope>(99)), "unknown");
  EXPECT_EQ(to_string(static_cast<LeaseKind>(99)), "unknown");
  EXPECT_EQ(to_string(static_cast<FencingDurability>(99)), "unknown");
}

}  // namespace
}  // namespace dlock
