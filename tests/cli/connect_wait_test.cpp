// A service that cannot be reached: a wait for it ends, and a person hears of it. A service that was reached is waited
// for.
#include <algorithm>
#include <functional>
#include <list>
#include <string>
#include <vector>

#include <dlock/client.hpp>

#include "support/cli_test.hpp"
#include "tests/support/redis_server.hpp"
#include "tests/support/scripted_server.hpp"
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

// The services of this build that are somewhere in a network.
std::vector<std::string> services() {
  std::vector<std::string> found;
  for (const std::string& scheme : backends()) {
    if (scheme == "redis" || scheme == "zookeeper" || scheme == "etcd" || scheme == "postgresql")
      found.push_back(scheme);
  }
  return found;
}

class Unreachable : public testing::TestWithParam<std::string> {
 protected:
  Unreachable() { refusing.close(); }

  // Where nobody listens, and where somebody accepts and never answers.
  [[nodiscard]] std::vector<std::uint16_t> ports() const { return {refusing.port(), silent.port()}; }
  [[nodiscard]] static std::string url(std::uint16_t port) {
    const std::string host = "127.0.0.1:" + std::to_string(port);
    if (GetParam() == "zookeeper") return "zookeeper://" + host;
    return GetParam() + "://user:hunter2@" + host + (GetParam() == "postgresql" ? "/database" : "");
  }

  Listener refusing;
  ScriptedServer silent{[](const std::string& /*received*/) { return ScriptedServer::Answer{}; }};
};

TEST_P(Unreachable, AServiceThatIsNeverReachedEndsTheWait) {
  std::list<Process> processes;
  std::vector<std::uint16_t> places;
  for (const std::uint16_t port : ports()) {
    const Words way{"--url", url(port), "--connect-wait", "300ms", "job"};
    for (Words command : {Words{dlock_path(), "run", "--quiet"}, Words{dlock_path(), "hold"}}) {
      command.insert(command.end(), way.begin(), way.end());
      if (command.at(1) == "run") command.insert(command.end(), {"--", "echo", "ran"});
      processes.emplace_back(command);
      places.push_back(port);
    }
  }
  auto port = places.begin();
  for (Process& process : processes) {
    const Finished result = process.finish();
    EXPECT_EQ(result.status, 69);
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, testing::ContainsRegex("dlock: the lock service was not reached within 300 ms "
                                                   "\\(--connect-wait\\): [^\n]*:" +
                                                   std::to_string(*port++) + "[^\n]*\n$"));
    EXPECT_THAT(result.err, testing::Not(testing::HasSubstr("hunter2")));
  }
}

TEST_P(Unreachable, AWaitWithAnEndIsUnavailableAndNotBusy) {
  std::list<Process> processes;
  for (const std::uint16_t port : ports()) {
    processes.emplace_back(Words{dlock_path(), "run", "--quiet", "--url", url(port) + "?response_timeout=300ms",
                                 "--wait", "300ms", "job", "--", "echo", "ran"});
  }
  for (Process& process : processes) {
    const Finished result = process.finish();
    EXPECT_EQ(result.status, 69) << result.err;
    EXPECT_EQ(result.out, "");
  }
}

TEST_P(Unreachable, ATrySaysSoOnce) {
  std::list<Process> processes;
  for (const std::uint16_t port : ports()) {
    processes.emplace_back(Words{dlock_path(), "run", "--quiet", "--url", url(port) + "?response_timeout=300ms",
                                 "--try", "job", "--", "echo", "ran"});
  }
  for (Process& process : processes) {
    const Finished result = process.finish();
    EXPECT_EQ(result.status, 69);
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
}

TEST_P(Unreachable, EveryOtherCommandEndsToo) {
  std::list<Process> processes;
  std::vector<std::string> verbs;
  for (const std::uint16_t port : ports()) {
    for (const Words& words :
         {Words{"status", "job"}, Words{"list"}, Words{"break", "--yes", "job"}, Words{"doctor"}, Words{"init"}}) {
      Words command{dlock_path(), words.front(), "--url", url(port) + "?response_timeout=300ms"};
      command.insert(command.end(), words.begin() + 1, words.end());
      processes.emplace_back(command);
      verbs.push_back(words.front());
    }
  }
  auto verb = verbs.begin();
  for (Process& process : processes) {
    int expected = 69;
    if (*verb == "doctor") expected = 1;                              // a finding
    if (*verb == "init" && GetParam() != "postgresql") expected = 0;  // nothing is needed there
    EXPECT_EQ(process.finish().status, expected) << *verb;
    ++verb;
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

TEST_F(ConnectWait, TheFirstFailureIsSaidAtOnceAndAServerThatComesUpIsUsed) {
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

TEST_F(ConnectWait, AServerThatHangsUpAtTheFirstRequestIsNotReached) {
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
TEST_F(ConnectWait, AServiceThatWasReachedIsWaitedForAsLongAsTheOutageTakes) {
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

TEST_F(ConnectWait, ARefusalByTheServerEndsTheWaitByItself) {
  RedisServer guarded({.password = "letmein"});
  const Finished result = run({dlock_path(), "run", "--url", "redis://127.0.0.1:" + std::to_string(guarded.port()),
                               "--connect-wait", "forever", "job", "--", "echo", "ran"});
  EXPECT_EQ(result.status, 77);
  EXPECT_EQ(result.out, "");
}

}  // namespace
}  // namespace dlock::cli::test
