// The reader of dlock's output does not read: a pipe is full, a pager is stopped. That costs no lock, and dlock still
// receives signals and losses.
#include <csignal>
#include <string>

#include "cli/system.hpp"
#include "support/cli_test.hpp"
#include "support/full_pipe.hpp"
#include "tests/support/redis_server.hpp"
#include "torture/rig/tcp_proxy.hpp"

namespace dlock::cli::test {
namespace {

using dlock::rig::Endpoint;
using dlock::rig::TcpProxy;
using dlock::test::RedisServer;

class UnreadError : public CliTest {
 protected:
  const FullPipe full;
};

// Two leases go by after the reconnection: if it kept the lease from being renewed, the command would be ended.
TEST_F(UnreadError, Reconnection_CostsNoLock) {
  RedisServer server;
  TcpProxy proxy(Endpoint::loopback(server.port()));
  const std::string through_proxy = server.url_at(proxy.port());
  const int flags = full.flags();
  const Process::Options unread{.error = full.write_end()};
  Process hold({dlock_path(), "hold", "--url", through_proxy, "--lease", "1500ms", "held"}, unread);
  (void)hold.line();
  Process run({dlock_path(), "run", "--url", through_proxy, "--lease", "1500ms", "job", "--", "sh", "-c",
               "echo runs; sleep 3; echo done"},
              unread);
  EXPECT_EQ(run.line(), "runs");
  proxy.drop();
  const Finished result = run.finish();
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.out, "done\n");
  EXPECT_THAT(full.read_until("again\n"),
              testing::MatchesRegex("dlock: no connection to the lock service, trying again: [^\n]*\n"
                                    "dlock: connected to the lock service again\n"));
  hold.signal(SIGTERM);
  EXPECT_EQ(hold.wait(), 0) << "79: the lock was lost";
  EXPECT_EQ(full.flags(), flags) << "they are shared with others";
}

TEST_F(UnreadError, WrongCommandLine_KeepsItsStatus) {
  Process wrong({dlock_path(), "frobnicate"}, {.error = full.write_end()});
  EXPECT_EQ(wrong.wait(), 64);
}

#ifdef DLOCK_TEST_WITH_MEMORY
TEST_F(UnreadError, Warning_PrecedesTheCommandsOutput) {
  const Finished result =
      run({dlock_path(), "run", "--url", "memory://", "job", "--", "sh", "-c", "echo the command >&2"});
  EXPECT_THAT(result.err, testing::MatchesRegex("dlock: warning: [^\n]*\nthe command\n"));
}
#endif

class UnreadToken : public UnreadError {
 protected:
  UnreadToken() {
    while (run(dlock("list", {"--held", "--names"})).out != "job\n") {  // ended by ctest's time limit
    }
  }

  Process hold{dlock("hold", {"job"}), {.output = full.write_end()}};
};

TEST_F(UnreadToken, Signal_FreesTheLock) {
  hold.signal(SIGTERM);
  EXPECT_EQ(hold.wait(), 0);
  EXPECT_TRUE(lock_is_free());
}

TEST_F(UnreadToken, Loss_EndsTheHold) {
  remove_lock_files();
  const Finished result = hold.finish();
  EXPECT_EQ(result.status, 79);
  EXPECT_THAT(result.err, testing::StartsWith("dlock: lost \"job\""));
}

}  // namespace
}  // namespace dlock::cli::test
