// A session on a manual engine, with an ensemble that the test plays, and everything that its user hears written down.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "backends/zookeeper/connection/session.hpp"
#include "fake_handle.hpp"
#include "tests/support/manual_engine.hpp"

namespace dlock::zookeeper {

using namespace std::chrono_literals;
using Words = std::vector<std::string>;

struct RecordingUser final : Session::User {
  void session_ready(bool fresh) override { heard.emplace_back(fresh ? "new" : "again"); }
  void session_good() override { ++good; }
  void session_alive(TimePoint valid_until) override { alive.push_back(valid_until); }
  void session_suspended(const Failure& why) override {
    heard.emplace_back("suspended");
    reasons.push_back(why);
  }
  void session_lost(const Failure& why) override {
    heard.emplace_back("lost");
    reasons.push_back(why);
    if (when_lost) when_lost();
  }
  std::function<void()> when_lost;
  std::vector<std::string> heard;
  int good = 0;
  std::vector<TimePoint> alive;
  std::vector<Failure> reasons;
};

class SessionTest : public testing::Test {
 protected:
  SessionTest() {
    options.hosts = {{.name = "h", .port = 2181}};
    options.session_timeout = 9s;
    options.connect_timeout = 5s;
  }
  void connect() {
    session.want();
    engine.run();
  }
  void answer_with(Fate fate) {
    ensemble.fate = [fate](const FakeRequest&) { return fate; };
  }
  // Each request ends its connection, unanswered.
  void hang_up() {
    ensemble.fate = [this](const FakeRequest& request) {
      ensemble.disconnect(request.session);
      return Fate::lose_request;
    };
  }
  [[nodiscard]] std::set<std::string> reasons() const {
    std::set<std::string> all;
    for (const Failure& why : user.reasons) all.insert(why.detail);
    return all;
  }
  [[nodiscard]] TimePoint safe_after(TimePoint sent) const { return lease_valid_until(sent, 9s) - 2250ms; }

  test::ManualEngine engine;
  FakeEnsemble ensemble{engine};
  Options options;
  RecordingUser user;
  Session session{engine, options, ensemble.handles(), user};
};

class ReadySessionTest : public SessionTest {
 protected:
  ReadySessionTest() { connect(); }
};

}  // namespace dlock::zookeeper
