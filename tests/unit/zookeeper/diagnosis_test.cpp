// Checks for dlock doctor.
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend_fixture.hpp"

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

TEST_F(DiagnosisTest, FindsWhatIsWrong_AndNothingElse) {
  struct Row {
    std::string url;  // behind the host
    std::function<void()> given;
    std::vector<std::pair<std::string, std::string>> problems;  // the check, words of the message
  };
  const auto forbid_creates = [this] {
    ensemble.fate = [](const FakeRequest& request) {
      return request.kind == Kind::create ? Fate::forbid : Fate::answer;
    };
  };
  const std::vector<Row> rows = {
      {"", [] {}, {}},
      {"?prefix=/a/b/c", [] {}, {}},
      {"", [this] { ensemble.granted = 4s; }, {{"session", "of 10s was requested, and 4s was granted"}}},
      {"", forbid_creates, {{"permissions", "cannot be created below /dlock: "}}},
      {"?prefix=", forbid_creates, {{"permissions", "cannot be created below /: "}}},
      {"",
       [this] {
         ensemble.fate = [](const FakeRequest& request) {
           return request.kind == Kind::children ? Fate::forbid : Fate::answer;
         };
       },
       {{"permissions", "cannot be created below /dlock: "}}},
      // No right is needed to what is above a prefix that exists.
      {"",
       [this] {
         (void)ensemble.put("/dlock");
         ensemble.closed_nodes = {"/"};
       },
       {}},
      {"", [this] { ensemble.dialling = FakeEnsemble::Dialling::refuse_auth; }, {{"session", "h:2181"}}},
      {"/app",
       [this] {
         for (const char* path : {"/dlock", "/a", "/"}) ensemble.remove(path);
       },
       {{"chroot", "/app, the URL's path, does not exist"}}},
  };
  for (const auto& [url, given, problems] : rows) {
    FakeEnsemble::Dialling& dialling = ensemble.dialling;
    dialling = FakeEnsemble::Dialling::accept;
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

TEST_F(DiagnosisTest, MakesWhatAnAcquireWouldMake) {
  backend = make("layout=kazoo");
  run();
  for (const FakeRequest& request : ensemble.requests) {
    EXPECT_FALSE(request.node == NodeKind::container && request.kind == Kind::create) << request.path;
  }
}

TEST_F(DiagnosisTest, AnswersAtTheResponseTimeoutWhenNobodyElseDoes) {
  for (const auto given : {FakeEnsemble::Dialling::silence, FakeEnsemble::Dialling::accept}) {
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

TEST_F(DiagnosisTest, ASessionThatComesUpInTimeIsUsed) {
  ensemble.dialling = FakeEnsemble::Dialling::silence;
  run();
  engine.advance(1s);
  ensemble.dialling = FakeEnsemble::Dialling::accept;
  ensemble.reconnect();
  engine.run();
  ASSERT_TRUE(findings);
  EXPECT_NE(message("permissions", Severity::ok), "");
}

TEST_F(DiagnosisTest, WhatIsLeftWhenTheConnectionBreaksIsRemovedLater) {
  for (const Kind kind : {Kind::remove, Kind::create}) {
    (void)ensemble.put("/dlock");
    ensemble.fate = [kind](const FakeRequest& request) {
      const bool spoiled = request.kind == kind && !is_heartbeat(request);
      return !spoiled ? Fate::answer : kind == Kind::create ? Fate::lose_answer : Fate::lose_request;
    };
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

}  // namespace

}  // namespace dlock::zookeeper
