// Kills holders, of a backend that needs no server: real ones and shell scripts.
#include "bench/scenarios/recovery.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>

#include "bench/report/figures.hpp"
#include "bench/scenarios/scenario.hpp"
#include "bench/scenarios/work.hpp"
#include "tests/unit/bench/scenarios/test_target.hpp"
#include "torture/rig/scratch_directory.hpp"

namespace dlock::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class RecoveryTest : public testing::Test {
 protected:
  RecoveryTest() { plan_.scenarios = {"recovery"}; }

  // A script that notes its arguments and its URL first.
  std::string program(const std::string& script) {
    const std::string path = directory_.path() + "/holder";
    std::ofstream(path) << "#!/bin/sh\necho \"$*; $DLOCK_URL\" > " << directory_.path() << "/noted\n" << script << "\n";
    EXPECT_EQ(::chmod(path.c_str(), 0700), 0);
    return path;
  }
  std::string failure_with(const std::string& program) {
    plan_.dlock_program = program;
    try {
      (void)steps_of(target_, plan_).at(0).run(stop_.get_token());
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "nothing";
  }

  const rig::ScratchDirectory directory_;
  TestTarget target_{"file://" + directory_.path()};
  Plan plan_ = tiny_plan();
  std::stop_source stop_;
};

#ifdef DLOCK_PROGRAM
TEST_F(RecoveryTest, Recovery_LastsFromTheKillUntilTheWaiterHolds) {
  plan_.dlock_program = DLOCK_PROGRAM;
  const auto steps = steps_of(target_, plan_);
  ASSERT_EQ(steps.size(), 1U);
  const auto measured = steps[0].run({});
  ASSERT_EQ(measured.size(), 1U);
  EXPECT_EQ(measured[0].scenario, scenario::recovery);
  EXPECT_EQ(measured[0].who, Who::dlock);
  EXPECT_TRUE(measured[0].parameters.empty());
  const Figure* p50 = measured[0].figure(figure::p50);
  ASSERT_NE(p50, nullptr);
  EXPECT_EQ(p50->repeats.size(), 2U) << "one for each kill";
  EXPECT_GT(p50->lowest(), 0);
  EXPECT_EQ(measured[0].figure(figure::longest)->repeats, std::vector<double>{p50->highest()});
  EXPECT_EQ(measured[0].figure(figure::lease)->highest(), 0) << "the kernel frees the lock, not the time";
  EXPECT_FALSE(measured[0].cdf.empty());
}
#endif

TEST_F(RecoveryTest, HolderThatHoldsNothing_IsAnError) {
  const struct {
    std::string script;
    std::string failure;
  } rows[] = {
      {"printf 'trouble 1\\n1763719872512034\\ntrouble 2\\n'; exec sleep 1000",
       "could be acquired while another process held it"},
      {"echo 'error 12' >&2; exit 74", "the holder ended: error 12"},
  };
  for (const auto& row : rows) EXPECT_THAT(failure_with(program(row.script)), testing::HasSubstr(row.failure));
  EXPECT_THAT(failure_with(directory_.path() + "/nothing"),
              testing::HasSubstr("the holder ended: cannot execute the program " + directory_.path() + "/nothing"));
  std::ifstream noted(directory_.path() + "/noted");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(noted), {}),
            "hold --quiet --lease 2000ms dlock-bench/recovery/0; file://" + directory_.path() + "?lease=2000ms\n");
}

TEST_F(RecoveryTest, WaitForAHolder_EndsAtTheLimitOrAStop) {
  const rig::ChildProcess holder({program("exec sleep 1000")});
  EXPECT_THROW((void)await_token(holder, std::chrono::nanoseconds(1), {}), std::runtime_error);
  stop_.request_stop();
  EXPECT_FALSE(await_token(holder, std::chrono::hours(1), stop_.get_token()));
}

// The holder is a script that has a pipe open until it is killed; then the test frees the lock, which it holds for it.
TEST_F(RecoveryTest, Kill_IsAtARandomMomentBetweenTwoRenewals) {
  const std::string pipe = directory_.path() + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  plan_.dlock_program = program("exec 3> " + pipe + "; echo 1; exec sleep 1000");
  const TestTarget target("memory://recovery");
  const Client client = target.connect(1);
  const Rounds rounds = recovery(target, plan_, {});
  milliseconds shortest = milliseconds::max();
  milliseconds longest{0};
  for (int repeat = 0; repeat < 3; ++repeat) {
    Lease lease = client.make_lock(lock_name("recovery")).acquire();
    const auto begun = Clock::now();
    std::jthread service([&] {
      std::ifstream end(pipe);
      (void)end.get();
      const auto lived = std::chrono::duration_cast<milliseconds>(Clock::now() - begun);
      (void)lease.release();
      shortest = std::min(shortest, lived);
      longest = std::max(longest, lived);
    });
    const Round round = rounds(repeat, {});
    EXPECT_EQ(round.lease, seconds(2));
    EXPECT_EQ(round.window.samples.count(), 1U);
  }
  // The numbers are the same each time: after 13, 14 and 45 % of a third of the lease, when the waiter stands in line.
  EXPECT_GE(shortest, milliseconds(200 + 89));
  EXPECT_LT(shortest, milliseconds(200 + 667)) << "a third of the lease";
  EXPECT_GE(longest, milliseconds(200 + 300));
}

TEST_F(RecoveryTest, WithoutProgramOrOtherProcesses_IsNotMeasured) {
  EXPECT_TRUE(steps_of(target_, plan_).empty());
  plan_.dlock_program = "/bin/true";
  EXPECT_EQ(steps_of(target_, plan_).size(), 1U);
  TestTarget memory;
  EXPECT_TRUE(steps_of(memory, plan_).empty());
  plan_.kills = 0;
  EXPECT_TRUE(steps_of(target_, plan_).empty());
}

}  // namespace
}  // namespace dlock::bench
