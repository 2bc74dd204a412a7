// A lease that cannot be renewed, because the network to the service is gone: the command is told before the lease
// ends.
#include <csignal>
#include <functional>

#include "support/cli_test.hpp"
#include "tests/support/redis_server.hpp"
#include "tests/support/tcp_proxy.hpp"

namespace dlock::cli::test {
namespace {

using dlock::test::Endpoint;
using dlock::test::RedisServer;
using dlock::test::TcpProxy;
using dlock::test::Traffic;

struct Disturbance {
  const char* name;
  std::function<void(TcpProxy&)> begin;
};

class CutOff : public testing::TestWithParam<Disturbance> {
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

TEST_P(CutOff, TheCommandIsTerminatedBeforeTheLeaseEndsAndTheStatusIs79) {
  Process run(run_probe("listen"));
  (void)run.line();
  GetParam().begin(proxy);
  EXPECT_EQ(run.line(), std::to_string(SIGTERM));
  EXPECT_GT(milliseconds_left(), 0);
  const Finished result = run.finish();
  EXPECT_EQ(result.status, 79);
  EXPECT_THAT(result.err, testing::HasSubstr("dlock: lost \"job\""));
}

TEST_P(CutOff, ACommandThatIgnoresTermIsKilledWithItsWholeGroup) {
  Process run(run_probe("family"));
  const auto pids = pids_in(run.line());
  const Watched leader(pids.at(0));
  const Watched grandchild(pids.at(1));
  GetParam().begin(proxy);
  EXPECT_EQ(run.wait(), 79);
  EXPECT_TRUE(leader.is_dead());
  EXPECT_TRUE(grandchild.is_dead());
}

INSTANTIATE_TEST_SUITE_P(By, CutOff,
                         testing::Values(Disturbance{"Silence",
                                                     [](TcpProxy& proxy) { proxy.set({.mode = Traffic::Mode::hold}); }},
                                         Disturbance{"Refusal",
                                                     [](TcpProxy& proxy) {
                                                       proxy.refuse(true);
                                                       proxy.drop();
                                                     }}),
                         [](const auto& param_info) { return std::string(param_info.param.name); });

}  // namespace
}  // namespace dlock::cli::test
