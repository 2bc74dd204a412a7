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

// A third of the lease goes by before the first renewal, which fails at once; the notice is short.
TEST_F(CutOffWays, RefusedRenewal_IsTheReasonForTheLoss) {
  Process run({dlock_path(), "run", "--url", server.url_at(proxy.port(), "close_timeout=50ms"), "--lease", "3s",
               "--kill-after", "200ms", "job", "--", probe_path(), "listen"});
  (void)run.line();
  refuse(proxy);
  const Finished result = run.finish();
  EXPECT_EQ(result.status, 79);
  const std::string reason = "127.0.0.1:" + std::to_string(proxy.port()) + ": Connection refused";
  EXPECT_THAT(result.err, testing::AnyOf(testing::HasSubstr("could not be renewed: " + reason),
                                         testing::HasSubstr("last failed renewal: " + reason)));
  EXPECT_THAT(result.err, testing::StartsWith("dlock: no connection to the lock service, trying again: "));
  EXPECT_THAT(result.err, testing::Not(testing::HasSubstr("warning")));
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

}  // namespace
}  // namespace dlock::cli::test
