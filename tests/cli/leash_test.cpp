// dlock hold ends with whoever started it.
#include "cli/leash.hpp"

#include <poll.h>
#include <unistd.h>

#include <csignal>

#include "support/cli_test.hpp"
#include "torture/rig/hang_guard.hpp"

namespace dlock::cli::test {
namespace {

class LeashTest : public CliTest {
 protected:
  static bool ends(const Leash& leash) {
    pollfd source{.fd = leash.ended_fd(), .events = POLLIN, .revents = 0};
    return ::poll(&source, 1, dlock::rig::hang_guard_ms) == 1;
  }
  static bool has_ended(const Leash& leash) {
    pollfd source{.fd = leash.ended_fd(), .events = POLLIN, .revents = 0};
    return ::poll(&source, 1, 0) == 1;
  }
};

TEST_F(LeashTest, HoldFreesTheLockWhenItsInputEnds) {
  Process hold(dlock("hold", {"--until-eof", "job"}));
  (void)hold.line();
  hold.write("what comes before does not matter\n");
  EXPECT_FALSE(lock_is_free());
  hold.close_input();
  EXPECT_EQ(hold.wait(), 0);
  EXPECT_TRUE(lock_is_free());
}

TEST_F(LeashTest, HoldFreesTheLockWhenTheProcessEnds) {
  Process parent({probe_path(), "wait"});
  (void)parent.line();
  Process hold(dlock("hold", {"--parent", std::to_string(parent.pid()), "job"}));
  (void)hold.line();
  EXPECT_FALSE(lock_is_free());
  parent.signal(SIGKILL);
  EXPECT_EQ(hold.wait(), 0);
  EXPECT_TRUE(lock_is_free());
}

TEST_F(LeashTest, AWaitEndsAsByHup) {
  Process holder(run_probe({"wait"}));
  (void)holder.line();
  Process hold(dlock("hold", {"--until-eof", "job"}));
  hold.close_input();
  EXPECT_EQ(hold.wait(), 128 + SIGHUP);
}

TEST_F(LeashTest, AProcessThatIsNotThereIsRefused) {
  Process parent({"true"});
  const pid_t gone = parent.pid();
  (void)parent.wait();
  const Finished refused = run(dlock("hold", {"--parent", std::to_string(gone), "job"}));
  EXPECT_EQ(refused.status, 64);
  EXPECT_EQ(refused.err, "dlock: --parent: there is no process " + std::to_string(gone) + "\n");
  EXPECT_EQ(run(dlock("hold", {"--parent", "0", "job"})).status, 64);
}

TEST_F(LeashTest, AProcessIsWatchedWithAndWithoutADescriptor) {
  for (const bool pinned : {true, false}) {
    Process process({probe_path(), "wait"});
    (void)process.line();
    const Leash leash({.with_process = process.pid()}, pinned);
    EXPECT_FALSE(has_ended(leash));
    process.signal(SIGKILL);  // a zombie until it is waited for
    EXPECT_TRUE(ends(leash)) << pinned;
  }
}

}  // namespace
}  // namespace dlock::cli::test
