// Locks of real services while everything around them breaks.
#include <gtest/gtest.h>

#include "arena.hpp"
#include "run_in_arena.hpp"

namespace dlock::fault {

namespace {

class TortureTest : public testing::TestWithParam<ArenaKind> {};

TEST_P(TortureTest, AllPromisesAreKept) {
  const auto arena = GetParam().make();
  const Outcome outcome = run_in(*arena, GetParam().name);
  EXPECT_FALSE(outcome.violated());
  EXPECT_FALSE(outcome.inconclusive());
}

INSTANTIATE_TEST_SUITE_P(Services, TortureTest, testing::ValuesIn(all_arenas()),
                         [](const auto& test) { return test.param.name; });

}  // namespace

}  // namespace dlock::fault
