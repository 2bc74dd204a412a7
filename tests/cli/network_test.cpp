// The network to the service fails. A wait for a service that was never reached ends, and dlock reports that; dlock
// waits for a service that was reached. A command under a lease that cannot be renewed is terminated before the lease
// ends, and dlock reports the reason once.
#include <algorithm>
#include <csignal>
#include <functional>
#include <list>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <dlock/client.hpp>

#include "support/cli_test.hpp"
#include "support/full_pipe.hpp"
#include "tests/support/scripted_server.hpp"
#include "tests/support/servers.hpp"
#include "torture/rig/socket.hpp"
#include "torture/rig/tcp_proxy.hpp"

namespace dlock::cli::test {
namespace {

using dlock::rig::Endpoint;
using dlock::rig::Listener;
using dlock::rig::TcpProxy;
using dlock::rig::Traffic;
using dlock::test::RedisServer;
using dlock::test::ScriptedServer;

using Words = std::vector<std::string>;

bool is_database(const std::string& scheme) {
  return scheme == "postgresql" || scheme == "mysql";
}

// The services of this build that are somewhere in a network.
std::vector<std::string> services() {
  std::vector<std::string> found;
  for (const std::string& scheme : backends()) {
    if (scheme == "redis" || scheme == "zookeeper" || scheme == "etcd" || is_database(scheme)) found.push_back(scheme);
  }
  return found;
}

class Unreachable : public testing::TestWithParam<std::string> {
 protected:
  [[nodiscard]] static std::string url(std::uint16_t port) {
    const std::string host = "127.0.0.1:" + std::to_string(port);
    if (GetParam() == "zookeeper") return "zookeeper://" + host;
    return GetParam() + "://user:hunter2@" + host + (is_database(GetParam()) ? "/database" : "");
  }
};

TEST_P(Unreachable, EachCommand_EndsUnavailable) {
  Listener refusing;
  refusing.close();
  const ScriptedServer silent{[](const std::string& /*received*/) { return ScriptedServer::Answer{}; }};
  for (const std::uint16_t port : {refusing.port(), silent.port()}) {
    struct Row {
      Words words;
      int status = 69;
      std::string error = {};
      std::string parameters = "?response_timeout=300ms";
    };
    const std::string unreached =
        "dlock: the lock service was not reached within 300 ms \\(--connect-wait\\): [^\n]*:" + std::to_string(port) +
        "[^\n]*\n$";
    const std::vector<Row> rows{
        {{"run", "--quiet", "--connect-wait", "300ms", "job", "--", "echo", "ran"}, 69, unreached, ""},
        {{"hold", "--connect-wait", "300ms", "job"}, 69, unreached, ""},
        {{"run", "--quiet", "--wait", "300ms", "job", "--", "echo", "ran"}},
        {{"run", "--quiet", "--try", "job", "--", "echo", "ran"}, 69, "^[^\n]*\n$"},
        {{"status", "job"}},
        {{"list"}},
        {{"break", "--yes", "job"}},
        {{"doctor"}, 1},                               // a finding
        {{"init"}, is_database(GetParam()) ? 69 : 0},  // the others need nothing
    };
    std::list<Process> processes;
    for (const Row& row : rows) {
      Words command{dlock_path(), row.words.front(), "--url", url(port) + row.parameters};
      command.insert(command.end(), row.words.begin() + 1, row.words.end());
      processes.emplace_back(command);
    }
    auto process = processes.begin();
    for (const Row& row : rows) {
      const Finished result = (process++)->finish();
      SCOPED_TRACE(testing::PrintToString(row.words) + result.err);
      EXPECT_EQ(result.status, row.status);
      EXPECT_THAT(result.out, testing::Not(testing::HasSubstr("ran\n")));
      EXPECT_THAT(result.err, testing::ContainsRegex(row.error));
      EXPECT_THAT(result.out + result.err, testing::Not(testing::HasSubstr("hunter2")));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Of, Unreachable, testing::ValuesIn(services()),
                         [](const auto& param_info) { return param_info.param; });

class ConnectWait : public testing::Test {
 protected:
  [[nodiscard]] Process run_quietly(const Words& options, const std::string& parameters = {}) const {
    Words command{dlock_path(), "run", "--quiet", "--url", server.url_at(proxy.port(), parameters)};
    command.insert(command.end(), options.begin(), options.end());
    for (const char* word : {"job", "--", "echo", "ran"}) command.emplace_back(word);
    return Process(command);
  }

  RedisServer server;
  TcpProxy proxy{Endpoint::loopback(server.port())};
};

TEST_F(ConnectWait, ServerThatStartsLater_IsUsed) {
  proxy.refuse(true);
  Process run = run_quietly({"--connect-wait", "1h"});
  EXPECT_EQ(run.error_line(), "dlock: cannot reach the lock service, trying again: 127.0.0.1:" +
                                  std::to_string(proxy.port()) + ": Connection refused");
  proxy.refuse(false);
  const Finished result = run.finish();
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.out, "ran\n");
  EXPECT_EQ(result.err, "") << "nothing more";
}

TEST_F(ConnectWait, ServerThatClosesAtTheFirstRequest_IsNotReached) {
  const std::function<void()> hang_up = [&] {
    proxy.before_request("EVAL", [&] {
      proxy.drop();
      hang_up();
    });
  };
  hang_up();
  const Finished result = run_quietly({"--connect-wait", "500ms"}).finish();
  EXPECT_EQ(result.status, 69);
  EXPECT_THAT(result.err, testing::MatchesRegex("dlock: cannot reach the lock service, trying again: .*\n"
                                                "dlock: the lock service was not reached within 500 ms .*"
                                                "; no request about locks was answered\n"));
}

// The outage takes as long as two attempts to connect one after the other, of two connections: each is as long as the
// limit.
TEST_F(ConnectWait, OutageOfAReachedService_DoesNotEndTheWait) {
  Process holder({dlock_path(), "hold", "--url", server.url(), "job"});
  (void)holder.line();
  Process run = run_quietly({"--connect-wait", "300ms"}, "connect_timeout=300ms");
  // Busy is answered, and followed by a subscription.
  ASSERT_TRUE(proxy.wait_until([](const TcpProxy::Counters& counters) { return counters.accepted >= 2; }));
  proxy.set({.mode = Traffic::Mode::hold});
  proxy.drop();
  EXPECT_THAT(run.error_line(), testing::StartsWith("dlock: cannot reach the lock service, trying again: "));
  const std::size_t before = proxy.counters().accepted;
  ASSERT_TRUE(proxy.wait_until([&](const TcpProxy::Counters& counters) { return counters.accepted >= before + 5; }));
  proxy.pass();
  holder.signal(SIGTERM);
  const Finished result = run.finish();
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out, "ran\n");
}

#ifdef DLOCK_TEST_WITH_ETCD
// Another service than the URL names is at that port: dlock says which it probably is.
TEST(WrongService, Status_SuggestsTheRightScheme) {
  const RedisServer redis;
  const RedisServer redis_tls{{.tls = true}};
  const dlock::test::RedisSentinel sentinel({.services = {{.master = redis.port()}}});
  const dlock::test::EtcdServer etcd;
  const dlock::test::EtcdServer etcd_tls{{.tls = true}};
  // It passes an end on in good order, also where etcd leaves bytes unread, whose end is a reset.
  const TcpProxy to_etcd(Endpoint::loopback(etcd.port()));
  const std::string is_sentinel = "this is a sentinel; use redis-sentinel://";
  const std::string no_tls = "perhaps the server does not use TLS at this port";
  const std::string only_tls = "; perhaps this port speaks TLS only";
  const std::string service_name = "&service_name=mymaster";
  struct Row {
    std::string scheme;
    std::uint16_t port;
    std::string hint;
    int status;
    std::string parameters = {};
  };
  const std::vector<Row> rows{
      {"redis", sentinel.port(), is_sentinel, 78},
      {"redis-cluster", sentinel.port(), is_sentinel, 78},
      {"redis-sentinel", redis.port(), "this server is not a sentinel", 69, service_name},
      {"rediss", redis.port(), no_tls, 69},
      {"rediss-cluster", redis.port(), no_tls, 69},
      {"rediss-sentinel", sentinel.port(), no_tls, 69, service_name},
      {"rediss-sentinel", sentinel.port(), no_tls, 69, service_name + "&sentinel_tls=off"},
      {"redis", redis_tls.port(), only_tls, 69},
      {"etcds", to_etcd.port(), "the server closed the connection; " + no_tls, 69},
      {"etcd", etcd_tls.port(), only_tls, 69},
  };
  for (const auto& [scheme, port, hint, status, parameters] : rows) {
    const std::string url = scheme + "://127.0.0.1:" + std::to_string(port) + "?response_timeout=1s" + parameters;
    const Finished result = run({dlock_path(), "status", "--url", url, "job"});
    EXPECT_THAT(result.err, testing::HasSubstr(hint)) << url;
    EXPECT_EQ(result.status, status) << url;
  }
  const Finished doctor =
      run({dlock_path(), "doctor", "--url", "redis://127.0.0.1:" + std::to_string(sentinel.port())});
  EXPECT_THAT(doctor.out, testing::HasSubstr(" is a sentinel; use redis-sentinel://"));
  EXPECT_EQ(doctor.status, 1);
}
#endif

// --- A lease that cannot be renewed ---

// The first line that was there before; empty if there is none.
std::string repeated_line(const std::string& text) {
  std::istringstream lines(text);
  std::set<std::string> seen;
  for (std::string line; std::getline(lines, line);) {
    if (!seen.insert(line).second) return line;
  }
  return {};
}

class CutOff : public testing::Test {
 protected:
  // dlock run on the disturbed way to the server. The notice is a third of the lease, so that a slow machine has time.
  [[nodiscard]] Process run_listener(const Process::Options& options = {}) const {
    Process run({dlock_path(), "run", "--url", server.url_at(proxy.port(), "close_timeout=50ms"), "--lease", "3s",
                 "--kill-after", "1s", "job", "--", probe_path(), "listen"},
                options);
    (void)run.line();
    return run;
  }

  RedisServer server;
  TcpProxy proxy{Endpoint::loopback(server.port())};
};

TEST_F(CutOff, Command_IsTerminatedBeforeTheLeaseEnds) {
  for (const bool refused : {false, true}) {
    Process run = run_listener();
    refused ? proxy.refuse(true) : proxy.set({.mode = Traffic::Mode::hold});
    if (refused) proxy.drop();
    EXPECT_EQ(run.line(), std::to_string(SIGTERM));
    EXPECT_GT(server.command({"PTTL", "dlock:job"}).integer, 0) << "for so long, the server itself keeps the lock";
    const Finished result = run.finish();
    EXPECT_EQ(result.status, 79);
    EXPECT_THAT(result.err, testing::HasSubstr("dlock: lost \"job\""));
    EXPECT_EQ(repeated_line(result.err), "");
    proxy.drop();
    proxy.pass();
  }
}

// The command is ended because the lease is running out. Then the network is back, and the lease could be renewed.
TEST_F(CutOff, UnreadStandardError_DoesNotKeepTheLock) {
  FullPipe errors;
  Process run = run_listener({.error = errors.write_end()});
  proxy.set({.mode = Traffic::Mode::hold});
  EXPECT_EQ(run.line(), std::to_string(SIGTERM));
  proxy.set({});
  EXPECT_EQ(test::run({dlock_path(), "run", "--url", server.url(), "--wait", "30s", "job", "--", "true"}).status, 0);
  errors.drain();
  EXPECT_EQ(run.wait(), 79);
}

// As when a pager is stopped; see also unread_output.transcript. Two leases go by after the reconnection: if it kept
// the lease from being renewed, the command would be ended.
TEST(UnreadError, Reconnection_CostsNoLock) {
  const FullPipe full;
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

}  // namespace
}  // namespace dlock::cli::test
