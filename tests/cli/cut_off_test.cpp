// The network to the service fails. A command under a lease that cannot be renewed is terminated before the lease ends,
// and dlock reports the reason once.
#include <csignal>
#include <functional>
#include <set>
#include <sstream>

#include "support/cli_test.hpp"
#include "support/full_pipe.hpp"
#include "tests/support/redis_server.hpp"
#include "torture/rig/tcp_proxy.hpp"

namespace dlock::cli::test {
namespace {

using dlock::rig::Endpoint;
using dlock::rig::TcpProxy;
using dlock::rig::Traffic;
using dlock::test::RedisServer;

struct Disturbance {
  const char* name;
  std::function<void(TcpProxy&)> begin;
};

void refuse(TcpProxy& proxy) {
  proxy.refuse(true);
  proxy.drop();
}

// The first line that was there before; empty if there is none.
std::string repeated_line(const std::string& text) {
  std::istringstream lines(text);
  std::set<std::string> seen;
  for (std::string line; std::getline(lines, line);) {
    if (!seen.insert(line).second) return line;
  }
  return {};
}

class CutOffWays : public testing::Test {
 protected:
  // dlock run on the disturbed way to the server. The notice is a third of the lease, so that a slow machine has time.
  [[nodiscard]] std::vector<std::string> run_probe(const std::string& behaviour) const {
    return {dlock_path(), "run", "--url",        server.url_at(proxy.port(), "close_timeout=50ms"),
            "--lease",    "3s",  "--kill-after", "1s",
            "job",        "--",  probe_path(),   behaviour};
  }
  // How long the server itself would still keep the lock; negative if nobody has it.
  [[nodiscard]] std::int64_t milliseconds_left() { return server.command({"PTTL", "dlock:job"}).integer; }

  RedisServer server;
  TcpProxy proxy{Endpoint::loopback(server.port())};
};

class CutOff : public CutOffWays, public testing::WithParamInterface<Disturbance> {};

TEST_P(CutOff, Command_IsTerminatedBeforeTheLeaseEnds) {
  Process run(run_probe("listen"));
  (void)run.line();
  GetParam().begin(proxy);
  EXPECT_EQ(run.line(), std::to_string(SIGTERM));
  EXPECT_GT(milliseconds_left(), 0);
  const Finished result = run.finish();
  EXPECT_EQ(result.status, 79);
  EXPECT_THAT(result.err, testing::HasSubstr("dlock: lost \"job\""));
  EXPECT_EQ(repeated_line(result.err), "");
}

TEST_P(CutOff, CommandThatIgnoresTerm_IsKilledWithItsGroup) {
  Process run(run_probe("family"));
  const auto pids = pids_in(run.line());
  const Watched leader(pids.at(0));
  const Watched grandchild(pids.at(1));
  GetParam().begin(proxy);
  EXPECT_EQ(run.wait(), 79);
  EXPECT_TRUE(leader.is_dead());
  EXPECT_TRUE(grandchild.is_dead());
}

// The command is ended because the lease is running out. Then the network is back, and the lease could be renewed.
TEST_F(CutOffWays, UnreadStandardError_DoesNotKeepTheLock) {
  FullPipe errors;
  Process run({dlock_path(), "run", "--quiet", "--url", server.url_at(proxy.port(), "close_timeout=50ms"), "--lease",
               "3s", "--kill-after", "1s", "job", "--", probe_path(), "listen"},
              {.error = errors.write_end()});
  (void)run.line();
  proxy.set({.mode = Traffic::Mode::hold});
  EXPECT_EQ(run.line(), std::to_string(SIGTERM));
  proxy.set({});
  EXPECT_EQ(test::run({dlock_path(), "run", "--url", server.url(), "--wait", "30s", "job", "--", "true"}).status, 0);
  errors.drain();
  EXPECT_EQ(run.wait(), 79);
}

INSTANTIATE_TEST_SUITE_P(By, CutOff,
                         testing::Values(Disturbance{"Silence",
                                                     [](TcpProxy& proxy) { proxy.set({.mode = Traffic::Mode::hold}); }},
                                         Disturbance{"Refusal", refuse}),
                         [](const auto& param_info) { return std::string(param_info.param.name); });

// --- Output that is not read, as when a pager is stopped: it costs no lock, and signals and losses still count ---

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
