// When to connect, when a connection is dead, and what the observer is notified of.
#include "backends/common/reconnect.hpp"

#include <map>
#include <sstream>

#include "backends/common/connection_news.hpp"
#include "backends/common/health.hpp"
#include "tests/support/manual_engine.hpp"
#include "tests/support/recording_host.hpp"

namespace dlock::common {
namespace {

using namespace std::chrono_literals;

const Failure gone{errc::unavailable, "gone"};
const Failure refused{errc::access_denied, "wrong password"};

class ReconnectTest : public testing::Test {
 protected:
  void start(Reconnect::Rules rules = {}) {
    attempts.clear();
    reconnect.emplace(engine, rules, [this] { attempts.push_back(engine.now()); });
    reconnect->want();
  }
  // The time from now to the next attempt; nullopt: none comes within an hour.
  std::optional<std::chrono::nanoseconds> next_attempt() {
    const std::size_t before = attempts.size();
    const TimePoint now = engine.now();
    engine.advance(1h);
    if (attempts.size() == before) return std::nullopt;
    return attempts[before] - now;
  }
  // The pause after this failure, which is over afterwards.
  std::chrono::nanoseconds fail(const Failure& why = gone) {
    const TimePoint before = engine.now();
    const std::size_t known = attempts.size();
    reconnect->down(why);
    while (attempts.size() == known && engine.now() < before + 1min) engine.advance(1ms);
    return attempts.back() - before;
  }
  void fail_often() {
    for (int i = 0; i < 10; ++i) (void)fail();
  }

  test::ManualEngine engine;
  std::vector<TimePoint> attempts;
  std::optional<Reconnect> reconnect;
};

TEST_F(ReconnectTest, FirstUse_ConnectsOnce) {
  reconnect.emplace(engine, Reconnect::Rules{}, [this] { attempts.push_back(engine.now()); });
  EXPECT_FALSE(next_attempt());
  reconnect->want();
  reconnect->want();
  EXPECT_EQ(attempts.size(), 1U);
  reconnect->ready();
  reconnect->want();
  EXPECT_FALSE(next_attempt());
  EXPECT_TRUE(reconnect->is_ready());
  EXPECT_FALSE(reconnect->problem().code);
}

TEST_F(ReconnectTest, FailedAttempts_AreRepeatedAfterGrowingPauses) {
  start();
  fail_often();
  const auto longest = fail();
  EXPECT_GE(longest, 500ms);
  EXPECT_LE(longest, 1s + 1ms);
  reconnect->down(gone);
  EXPECT_EQ(reconnect->problem().detail, "gone");
  const std::size_t known = attempts.size();
  for (int i = 0; i < 100; ++i) reconnect->want();
  engine.advance(50ms);
  EXPECT_EQ(attempts.size(), known + 1) << "a new request shortens a long pause, but each of them does not dial";
}

TEST_F(ReconnectTest, BrokenConnection_IsReplacedAtOnceIfItWasGood) {
  struct Row {
    const char* name;
    bool answered;
    bool proven;
    std::chrono::nanoseconds stood;
    bool good;
  };
  for (const Row& row : {Row{"proven", false, true, 0s, true},
                         {"answered and two seconds old", true, false, 2s, true},
                         {"answered", true, false, 0s, false},
                         {"never answered", false, false, 0s, false},
                         {"never answered in an hour", false, false, 1h, false}}) {
    SCOPED_TRACE(row.name);
    start();
    std::chrono::nanoseconds pause{};
    fail_often();
    for (int i = 0; i < (row.good ? 1 : 10); ++i) {
      reconnect->ready();
      if (row.answered) reconnect->answered();
      if (row.proven) reconnect->proven();
      EXPECT_EQ(reconnect->is_good(), row.proven);
      engine.advance(row.stood);
      EXPECT_EQ(reconnect->is_good(), row.good);
      pause = fail();
    }
    EXPECT_TRUE(row.good ? pause <= 10ms : pause >= 500ms) << pause.count();
  }
}

TEST_F(ReconnectTest, FinalRefusal_StaysTheReasonUntilAnAnswer) {
  start();
  reconnect->down(refused);
  reconnect->want();
  engine.advance(1s);
  reconnect->ready();
  reconnect->down(gone);
  EXPECT_EQ(reconnect->problem().code, errc::access_denied) << "a connection that was closed unanswered";
  engine.advance(2s);
  reconnect->ready();
  reconnect->answered();
  EXPECT_FALSE(reconnect->problem().code);
  reconnect->down(gone);
  EXPECT_EQ(reconnect->problem().code, errc::unavailable);
}

TEST_F(ReconnectTest, FinalRefusal_EndsTheAttemptsUnlessItInsistsOrWasConnected) {
  start();
  reconnect->down(refused);
  EXPECT_FALSE(next_attempt());
  EXPECT_EQ(reconnect->problem().code, errc::access_denied);
  reconnect->want();
  EXPECT_TRUE(next_attempt());
  reconnect->ready();
  reconnect->down(refused);
  EXPECT_TRUE(next_attempt()) << "an interruption";
  start({.insists = true});
  for (int i = 0; i < 15; ++i) EXPECT_LE(fail(refused), 10s);
  reconnect->down(refused);
  EXPECT_GE(next_attempt().value(), 5s);
}

TEST_F(ReconnectTest, RestPauseAndEnd_AreKept) {
  start();
  reconnect->down(gone);
  reconnect->rest();
  EXPECT_TRUE(reconnect->is_idle());
  EXPECT_FALSE(next_attempt());
  reconnect->want();
  EXPECT_EQ(attempts.back(), engine.now());
  reconnect->down_until(gone, engine.now() + 7s);
  EXPECT_EQ(next_attempt(), 7s);
  reconnect->rest();
  reconnect->pause_until(engine.now() + 3s);
  EXPECT_TRUE(reconnect->is_pausing());
  EXPECT_EQ(next_attempt(), 3s);
  reconnect->down(gone);
  reconnect->stop();
  reconnect->want();
  reconnect->rest();
  EXPECT_TRUE(reconnect->is_over());
  EXPECT_FALSE(next_attempt());
}

// --- Health ----------------------------------------------------------------------------------------------------------

// A script: milliseconds that pass ("|"), as a suspension behind "sleep"; "heard", "stop"; "then_heard" and "then_stop"
// when it catches up.
class HealthTest : public testing::Test, private Health::User {
 protected:
  std::string run(const std::string& script) {
    log_.clear();
    then_ = [] {};
    health_.start();
    const std::map<std::string, std::function<void()>> verbs = {
        {"heard", [this] { health_.heard(); }},
        {"stop", [this] { health_.stop(); }},
        {"then_heard", [this] { then_ = [this] { health_.heard(); }; }},
        {"then_stop", [this] { then_ = [this] { health_.stop(); }; }},
        {"then_nothing", [this] { then_ = [] {}; }},
    };
    std::istringstream words(script);
    for (std::string word; words >> word;) {
      if (const auto verb = verbs.find(word); verb != verbs.end()) {
        verb->second();
        continue;
      }
      write("|");
      const bool sleeps = word == "sleep";
      if (sleeps) words >> word;
      const std::chrono::milliseconds time(std::stol(word));
      sleeps ? engine_.sleep_through(time) : engine_.advance(time);
    }
    health_.stop();
    return log_;
  }

 private:
  void write(const std::string& what) { log_ += (log_.empty() ? "" : " ") + what; }
  void health_ask() override { write("asked"); }
  void health_catch_up() override { then_(); }
  void health_dead() override { write("dead"); }

  test::ManualEngine engine_;
  Health health_{engine_, 1s, *this};
  std::string log_;
  std::function<void()> then_;
};

TEST_F(HealthTest, SilentServer_IsAskedThenFoundDeadOnce) {
  EXPECT_EQ(run("999 1 999 1 3600000"), "| | asked | | dead |");
  EXPECT_EQ(run("900 heard 900 heard 900 heard 1000 heard 1000 heard 1000"), "| | | | asked | asked | asked");
  EXPECT_EQ(run("then_heard 1000 sleep 3600000 then_nothing 2000"), "| asked | | asked dead") << "what came meanwhile";
  EXPECT_EQ(run("then_stop 3600000"), "| asked") << "the connection ended";
  EXPECT_EQ(run("stop 3600000"), "|");
}

// --- News ------------------------------------------------------------------------------------------------------------

// A script of connections a and b: "a+" connected, "a-" broken, "ao" opened, "ax" broken for another reason, "a#"
// broken for reasons that differ each time.
TEST(ConnectionNews, SeveralConnections_AreReportedAsOne) {
  struct Row {
    const char* name;
    const char* script;
    const char* news;
    bool reports = true;
  };
  for (const auto& [name, script, news, reports] : {
           Row{"the first that is connected, the first that breaks", "a+b+a-b-", "+-"},
           Row{"connected when none is broken", "a+b+a-a-b-a+b+", "+-+"},
           Row{"one that was never made is not missed", "a+a-a+", "+-+"},
           Row{"a break without an answer", "aoa-aoa-aoa-", "-"},
           Row{"another reason, then the first", "a-axa-", "--"},
           Row{"reasons that differ each time, then an answer", "a-axa#a+a-", "--------+-"},
           Row{"a host that wants no news", "a+a-", "", false},
       }) {
    test::ManualEngine engine;
    test::RecordingHost host{engine};
    ConnectionNews all{host, reports};
    ConnectionNews::Source a{all};
    ConnectionNews::Source b{all};
    for (const char* step = script; *step != '\0'; step += 2) {
      ConnectionNews::Source& source = *step == 'a' ? a : b;
      if (step[1] == '+') source.connected();
      if (step[1] == 'o') source.opened();
      if (step[1] == '-') source.broken(gone);
      if (step[1] == 'x') source.broken({errc::access_denied, "gone"});
      for (int i = 0; step[1] == '#' && i < 100; ++i) source.broken({errc::unavailable, std::to_string(i)});
    }
    std::string heard;
    for (const auto state : host.connections) heard += state == ConnectionEvent::State::connected ? '+' : '-';
    EXPECT_EQ(heard, news) << name;
  }
}

}  // namespace
}  // namespace dlock::common
