// Kills real holders, of a backend that needs no server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/report/figures.hpp"
#include "bench/scenarios/scenario.hpp"
#include "tests/unit/bench/scenarios/test_target.hpp"
#include "torture/rig/scratch_directory.hpp"

namespace dlock::bench {
namespace {

class RecoveryTest : public testing::Test {
 protected:
  RecoveryTest() { plan_.dlock_program = DLOCK_PROGRAM; }

  const rig::ScratchDirectory directory_;
  TestTarget target_{"file://" + directory_.path()};
  Plan plan_ = tiny_plan();
};

TEST_F(RecoveryTest, IsTheTimeFromTheKillUntilTheWaiterHolds) {
  const auto steps = recovery_steps(target_, plan_);
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_EQ(steps[0].what, "recovery, 2 holders killed");
  const auto measured = steps[0].run({});
  ASSERT_EQ(measured.size(), 1U);
  EXPECT_EQ(measured[0].scenario, scenario::recovery);
  EXPECT_EQ(measured[0].who, Who::dlock);
  EXPECT_EQ(measured[0].parameters, (Parameters{{"lease_ms", 0}})) << "the kernel frees the lock, not the time";
  ASSERT_NE(measured[0].figure(figure::p50), nullptr);
  EXPECT_EQ(measured[0].figure(figure::p50)->repeats.size(), 2U) << "one for each kill";
  ASSERT_NE(measured[0].figure(figure::longest), nullptr);
  EXPECT_EQ(measured[0].figure(figure::longest)->repeats,
            std::vector<double>{measured[0].figure(figure::p50)->highest()});
  EXPECT_FALSE(measured[0].cdf.empty());
}

TEST_F(RecoveryTest, AHolderThatCannotStartIsAnError) {
  plan_.dlock_program = directory_.path() + "/nothing";
  EXPECT_THROW((void)recovery_steps(target_, plan_).front().run({}), std::runtime_error);
}

TEST_F(RecoveryTest, IsNotMeasuredWithoutTheProgram) {
  plan_.dlock_program.clear();
  EXPECT_TRUE(recovery_steps(target_, plan_).empty());
  plan_.dlock_program = DLOCK_PROGRAM;
  plan_.kills = 0;
  EXPECT_TRUE(recovery_steps(target_, plan_).empty());
}

}  // namespace
}  // namespace dlock::bench
