// Servers report on themselves (srvr): how they are asked, and what is found in their answers.
#include "backends/zookeeper/administration/four_letter.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "backends/zookeeper/administration/server_report.hpp"
#include "engine/thread_engine.hpp"
#include "tests/support/scripted_server.hpp"
#include "util/event.hpp"

namespace dlock::zookeeper {
namespace {

using namespace std::chrono_literals;
using test::ScriptedServer;

class FourLetterTest : public testing::Test {
 protected:
  using Answer = Result<std::string>;

  ~FourLetterTest() override { engine_->stop(); }

  // Waits for the answer.
  Answer ask(std::uint16_t port, std::chrono::nanoseconds limit = 60s) {
    auto answer = std::make_shared<std::optional<Answer>>();
    auto answered = std::make_shared<util::Event>();
    engine_->post([this, port, limit, answer, answered] {
      ask_(Host{.name = "127.0.0.1", .port = port}, engine_->now() + limit, [answer, answered](Answer got) {
        answer->emplace(std::move(got));
        answered->set();
      });
    });
    EXPECT_TRUE(answered->wait(120s));
    return **answer;
  }

  std::shared_ptr<engine::Engine> engine_ = engine::ThreadEngine::start(boottime_clock(), [] { return 4U; });
  ServerAsker ask_ = ask_over_tcp(*engine_);
};

TEST_F(FourLetterTest, Answer_EndsWithTheConnection) {
  struct Row {
    ScriptedServer::Answer answer;  // to srvr
    std::string is;                 // or words of the failure
    std::chrono::nanoseconds limit = 60s;
  };
  const std::string full = std::string(10000, 'x') + "end";
  for (const auto& [answer, is, limit] :
       {Row{{.bytes = full, .close = true}, full}, Row{{.bytes = "", .close = true}, "instead of answering"},
        Row{{.repeat = std::string(65536, 'x')}, "does not end"}, Row{{}, "in time", 50ms}}) {
    const ScriptedServer server(
        [&answer](const std::string& received) { return received == "srvr" ? answer : ScriptedServer::Answer{}; });
    const auto got = ask(server.port(), limit);
    if (got.ok()) {
      EXPECT_EQ(got.value(), is);
    } else {
      EXPECT_NE(got.failure().detail.find(is), std::string::npos) << got.failure().detail;
    }
    EXPECT_EQ(got.ok(), is == full);
  }
}

TEST_F(FourLetterTest, MissingServer_IsNamed) {
  std::uint16_t port = 0;
  {
    const ScriptedServer gone([](const std::string&) { return ScriptedServer::Answer{}; });
    port = gone.port();
  }
  const auto answer = ask(port);
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.failure().code, errc::unavailable);
  EXPECT_NE(answer.failure().detail.find("127.0.0.1:" + std::to_string(port)), std::string::npos);
}

// Of servers a, b, c: the mode of each, "down", or the version of one that is alone; or, behind '=', one answer.
std::vector<ServerReport> reports_of(const std::string& text) {
  std::vector<ServerReport> reports;
  const auto add = [&](Result<std::string> srvr) {
    const std::string name(1, static_cast<char>('a' + reports.size()));
    reports.push_back({.host = {.name = name, .port = 2181}, .srvr = std::move(srvr)});
  };
  if (text.starts_with("=")) {
    add(text.substr(1));
    return reports;
  }
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (word == "down") {
      add(Failure{errc::unavailable, "no answer"});
      continue;
    }
    const bool version = std::isdigit(static_cast<unsigned char>(word[0])) != 0;
    add("Zookeeper version: " + (version ? word : "3.8.0") +
        "-abc, built on x\nConnections: 3\nMode: " + (version ? "standalone" : word) + "\n");
  }
  return reports;
}

TEST(ServerReports, Judgement_FindsWhatIsWrong) {
  using enum Finding::Severity;
  struct Row {
    std::string what;
    std::string reports;
    Finding::Severity worst;
    // One of the findings; "": any.
    std::string check = {};
    std::string message = {};
  };
  const std::string whole_answer =
      "Zookeeper version: 3.8.0-${mvngit.commit.id}, built on 2024-12-29 17:54 UTC\nLatency min/avg/max: 0/2.4/18\n"
      "Received: 125\nSent: 129\nConnections: 2\nOutstanding: 0\nZxid: 0x40\nMode: follower\r\nNode count: 7\n";
  const std::vector<Row> rows = {
      {"a healthy ensemble", "follower leader follower", ok, "server", "a:2181: ZooKeeper 3.8.0, follower"},
      {"one is down", "follower down leader", warning, "server"},
      {"all are down", "down down", error, "server"},
      {"no ensemble", "standalone standalone", error, "ensemble"},
      {"two ensembles", "leader leader", error, "ensemble"},
      {"one alone", "standalone", note, "ensemble"},
      {"one of several is named", "follower", warning, "ensemble"},
      {"two of several are named", "follower leader", ok},
      {"without its ensemble", "=This ZooKeeper instance is not currently serving requests\n", warning, "server",
       "not currently serving"},
      {"it only reads", "read-only", warning, "server", "only answers reads"},
      {"its whole answer", "=" + whole_answer, warning, "ensemble"},
      {"no server of ZooKeeper", "=HTTP/1.1 400 Bad Request\r\n\r\n", warning, "server", "HTTP/1.1 400"},
      {"nothing", "=", warning, "server", "does not serve"},
      {"it does not tell", "=srvr is not executed because it is not in the whitelist.\n", note, "server", "whitelist"},
      {"too old", "3.4.14", error, "version"},
      {"a little too old", "3.5.2", error, "version"},
      {"much too old", "2.9.9", error, "version"},
      {"old enough", "3.5.3", note},
      {"two digits", "3.10.0", note},
      {"the next one", "4.0.0", note},
  };
  for (const auto& [what, reports, severity, check, message] : rows) {
    const auto findings = judge(reports_of(reports));
    Finding::Severity worst = ok;
    bool found = false;
    for (const Finding& finding : findings) {
      worst = std::max(worst, finding.severity);
      found = found || (finding.severity == severity && finding.check.find(check) != std::string::npos &&
                        finding.message.find(message) != std::string::npos);
    }
    EXPECT_EQ(worst, severity) << what;
    EXPECT_TRUE(found) << what;
  }
}

}  // namespace
}  // namespace dlock::zookeeper
