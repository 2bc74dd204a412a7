#include "backends/zookeeper/administration/diagnosis.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fake_handle.hpp"
#include "tests/support/manual_engine.hpp"

namespace dlock::zookeeper {

namespace {

using namespace std::chrono_literals;
using Severity = Finding::Severity;

class DiagnosisTest : public testing::Test, private Session::User {
 protected:
  DiagnosisTest() {
    options.hosts = {{.name = "h", .port = 2181}};
    options.session_timeout = 9s;
    options.connect_timeout = 5s;
    options.response_timeout = 2s;
  }

  void run() {
    diagnosis.run([this](Result<std::vector<Finding>> result) {
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

  test::ManualEngine engine;
  FakeEnsemble ensemble{engine};
  Options options;
  bool servers_answer = true;
  std::optional<std::vector<Finding>> findings;

 private:
  void session_ready(bool fresh) override {
    removals.session_ready(fresh);
    queries.session_ready();
  }
  void session_alive(TimePoint) override {}
  void session_suspended(const Failure&) override {}
  void session_lost(const Failure&) override { removals.session_lost(); }

  void ask(TimePoint deadline, const std::function<void(Result<std::string>)>& done) {
    (void)engine.schedule(servers_answer ? engine.now() : deadline, [this, done] {
      if (!servers_answer) return done(Failure{errc::unavailable, "h:2181: no answer in time"});
      done(std::string("Zookeeper version: 3.8.0-x\nConnections: 1\nMode: standalone\n"));
    });
  }

  Session session{engine, options, ensemble.handles(), *this};
  Requests requests{session};
  Parents parents{requests, options};
  Removals removals{engine, requests, 2s, [](const Failure&) {}};
  Queries queries{engine, session, 2s};
  Diagnosis diagnosis{
      engine, options, requests, parents, removals, queries, [this](const Host&, TimePoint deadline, const auto& done) {
        ask(deadline, done);
      }};
};

TEST_F(DiagnosisTest, FindsAWorkingPlaceAndLeavesNothingInIt) {
  run();
  ASSERT_TRUE(findings);
  EXPECT_NE(message("server", Severity::ok), "");
  EXPECT_NE(message("session", Severity::ok), "");
  EXPECT_NE(message("permissions", Severity::ok).find("/dlock"), std::string::npos);
  EXPECT_TRUE(ensemble.children("/dlock").empty());
}

TEST_F(DiagnosisTest, SaysWhenTheServerGrantsAnotherTimeout) {
  ensemble.granted = 4s;
  run();
  ASSERT_TRUE(findings);
  const std::string warning = message("session", Severity::warning);
  EXPECT_NE(warning.find("9s"), std::string::npos) << warning;
  EXPECT_NE(warning.find("4s"), std::string::npos) << warning;
}

TEST_F(DiagnosisTest, NamesAMissingChroot) {
  options.chroot = "/app";
  ensemble.remove("/");  // what is the root to us
  run();
  ASSERT_TRUE(findings);
  EXPECT_NE(message("chroot", Severity::error).find("/app"), std::string::npos);
  EXPECT_EQ(message("permissions", Severity::ok), "");
}

TEST_F(DiagnosisTest, NamesRightsThatAreMissing) {
  ensemble.fate = [](const FakeRequest& request) {
    return request.kind == FakeRequest::Kind::create ? Fate::forbid : Fate::answer;
  };
  run();
  ASSERT_TRUE(findings);
  EXPECT_NE(message("permissions", Severity::error).find("/dlock"), std::string::npos);
}

TEST_F(DiagnosisTest, NeedsNoRightToWhatIsAboveAPrefixThatIsThere) {
  (void)ensemble.put("/dlock");
  ensemble.closed_nodes = {"/"};
  run();
  ASSERT_TRUE(findings);
  EXPECT_NE(message("permissions", Severity::ok), "") << message("permissions", Severity::error);
}

TEST_F(DiagnosisTest, MakesWhatAnAcquireWouldMake) {
  options.layout = Layout::kazoo;
  run();
  for (const FakeRequest& request : ensemble.requests) {
    EXPECT_NE(request.node == NodeKind::container && request.kind == FakeRequest::Kind::create, true) << request.path;
  }
}

TEST_F(DiagnosisTest, AnswersWithinTheResponseTimeoutWhenNobodyElseDoes) {
  servers_answer = false;
  ensemble.dialling = FakeEnsemble::Dialling::silence;
  run();
  EXPECT_FALSE(findings);
  engine.advance(2s);
  ASSERT_TRUE(findings);
  EXPECT_NE(message("server", Severity::error), "");
  EXPECT_NE(message("session", Severity::error), "");
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
  ensemble.fate = [](const FakeRequest& request) {
    return request.kind == FakeRequest::Kind::remove && !is_heartbeat(request) ? Fate::lose_request : Fate::answer;
  };
  run();
  ASSERT_TRUE(findings);
  EXPECT_NE(message("permissions", Severity::error), "");
  EXPECT_FALSE(ensemble.children("/dlock").empty());
  ensemble.fate = nullptr;
  engine.advance(1s);
  EXPECT_TRUE(ensemble.children("/dlock").empty());
}

TEST_F(DiagnosisTest, LateAnswersChangeNothing) {
  ensemble.fate = [](const FakeRequest& request) { return is_heartbeat(request) ? Fate::answer : Fate::hold_answer; };
  run();
  engine.advance(2s);
  ASSERT_TRUE(findings);
  ensemble.release_answers();
  engine.run();
}

}  // namespace

}  // namespace dlock::zookeeper
