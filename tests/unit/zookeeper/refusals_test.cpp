// Servers and proxies that refuse: by closing the connection, or for now.
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "backend_fixture.hpp"
#include "tests/support/reports.hpp"

namespace dlock::zookeeper {

namespace {

using State = ConnectionEvent::State;

class RefusalsTest : public BackendTest, public testing::WithParamInterface<const char*> {
 protected:
  RefusalsTest() { backend = make(GetParam()); }
  // A proxy lets heartbeats pass, and ends the connection upon everything else, or only creates.
  void hang_up(bool only_creates) {
    ensemble.fate = [this, only_creates](const FakeRequest& request) {
      if (is_heartbeat(request) || (only_creates && request.kind != Kind::create)) return Fate::answer;
      ensemble.disconnect(request.session);
      return Fate::lose_request;
    };
  }
  // The client library connects again and again.
  void reconnect_for(std::chrono::milliseconds time) {
    for (; time > 0ms; time -= 5ms) {
      ensemble.reconnect();
      engine.advance(5ms);
    }
  }
  std::size_t asked() const { return ensemble.requests.size() - ensemble.heartbeats(); }
};

TEST_P(RefusalsTest, AGoodConnectionThatBreaksUponEachRequestFromNowOn_IsReportedOnceForEachReason) {
  const auto holder = contend(*backend, true, "other");
  ASSERT_EQ(host.connections, std::vector{State::connected});
  for (const bool only_creates : {false, true}) {
    host.connections.clear();
    hang_up(only_creates);
    const std::size_t before = asked();
    const auto attempt = start(*backend);
    reconnect_for(60s);
    EXPECT_GE(asked() - before, 20U);
    EXPECT_LE(asked() - before, 200U) << "the pauses do not grow";
    EXPECT_NE(attempt->unreachable_reports.back().detail.find("requests about locks"), std::string::npos)
        << attempt->unreachable_reports.back().detail;
    EXPECT_EQ(host.connections, (std::vector{State::reconnecting, State::reconnecting})) << only_creates;
    ensemble.fate = nullptr;
    ensemble.reconnect();
    engine.advance(10s);
    EXPECT_TRUE(attempt->grant);
    EXPECT_EQ(host.connections.back(), State::connected);
    ASSERT_TRUE(release(*backend, *attempt));
  }
  EXPECT_TRUE(host.losses.empty()) << "the heartbeats pass";
}

TEST_P(RefusalsTest, AConnectionIsReported_OnlyWhenARequestAboutALockWasAnswered) {
  next(FakeRequest::Kind::create, Fate::hold_answer);
  const auto attempt = contend(*backend);
  EXPECT_TRUE(host.connections.empty());
  ensemble.release_answers();
  engine.run();
  EXPECT_EQ(host.connections, std::vector{State::connected});
}

// --- Grants near the end of a session ---

// The core reports a loss up to that much before the end.
TEST_P(RefusalsTest, ASessionThatEndsWithinTheLeadOfALoss_GrantsNothing) {
  ASSERT_TRUE(release(*backend, *contend(*backend)));
  ensemble.fate = [](const FakeRequest& request) { return is_heartbeat(request) ? Fate::refuse : Fate::answer; };
  engine.advance(lease_valid_until(engine.now(), 10s) - longest_loss_lead - engine.now());
  const auto attempt = contend(*backend);
  EXPECT_FALSE(attempt->grant);
  ensemble.fate = nullptr;
  attempt->when_granted = [&] { EXPECT_FALSE(may_be_over(attempt->grant->valid_until, engine.now())); };
  engine.advance(5s);
  EXPECT_TRUE(attempt->grant);
}

// --- Refusals that an operator can end ---

TEST_P(RefusalsTest, AServerThatRefusesForNow_IsWaitedForAndNamedOnce) {
  const auto holder = contend(*backend, true, "other");
  ensemble.fate = [](const FakeRequest& request) {
    return request.kind == FakeRequest::Kind::create ? Fate::refuse : Fate::answer;
  };
  const auto attempt = contend(*backend);
  const auto attempt_only = contend(*backend, false);
  engine.advance(30s);
  EXPECT_TRUE(failed(*attempt_only, errc::unavailable));
  EXPECT_FALSE(attempt->failure);
  std::set<std::string> reasons;
  for (const Failure& why : attempt->unreachable_reports) reasons.insert(why.detail);
  EXPECT_EQ(reasons.size(), 1U);
  EXPECT_EQ(release(*backend, *holder)->status, ReleaseStatus::released);
  ensemble.fate = nullptr;
  engine.advance(5s);
  EXPECT_TRUE(attempt->grant);
}

INSTANTIATE_TEST_SUITE_P(, RefusalsTest, testing::Values("", "strategy=sequential-herd", "strategy=ephemeral"));

}  // namespace

}  // namespace dlock::zookeeper
