// Checks for dlock doctor, and making the node that is everything's root.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "backend_fixture.hpp"
#include "backends/zookeeper/administration/server_report.hpp"

namespace dlock::zookeeper {

namespace {

using Severity = Finding::Severity;

class DiagnosisTest : public BackendTest {
 protected:
  DiagnosisTest() { srvr = "Zookeeper version: 3.8.0-x\nConnections: 1\nMode: standalone\n"; }

  void run() {
    findings.reset();
    backend->diagnose([this](Result<std::vector<Finding>> result) {
      EXPECT_FALSE(findings) << "answered twice";
      findings = result.value();
    });
    engine.run();
  }
  [[nodiscard]] std::string message(const std::string& check, Severity severity) const {
    for (const Finding& finding : findings.value()) {
      if (finding.check == check && finding.severity == severity) return finding.message;
    }
    return {};
  }

  std::optional<std::vector<Finding>> findings;
};

TEST_F(DiagnosisTest, Diagnosis_FindsWhatIsWrongAndNothingElse) {
  struct Row {
    std::string url;  // behind the host
    std::function<void()> given;
    std::vector<std::pair<std::string, std::string>> problems;  // the check, words of the message
  };
  const auto forbid_creates = [this] { always(Kind::create, Fate::forbid); };
  const std::vector<Row> rows = {
      {"", [] {}, {}},
      {"?prefix=/a/b/c", [] {}, {}},
      {"", [this] { ensemble.granted = 4s; }, {{"session", "of 10s was requested, and 4s was granted"}}},
      {"", forbid_creates, {{"permissions", "cannot be created below /dlock: "}}},
      {"?prefix=", forbid_creates, {{"permissions", "cannot be created below /: "}}},
      {"", [this] { always(Kind::children, Fate::forbid); }, {{"permissions", "cannot be created below /dlock: "}}},
      // No right is needed to what is above a prefix that exists.
      {"",
       [this] {
         (void)ensemble.put("/dlock");
         ensemble.closed_nodes = {"/"};
       },
       {}},
      {"", [this] { ensemble.dialling = Dialling::refuse_auth; }, {{"session", "h:2181"}}},
      {"/app",
       [this] {
         for (const char* path : {"/dlock", "/a", "/"}) ensemble.remove(path);
       },
       {{"chroot", "/app, the URL's path, does not exist"}}},
  };
  for (const auto& [url, given, problems] : rows) {
    ensemble.dialling = Dialling::accept;
    ensemble.granted = std::nullopt;
    ensemble.fate = nullptr;
    ensemble.closed_nodes = {};
    given();
    const auto path = url.substr(0, url.find('?'));
    backend = make(url.size() > path.size() ? url.substr(path.size() + 1) : "", path);
    run();
    ASSERT_TRUE(findings) << url;
    std::size_t count = 0;
    for (const Finding& finding : *findings) {
      if (finding.severity <= Severity::note) continue;
      ASSERT_LT(count, problems.size()) << finding.message;
      EXPECT_EQ(finding.check, problems[count].first);
      EXPECT_NE(finding.message.find(problems[count].second), std::string::npos) << finding.message;
      ++count;
    }
    EXPECT_EQ(count, problems.size()) << url;
    const bool works = problems.empty() || ensemble.granted;
    EXPECT_EQ(message("permissions", Severity::ok).empty(), !works) << url;
    if (ensemble.exists("/dlock")) {
      EXPECT_TRUE(ensemble.children("/dlock").empty());
    }
  }
}

TEST_F(DiagnosisTest, NoAnswers_DiagnosisEndsAtTheResponseTimeout) {
  for (const auto given : {Dialling::silence, Dialling::accept}) {
    ensemble.dialling = given;
    ensemble.fate = [](const FakeRequest& request) { return is_heartbeat(request) ? Fate::answer : Fate::hold_answer; };
    srvr = std::nullopt;
    backend = make();
    run();
    engine.advance(1999ms);
    EXPECT_FALSE(findings);
    engine.advance(1ms);
    ASSERT_TRUE(findings);
    EXPECT_EQ(message("server", Severity::error), "h:2181: no answer in time");
    EXPECT_NE(message("session", Severity::error), "");
    ensemble.release_answers();
    engine.run();
  }
}

TEST_F(DiagnosisTest, ProbeLeftBehind_IsRemovedLater) {
  for (const Kind kind : {Kind::remove, Kind::create}) {
    (void)ensemble.put("/dlock");
    always(kind, kind == Kind::create ? Fate::lose_answer : Fate::lose_request);
    backend = make();
    run();
    ASSERT_TRUE(findings);
    EXPECT_NE(message("permissions", Severity::error), "");
    EXPECT_EQ(ensemble.children("/dlock").empty(), kind == Kind::create) << "at once, if the session stands";
    ensemble.fate = nullptr;
    engine.advance(1s);
    EXPECT_TRUE(ensemble.children("/dlock").empty());
  }
}

// --- What the servers answer to srvr ---------------------------------------------------------------------------------

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
    Severity worst;
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
    Severity worst = ok;
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

// --- The URL's path --------------------------------------------------------------------------------------------------

class ChrootTest : public BackendTest {
 protected:
  void ask(std::optional<Result<Names>>& answer) {
    group->initialize([&](Result<Names> made) { answer = std::move(made); });
  }
  Result<Names> try_initialize() {
    return answer_to<Names>([&](auto done) { group->initialize(std::move(done)); });
  }
  // The nodes that it created.
  Names initialize() { return try_initialize().value(); }

  std::unique_ptr<ZookeeperBackend> group = make<ZookeeperBackend>({}, "/a/b");
};

TEST_F(ChrootTest, MissingNodes_AreMadeToStay) {
  (void)ensemble.put("/a");
  EXPECT_EQ(initialize(), Names{"node /a/b"});
  // Containers would go when the last lock does.
  for (const FakeRequest& request : ensemble.requests) {
    if (request.kind == Kind::create) {
      EXPECT_EQ(request.node, NodeKind::persistent);
    }
  }
  EXPECT_EQ(ensemble.dialled, 1) << "not the client's own session, whose root does not exist";
  EXPECT_EQ(ensemble.closed, 1);
  ensemble.remove("/a");
  EXPECT_EQ(initialize(), (Names{"node /a", "node /a/b"}));
  EXPECT_EQ(initialize(), Names());
  group = make<ZookeeperBackend>();
  EXPECT_EQ(initialize(), Names()) << "there is none";
  EXPECT_EQ(ensemble.dialled, 3);
}

TEST_F(ChrootTest, NodesThatExist_NeedNoRights) {
  ensemble.closed_nodes = {"/"};
  EXPECT_EQ(try_initialize().failure().code, errc::access_denied);
  (void)ensemble.put("/a");
  EXPECT_EQ(initialize(), Names{"node /a/b"});
  ensemble.closed_nodes = {"/", "/a"};
  EXPECT_EQ(initialize(), Names());
  always(Kind::get, Fate::forbid);
  EXPECT_EQ(initialize(), Names()) << "what may not be read exists";
}

TEST_F(ChrootTest, FailedRequest_IsRepeatedAndTheNodeNamed) {
  for (const Kind kind : {Kind::get, Kind::create}) {
    for (const Fate fate : {Fate::lose_answer, Fate::lose_request, Fate::refuse, Fate::hold_answer}) {
      (void)ensemble.put("/a");
      next(kind, fate);
      std::optional<Result<Names>> answer;
      ask(answer);
      engine.run();
      EXPECT_FALSE(answer);
      if (fate == Fate::hold_answer) ensemble.disconnect();
      engine.advance(100ms);
      ensemble.reconnect();
      engine.advance(1s);
      EXPECT_EQ(answer.value().value(), Names{"node /a/b"}) << static_cast<int>(kind) << static_cast<int>(fate);
      ensemble.remove("/a");
    }
  }
}

TEST_F(ChrootTest, SecondRequestInTheHandler_IsAnswered) {
  std::optional<Result<Names>> again;
  group->initialize([&](const Result<Names>&) { ask(again); });
  engine.run();
  EXPECT_TRUE(again.value().value().empty());
}

TEST_F(ChrootTest, OverloadedServer_IsRetriedWithPauses) {
  always(Kind::create, Fate::refuse);
  std::optional<Result<Names>> answer;
  ask(answer);
  engine.advance(2s);
  const Failure& why = answer.value().failure();
  EXPECT_NE(why.detail.find("overloaded"), std::string::npos) << why.detail;
  EXPECT_LE(ensemble.count(Kind::create), 20U);
}

TEST_F(ChrootTest, ClientDestroyedMeanwhile_IsNotAnswered) {
  next(Kind::create, Fate::hold_answer);
  group->initialize([](const Result<Names>&) { ADD_FAILURE() << "nobody is there any more"; });
  engine.run();
  group.reset();
  engine.advance(5s);
}

}  // namespace

}  // namespace dlock::zookeeper
