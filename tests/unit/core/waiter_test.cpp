// The waiting acquire of the SPI: each row is a script of what happens to it, and what it does.
#include <dlock/spi/waiter.hpp>

#include <gtest/gtest.h>

#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/manual_engine.hpp"

namespace dlock {
namespace {

using namespace std::chrono_literals;

using Log = std::vector<std::string>;

class Session final : public SessionWaiters {
 public:
  Session(Executor& executor, Log& log) : SessionWaiters(executor, 2s), executor_(executor), log_(log) {}

  bool usable = true;
  std::chrono::nanoseconds safe_for = 10s;

 private:
  [[nodiscard]] bool session_usable() const override { return usable; }
  void want_session() override { log_.emplace_back("want"); }
  [[nodiscard]] Failure session_problem() const override { return {errc::unavailable, "no session"}; }
  [[nodiscard]] std::chrono::nanoseconds session_lease() const override { return 10s; }
  [[nodiscard]] TimePoint session_valid_until() const override { return executor_.now() + safe_for; }

  Executor& executor_;
  Log& log_;
};

class ScriptedWaiter final : public SessionWaiter {
 public:
  ScriptedWaiter(Session& session, const LockRequest& request, GrantSink& sink, Log& log)
      : SessionWaiter(session, request, sink), log_(log) {}
  ~ScriptedWaiter() override { cancel(); }

  void answer(const std::function<void(ScriptedWaiter&)>& what) {
    const auto handler = std::exchange(handler_, nullptr);
    ASSERT_TRUE(handler) << "no request is in flight";
    handler(what);
  }
  // The answer of the first request of all.
  void late_answer() {
    ASSERT_TRUE(first_handler_);
    first_handler_([](ScriptedWaiter& waiter) { waiter.log_.emplace_back("late"); });
  }
  void grant() {
    if (auto grant = grant_of(FencingToken(7))) granted(*std::move(grant));
  }
  std::function<void()> when_resumed = [] {};
  using Waiter::busy;
  using Waiter::ended;
  using Waiter::failed;
  using Waiter::retry_later;
  using Waiter::wait;

 private:
  using Handler = std::function<void(const std::function<void(ScriptedWaiter&)>&)>;

  void send(const char* what) {
    log_.emplace_back(what);
    start_request();
    handler_ = on_answer([this](const std::function<void(ScriptedWaiter&)>& then) { then(*this); });
    if (!first_handler_) first_handler_ = handler_;
  }
  void resume() override {
    send("resume");
    when_resumed();
  }
  void woken() override { send("woken"); }
  void check() override { send("check"); }
  void give_up() override {
    log_.emplace_back("give_up");
    wake();  // what it frees may be what this waits for
  }
  void place_lost() override { log_.emplace_back("place_lost"); }

  Log& log_;
  Handler handler_;
  Handler first_handler_;
};

// Writes into the same log.
class LoggingSink final : public GrantSink {
 public:
  explicit LoggingSink(Log& log) : log_(log) {}
  void granted(Grant grant) override {
    EXPECT_EQ(grant.name, "x");
    EXPECT_EQ(grant.token, FencingToken(7));
    EXPECT_EQ(grant.lease, 10s);
    log_.emplace_back("granted");
  }
  void busy() override { log_.emplace_back("busy"); }
  void unreachable(Failure why) override {
    EXPECT_TRUE(why.code == errc::unavailable || why.code == errc::ambiguous);
    log_.emplace_back("unreachable");
  }
  void failed(Failure why) override {
    last_failure = std::move(why);
    log_.emplace_back("failed");
  }
  Failure last_failure;

 private:
  Log& log_;
};

struct Row {
  const char* name;
  const char* script;
  const char* log;
  bool waits = true;
};

void PrintTo(const Row& row, std::ostream* out) {
  *out << row.name;
}

class WaiterTest : public testing::TestWithParam<Row> {
 protected:
  void run(const Row& row) {
    const std::map<std::string, std::function<void()>> words = {
        {"start", [&] { begin(row.waits); }},
        {"cancel", [&] { waiter_.reset(); }},
        {"wait", [&] { waiter_->answer([](ScriptedWaiter& waiter) { waiter.wait(30s); }); }},
        {"poll", [&] { waiter_->answer([](ScriptedWaiter& waiter) { waiter.wait({}); }); }},
        {"grant", [&] { waiter_->answer([](ScriptedWaiter& waiter) { waiter.grant(); }); }},
        {"is_busy", [&] { waiter_->answer([](ScriptedWaiter& waiter) { waiter.busy(); }); }},
        {"retry", [&] { waiter_->answer([](ScriptedWaiter& waiter) { waiter.retry_later(); }); }},
        {"unavailable", [&] { fails(errc::unavailable); }},
        {"ambiguous", [&] { fails(errc::ambiguous); }},
        {"denied", [&] { fails(errc::access_denied); }},
        {"late_answer", [&] { waiter_->late_answer(); }},
        {"wake", [&] { waiter_->wake(); }},
        {"up", [&] { session_.usable = true; }},
        {"down", [&] { session_.usable = false; }},
        {"nearly_over", [&] { session_.safe_for = longest_loss_lead; }},
        {"safe", [&] { session_.safe_for = 10s; }},
        {"ready", [&] { session_.session_ready(); }},
        {"suspended",
         [&] {
           session_.session_suspended({errc::unavailable, "gone"});
         }},
        {"refused",
         [&] {
           session_.session_suspended({errc::access_denied, "no"});
         }},
        {"lost",
         [&] {
           session_.session_lost({errc::lost, "expired"});
         }},
    };
    std::istringstream script(row.script);
    for (std::string word; script >> word;) {
      const auto known = words.find(word);
      if (known != words.end()) {
        ASSERT_TRUE(engine_->dispatch(known->second));
        engine_->run();
      } else {
        engine_->advance(std::chrono::milliseconds(std::stoi(word)));
      }
    }
  }
  static LockRequest request(bool waits) {
    return {.name = "x", .owner = {1, 2}, .holder = "h", .lease = 10s, .wait = waits};
  }
  void begin(bool waits) {
    waiter_ = std::make_unique<ScriptedWaiter>(session_, request(waits), sink_, log_);
    waiter_->start();
  }
  void fails(errc code) {
    waiter_->answer([code](ScriptedWaiter& waiter) { waiter.failed({code, "why"}); });
  }
  [[nodiscard]] std::string text() const {
    std::string all;
    for (const std::string& each : log_) all += (all.empty() ? "" : " ") + each;
    return all;
  }
  void TearDown() override {
    ASSERT_TRUE(engine_->dispatch([this] { waiter_.reset(); }));
    engine_->run();
    EXPECT_EQ(engine_->pending_timers(), 0U);
    EXPECT_TRUE(session_.empty());
  }

  std::shared_ptr<test::ManualEngine> engine_ = std::make_shared<test::ManualEngine>();
  Log log_;
  LoggingSink sink_{log_};
  Session session_{*engine_, log_};
  std::unique_ptr<ScriptedWaiter> waiter_;
};

TEST_P(WaiterTest, Script_LeadsToItsLog) {
  run(GetParam());
  EXPECT_EQ(text(), GetParam().log);
}

// Numbers are milliseconds that pass.
constexpr Row rows[] = {
    {"a free lock", "start grant 60000", "resume granted"},
    {"a held lock, checked, then granted", "start wait 29999 1 grant", "resume busy check granted"},
    {"a wake-up", "start wait wake grant", "resume busy woken granted"},
    {"a wake-up while an answer is on its way", "start wake wait grant", "resume busy woken granted"},
    {"which counts once", "start wake wait wait", "resume busy woken busy"},
    {"it does not hide that the service answers", "start unavailable 20 wake wait unavailable 20 grant",
     "resume unreachable resume busy woken unreachable resume granted"},
    {"and not for a request that was sent after it", "start wake retry 20 wait", "resume resume busy"},
    {"a wake-up while backing off", "start unavailable wake grant", "resume unreachable resume granted"},
    {"a poll without a pause is no busy loop", "start poll 0 1 grant", "resume busy check granted"},
    {"no answer", "start unavailable 20 ambiguous 40 grant", "resume unreachable resume unreachable resume granted"},
    {"the pause doubles, and a busy answer resets it",
     "start unavailable 20 unavailable 19 suspended 21 wait wake unavailable 20 grant",
     "resume unreachable resume unreachable unreachable resume busy woken unreachable resume granted"},
    {"a refusal ends it", "start denied 60000", "resume give_up failed"},
    {"a late answer is ignored while waiting", "start wait late_answer", "resume busy"},
    {"while a later request is in flight", "start wait wake late_answer", "resume busy woken"},
    {"after the end", "start grant late_answer", "resume granted"},
    {"a wake-up after the end", "start grant wake", "resume granted"},
    {"cancelled in flight", "start cancel 60000", "resume give_up"},
    {"cancelled while waiting", "start wait cancel 60000", "resume busy give_up"},
    {"cancelled after the grant", "start grant cancel", "resume granted"},

    {"a try of a held lock", "start is_busy 60000", "resume give_up busy", false},
    {"a try without an answer", "start ambiguous 60000", "resume give_up failed", false},
    {"a try without a session learns why, late", "down start 1499 up ready grant", "want resume granted", false},
    {"or fails", "down start 1500", "want unreachable", false},

    {"no session yet", "down start 60000 up ready grant", "want resume granted"},
    {"a known reason is reported at once", "suspended down start", "want unreachable"},
    {"but not to a try", "suspended down start", "want", false},
    {"nor when a session was there since", "suspended ready down start", "want"},
    {"suspended in flight", "start suspended grant", "resume unreachable granted"},
    {"suspended while waiting: the place is kept", "start wait suspended ready", "resume busy unreachable busy"},
    {"suspended while backing off", "start unavailable down 20 up ready grant",
     "resume unreachable want resume granted"},
    {"ready while backing off", "start unavailable ready grant", "resume unreachable resume granted"},
    {"ready while an answer is on its way", "start ready grant", "resume granted"},
    {"a wake-up without a session", "start wait down wake up ready grant", "resume busy want resume granted"},
    {"a check without a session", "start wait down 30000 up ready grant", "resume busy want resume granted"},
    {"a login that is refused", "start wait refused 60000", "resume busy give_up failed"},
    {"a session that is lost", "start wait down lost late_answer up ready grant",
     "resume busy place_lost want unreachable resume granted"},
    {"a try whose session is lost", "start down lost up ready grant", "resume place_lost want resume granted", false},
    {"and waits for the next session anew", "down start 1499 lost 1499 up ready grant",
     "want place_lost want resume granted", false},
    {"after the grant the session is no concern", "start grant suspended refused lost ready", "resume granted"},
    {"a grant of a session that is about to end", "nearly_over start grant safe 20 grant", "resume resume granted"},
    {"a grant without a session", "start down grant up ready grant", "resume want resume granted"},
};

INSTANTIATE_TEST_SUITE_P(Rows, WaiterTest, testing::ValuesIn(rows));

// Waiters must queue in the order of their acquires, even after a reconnection.
TEST_F(WaiterTest, WaitersOfASession_ResumeInOrder) {
  session_.usable = false;
  std::map<std::string, std::unique_ptr<ScriptedWaiter>> waiters;
  std::vector<std::string> order;
  const auto add = [&](const std::string& name, const std::function<void()>& then) {
    auto& waiter = waiters[name] = std::make_unique<ScriptedWaiter>(session_, request(true), sink_, log_);
    waiter->when_resumed = [&, name, then] {
      order.push_back(name);
      then();
    };
    waiter->start();
  };
  ASSERT_TRUE(engine_->dispatch([&] {
    add("first", [&] {
      waiters.erase("second");
      add("new", [] {});
    });
    add("second", [] {});
    add("third", [] {});
    session_.usable = true;
    session_.session_ready();
    EXPECT_EQ(order, (std::vector<std::string>{"first", "new", "third"})) << "the new one started by itself";
    waiters.clear();
  }));
  engine_->run();
}

}  // namespace
}  // namespace dlock
