// Locks of real services while everything around them breaks.
#include <gtest/gtest.h>

#include <string>

#include "arena.hpp"
#include "tests/torture/breakage/network.hpp"

namespace dlock::torture {
namespace {

OwnNetwork network;

class TortureTest : public testing::TestWithParam<ArenaKind> {};

// Shows: one-holder, loss-signal, growing-tokens, only-the-owner, no-residue, crash-safety, deadlines, nothing-guessed
// Shows: renewal, waiters-woken, release-reports, read-write, semaphores, fencing
TEST_P(TortureTest, AllPromisesAreKept) {
  const ArenaKind& kind = GetParam();
  if (!kind.why_not.empty()) GTEST_SKIP() << kind.why_not;
  const auto arena = kind.make();
  auto setup = usual_setup();
  setup.lock_kind = kind.lock_kind;
  setup.permits = kind.permits;
  const Outcome outcome = run_in(*arena, kind.name, setup, network);
  EXPECT_FALSE(outcome.violated());
  EXPECT_FALSE(outcome.inconclusive());
}

INSTANTIATE_TEST_SUITE_P(Services, TortureTest, testing::ValuesIn(all_arenas()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace dlock::torture

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  dlock::torture::network.entered = dlock::torture::enter_own_network(dlock::torture::network.why_not);
  return RUN_ALL_TESTS();
}
