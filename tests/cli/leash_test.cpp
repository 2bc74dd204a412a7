// The end of a process is noticed. What it means for dlock hold is in hold.transcript.
#include "cli/leash.hpp"

#include <poll.h>
#include <unistd.h>

#include <csignal>

#include "support/cli_test.hpp"
#include "torture/rig/hang_guard.hpp"

namespace dlock::cli::test {
namespace {

class LeashTest : public testing::Test {
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
