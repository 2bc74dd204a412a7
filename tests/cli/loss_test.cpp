// A command never outlives its lock: the lock is lost, dlock is killed, the command leaves processes behind.
#include <sched.h>
#include <sys/wait.h>

#include <csignal>
#include <filesystem>

#include "cli/guardian.hpp"
#include "support/cli_test.hpp"
#include "support/full_pipe.hpp"

namespace dlock::cli::test {
namespace {

class Loss : public CliTest {};

TEST_F(Loss, LostLock_TerminatesTheCommandWithStatus79) {
  Process run(run_probe({"listen"}));
  (void)run.line();
  remove_lock_files();
  const Finished result = run.finish();
  EXPECT_EQ(result.out, std::to_string(SIGTERM) + "\n");
  EXPECT_EQ(result.status, 79);
  EXPECT_THAT(result.err, testing::StartsWith("dlock: lost \"job\""));
}

TEST_F(Loss, LostLock_EndsAStoppedCommand) {
  Process run(run_probe({"listen"}));
  const pid_t command = pids_in(run.line()).at(0);
  ASSERT_EQ(::kill(command, SIGSTOP), 0);
  remove_lock_files();
  EXPECT_EQ(run.wait(), 79);
}

TEST_F(Loss, Guardian_HoldsOnlyItsDescriptorsAndEndsWithDlock) {
  Process run(run_probe({"wait"}));
  (void)run.line();
  const auto guardian = child_named("lock-guard", run.pid());
  ASSERT_TRUE(guardian);
  std::vector<std::string> targets;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(*guardian) + "/fd")) {
    targets.push_back(std::filesystem::read_symlink(entry).string());
  }
  EXPECT_THAT(targets,
              testing::UnorderedElementsAre(testing::StartsWith("pipe:"), testing::StrEq("anon_inode:[timerfd]")));
  const Watched watched(*guardian);
  run.signal(SIGKILL);
  EXPECT_TRUE(watched.wait_for_death());
}

TEST_F(Loss, GuardianKilled_IsReplaced) {
  Process run(run_probe({"family"}));
  const auto pids = pids_in(run.line());
  const Watched leader(pids.at(0));
  const Watched grandchild(pids.at(1));
  const auto first = child_named("lock-guard", run.pid());
  ASSERT_TRUE(first);
  ASSERT_EQ(::kill(*first, SIGKILL), 0);
  auto second = child_named("lock-guard", run.pid());
  while (!second || *second == *first) {  // ended by ctest's time limit if it never comes
    ::sched_yield();
    second = child_named("lock-guard", run.pid());
  }
  // The new guardian has its orders before dlock looks at the next signal.
  run.signal(SIGUSR1);
  EXPECT_EQ(run.line(), "usr1");
  run.signal(SIGKILL);
  EXPECT_TRUE(leader.wait_for_death());
  EXPECT_TRUE(grandchild.wait_for_death());
}

// Continued, it would find orders that are long out of date, and end a command whose lock is held.
TEST(Guardian, StoppedTooLong_IsKilled) {
  Guardian guardian;
  ASSERT_EQ(::kill(guardian.pid(), SIGSTOP), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(guardian.pid(), &status, WUNTRACED), guardian.pid());
  ASSERT_TRUE(WIFSTOPPED(status));
  const Watched watched(guardian.pid());
  while (guardian.watch({}, {}, TimePoint::max())) {
  }
  EXPECT_TRUE(watched.wait_for_death());
}

#ifdef DLOCK_TEST_WITH_MEMORY
TEST_F(Loss, LostLead_EndsTheCommandAndWithOnceTheCandidacy) {
  for (const bool once : {false, true}) {
    Process candidate({dlock_path(), "elect", "--quiet", "--url", "memory://", "--lease", "500ms",
                       once ? "--once" : "--wait=forever", "post", "--", probe_path(), "family"});
    for (int term = 0; term < (once ? 1 : 2); ++term) {
      const auto pids = pids_in(candidate.line());
      const Watched leader(pids.at(0));
      const Watched grandchild(pids.at(1));
      candidate.signal(SIGSTOP);
      EXPECT_TRUE(leader.wait_for_death());
      EXPECT_TRUE(grandchild.wait_for_death());
      candidate.signal(SIGCONT);
    }
    EXPECT_THAT(candidate.error_line(), testing::StartsWith("dlock: lost \"post\""));
    if (once) {
      EXPECT_EQ(candidate.wait(), 79);
    }
  }
}

#endif

TEST_F(Loss, ProcessesLeftBehind_EndBeforeTheLockIsFree) {
  Process run(run_probe({"orphan"}, {"--kill-after", "50ms"}));
  const Watched orphan(pids_in(run.line()).at(1));
  const Finished result = run.finish();
  EXPECT_EQ(result.status, 5);
  EXPECT_TRUE(orphan.is_dead());
  EXPECT_THAT(result.err, testing::HasSubstr("left processes behind"));
}

// Whatever dlock says there, it must have acted before.
TEST_F(Loss, ProcessesLeftBehind_EndWhileStandardErrorIsUnread) {
  FullPipe errors;
  const auto command =
      dlock("run", {"--kill-after", "50ms", "job", "--", "sh", "-c", "\"$0\" listen & \"$0\" orphan", probe_path()});
  Process run(command, {.error = errors.write_end()});
  std::vector<Watched> left;
  while (left.size() < 3) {
    for (const pid_t pid : pids_in(run.line())) left.emplace_back(pid);
  }
  Process waiter(run_probe({"environment", "DLOCK_NAME"}));
  run.close_input();
  for (const Watched& process : left) EXPECT_TRUE(process.wait_for_death());
  errors.drain();
  EXPECT_EQ(run.wait(), 5);
  EXPECT_EQ(waiter.finish().out, "job\n");
}

}  // namespace
}  // namespace dlock::cli::test
