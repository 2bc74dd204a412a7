// The messages to a person: each kind of trouble once, until it has changed or is over; and for whom dlock waits.
#include "cli/reporter.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cli/output.hpp"
#include "tests/support/fake_backend.hpp"
#include "torture/rig/hang_guard.hpp"

namespace dlock::cli {
namespace {

using namespace std::chrono_literals;
using State = ConnectionEvent::State;

const Failure refused{errc::unavailable, "h:1: Connection refused"};
const Failure silent{errc::unavailable, "h:1: no answer in time"};
const Failure reset{errc::ambiguous, "h:1: Connection reset by peer"};
const Failure read_only{errc::access_denied, "h:1: no permission"};
const Failure evicts{errc::unavailable, "it may evict locks"};

std::string said(const std::function<void()>& events) {
  flush_messages();  // of earlier tests
  testing::internal::CaptureStderr();
  events();
  flush_messages();
  return testing::internal::GetCapturedStderr();
}

// A reporter, and the events that it is told.
struct Told {
  Reporter& reporter;
  void warn(const Failure& why) const { reporter.warning({"job", why}); }
  void warn_of_service(const Failure& why) const { reporter.warning({"", why}); }
  void cut(const Failure& why) const { reporter.connection({State::reconnecting, why}); }
  void connect() const { reporter.connection({State::connected, {}}); }
  void renew() const { reporter.renewed({"job", FencingToken(1), {}}); }
  void acquire() const { reporter.acquired({"job", FencingToken(7), 12ms}); }
  void release() const { reporter.released({"job", FencingToken(7), 5200ms, true}); }
  void lose(const char* why) const { reporter.lost({"job", FencingToken(1), {errc::lost, why}}); }
};

struct Telling {
  const char* name;
  std::function<void(const Told&)> before;  // that is not looked at
  std::function<void(const Told&)> events;
  std::string says;           // without "dlock: "
  std::string says_if_quiet;  // likewise
  std::string last_failure = {};
};
void PrintTo(const Telling& row, std::ostream* out) {
  *out << row.name;
}

const std::string out_of_reach = "no connection to the lock service, trying again: ";
const std::string quiet_out_of_reach = "cannot reach the lock service, trying again: ";
const std::string warning = "warning: ";
const std::string refusal = "h:1: Connection refused";
const std::string silence = "h:1: no answer in time";
const std::string no_permission = "h:1: no permission";
void nothing(const Told& /*told*/) {}

const std::vector<Telling> tellings{
    {"RepeatedFailure_IsReportedOnce", nothing,
     [](const Told& it) {
       for (int i = 0; i < 6; ++i) it.warn(silent);
     },
     warning + silence, quiet_out_of_reach + silence, silence},
    {"ChangedFailure_IsReportedAgain", nothing,
     [](const Told& it) { it.warn(silent), it.warn(refused), it.warn(silent), it.warn(refused); },
     warning + silence + "\n" + warning + refusal, quiet_out_of_reach + silence, refusal},
    {"FailureAfterARenewal_IsReportedAgain", nothing,
     [](const Told& it) { it.warn(silent), it.renew(), it.warn(silent); }, warning + silence + "\n" + warning + silence,
     quiet_out_of_reach + silence + "\n" + quiet_out_of_reach + silence, silence},
    {"FailureAfterAConnection_IsReportedAgain", [](const Told& it) { it.connect(), it.warn(silent), it.connect(); },
     [](const Told& it) { it.warn(silent); }, warning + silence, quiet_out_of_reach + silence, silence},
    {"FailureAfterAnAcquire_IsReportedAgain", [](const Told& it) { it.warn(silent), it.acquire(); },
     [](const Told& it) { it.warn(silent); }, warning + silence, quiet_out_of_reach + silence, silence},
    {"Outage_IsReportedAtBeginningAndEnd", [](const Told& it) { it.connect(); },
     [](const Told& it) {
       it.cut(silent);
       for (const Failure& why : {refused, silent, refused}) it.warn(why), it.cut(why);
       it.warn(reset);
       it.connect();
     },
     out_of_reach + silence + "\nconnected to the lock service again", quiet_out_of_reach + silence, reset.detail},
    {"NextOutage_IsReportedAgain", [](const Told& it) { it.cut(silent), it.connect(); },
     [](const Told& it) { it.cut(refused), it.warn(silent); }, out_of_reach + refusal, quiet_out_of_reach + refusal,
     silence},
    {"RefusalDuringAnOutage_StaysTheReason", [](const Told& it) { it.connect(), it.cut(refused); },
     [](const Told& it) { it.cut(read_only), it.cut(refused), it.warn(refused); }, out_of_reach + no_permission, "",
     no_permission},
    {"RefusalBeforeTheFirstConnection_IsNotReported", nothing, [](const Told& it) { it.cut(read_only); }, "", "",
     no_permission},
    {"FailureAfterAnEndedRefusal_IsReported",
     [](const Told& it) { it.connect(), it.cut(refused), it.cut(read_only), it.connect(); },
     [](const Told& it) { it.cut(refused); }, out_of_reach + refusal, quiet_out_of_reach + refusal, refusal},
    {"OtherWarningDuringAnOutage_IsReportedOnce", [](const Told& it) { it.cut(refused); },
     [](const Told& it) { it.warn(read_only), it.warn(read_only); }, warning + no_permission, "", refusal},
    {"WarningOfTheService_IsReportedOnce", [](const Told& it) { it.cut(refused); },
     [](const Told& it) { it.warn_of_service(evicts), it.renew(), it.warn_of_service(evicts); },
     warning + evicts.detail, "", refusal},
    {"SameFailureOfWaitAndConnection_IsReportedOnce", nothing,
     [](const Told& it) { it.warn(refused), it.cut(refused), it.warn(refused), it.connect(); },
     warning + refusal + "\nconnected to the lock service again", quiet_out_of_reach + refusal, refusal},
    {"WarningWhileQuiet_IsNotReported", nothing, [](const Told& it) { it.warn(read_only); }, warning + no_permission,
     "", ""},
    {"AfterFallSilent_NothingIsReported", [](const Told& it) { it.reporter.fall_silent(); },
     [](const Told& it) { it.warn(silent), it.cut(refused), it.connect(); }, "", "", refusal},
    {"NormalEvents_AreNotReported", nothing, [](const Told& it) { it.connect(), it.acquire(), it.release(); }, "", "",
     ""},
};

class ReporterSays : public testing::TestWithParam<Telling> {
 protected:
  static std::string lines(const std::string& text) {
    std::string result = text.empty() ? "" : "dlock: " + text + "\n";
    for (auto at = result.find('\n'); at + 1 < result.size(); at = result.find('\n', at + 1)) {
      result.insert(at + 1, "dlock: ");
    }
    return result;
  }
};

TEST_P(ReporterSays, Events_GiveTheMessagesOfEachVerbosity) {
  const auto& [name, before, events, says, says_if_quiet, last_failure] = GetParam();
  Reporter quiet(true);
  Reporter usual(false);
  Reporter verbose(false, false, true);
  for (Reporter* const each : {&quiet, &usual, &verbose}) (void)said([&] { before({*each}); });
  EXPECT_EQ(said([&] { events({usual}); }), lines(says));
  EXPECT_EQ(usual.last_failure(), last_failure);
  EXPECT_EQ(said([&] { events({quiet}); }), lines(says_if_quiet));
  const std::string all = said([&] { events({verbose}); });
  EXPECT_NE(all.find(lines(says).substr(0, 20)), std::string::npos) << all;
}

INSTANTIATE_TEST_SUITE_P(Of, ReporterSays, testing::ValuesIn(tellings),
                         [](const auto& param_info) { return std::string(param_info.param.name); });

class ReporterTest : public testing::Test {
 protected:
  TimePoint now{};
  Reporter reporter{false, false, true, [this] { return now; }};
  const Told told{reporter};
};

TEST_F(ReporterTest, FailureOfATry_IsNotReported) {
  for (const bool quiet : {false, true}) {
    Reporter tries(quiet, true);
    const Told it{tries};
    EXPECT_EQ(said([&] { it.warn(refused), it.cut(refused), it.connect(); }), "");
    EXPECT_EQ(tries.last_failure(), refusal);
    it.acquire();
    EXPECT_NE(said([&] { it.warn(refused); }), "");
  }
}

TEST_F(ReporterTest, Reached_IsTrueAfterTheFirstConnection) {
  told.warn(silent), told.cut(refused), told.warn(read_only);
  EXPECT_FALSE(reporter.reached());
  told.connect();
  EXPECT_TRUE(reporter.reached());
  told.cut(refused);
  EXPECT_TRUE(reporter.reached()) << "it was, once";
  Reporter without_news(false);
  Told{without_news}.acquire();
  EXPECT_TRUE(without_news.reached());
}

TEST_F(ReporterTest, LossOf_NamesTheKnownReason) {
  const auto loss = [this] { return reporter.loss_of("job"); };
  EXPECT_EQ(loss(), "lost \"job\"");
  told.cut(silent), told.warn(silent), told.warn(refused);
  EXPECT_EQ(loss(), "lost \"job\": its lease could not be renewed: h:1: Connection refused");
  told.acquire();
  EXPECT_EQ(loss(), "lost \"job\"") << "that was trouble of the wait";
  told.warn(reset), told.renew();
  EXPECT_EQ(loss(), "lost \"job\"") << "that is over";
  told.lose("it ran out");
  EXPECT_EQ(loss(), "lost \"job\": it ran out");
  told.warn(silent);
  EXPECT_EQ(loss(), "lost \"job\": it ran out (last failed renewal: h:1: no answer in time)");
}

TEST_F(ReporterTest, Verbose_ReportsNormalEvents) {
  EXPECT_EQ(said([&] { told.connect(), told.connect(), told.acquire(), told.release(); }),
            "dlock: connected to the lock service\n"
            "dlock: took \"job\" with token 7 after 12 ms\n"
            "dlock: freed \"job\" after 5.2 s\n");
}

TEST_F(ReporterTest, AwaitTaken_ReturnsWhenAllAreSaid) {
  EXPECT_EQ(said([&] {
              const std::jthread events([&] { told.acquire(), told.acquire(); });
              reporter.await_taken(2);
              say("runs");
            }),
            "dlock: took \"job\" with token 7 after 12 ms\n"
            "dlock: took \"job\" with token 7 after 12 ms\n"
            "dlock: runs\n");
}

TEST_F(ReporterTest, Verbose_ReportsLateRenewals) {
  const auto renew_after = [&](std::chrono::seconds pause) {
    now += pause;
    reporter.renewed({"job", FencingToken(7), 1500ms});
  };
  told.acquire();
  reporter.expect_renewals(30s);
  EXPECT_EQ(said([&] { renew_after(10s), renew_after(15s); }), "");
  EXPECT_EQ(said([&] { renew_after(16s); }),
            "dlock: renewed \"job\" late: 16.0 s after the time before, of a lease of 30.0 s; answered after 1.5 s\n");
}

// ---- For whom dlock waits
// ---------------------------------------------------------------------------------------------

class WaitTest : public testing::Test {
 protected:
  // Without limit, so that a caller who waits for the answer hangs. The service leaves the answer to the test, but says
  // that "ours" is held by the client that asks.
  [[nodiscard]] Client client(Scope scope, bool can_inspect = true) {
    service = std::make_shared<dlock::test::FakeService>();
    service->capabilities = {.backend = "asked",
                             .scope = scope,
                             .fencing = FencingDurability::wall_clock,
                             .semaphores = true,
                             .can_inspect = can_inspect};
    service->on_inspect = [this](const std::string& name) -> std::optional<Result<LockInfo>> {
      if (name == "ours") return LockInfo{.name = name, .held = true, .holder = holder};
      asked.set_value();
      return std::nullopt;
    };
    Client made = dlock::connect("asked://", {.response_timeout = forever}, service->factory());
    holder = made.holder();
    return made;
  }
  // Waits until the service was asked; returns its answer.
  [[nodiscard]] std::function<void()> answer(const Result<LockInfo>& info) {
    EXPECT_EQ(asked.get_future().wait_for(rig::hang_guard), std::future_status::ready);
    return [this, info] {
      service->host().executor().post([service = service, info] { service->questions.back()(info); });
    };
  }
  // What is said of a wait for these, of which the service says that.
  [[nodiscard]] std::string said_of(const Client& asking, const std::vector<std::string>& names, LockKind kind,
                                    const Result<LockInfo>& info) {
    return said([&] {
      reporter.explain_wait(asking, names, kind);  // returns although there is no answer
      answer(info)();
      reporter.finish_asking();
    });
  }

  std::shared_ptr<dlock::test::FakeService> service;
  std::string holder;
  std::promise<void> asked;
  Reporter reporter{false};
};

const LockInfo held_by_somebody{.name = "job", .held = true, .holder = "host:1:label"};

TEST_F(WaitTest, Answer_NamesTheHolder) {
  struct Case {
    std::vector<std::string> names;
    Result<LockInfo> answer;
    std::string says;
  };
  const auto taken = std::chrono::system_clock::now().time_since_epoch() - 60min;
  LockInfo since_an_hour = held_by_somebody;
  since_an_hour.token = FencingToken(static_cast<std::uint64_t>(taken / 1us));
  LockInfo of_three = held_by_somebody;
  of_three.holders = std::vector<HolderInfo>(3);
  const std::vector<Case> cases{
      {{"job"}, held_by_somebody, "\"job\", held by host:1:label"},
      {{"job"}, since_an_hour, "\"job\", held by host:1:label (for 1 h 0 min)"},
      {{"job"}, of_three, "\"job\", held by host:1:label and 2 more"},
      {{"ours", "job"}, held_by_somebody, "\"ours\" and \"job\": \"job\" is held by host:1:label"},
      {{"job"}, Failure{errc::unavailable, "no answer in time"}, "\"job\""},  // which the wait itself reports
  };
  const Client asking = client(Scope::machine);
  for (const Case& each : cases) {
    asked = {};
    EXPECT_EQ(said_of(asking, each.names, LockKind::lock, each.answer), "dlock: waiting for " + each.says + "\n");
  }
}

// The next wait would be held up by the answer to the first.
TEST_F(WaitTest, UnansweredEarlierQuery_OmitsTheHolder) {
  const Client asking = client(Scope::machine);
  EXPECT_EQ(said([&] {
              reporter.explain_wait(asking, {"job"});
              const auto late = answer(held_by_somebody);
              reporter.end_wait();
              reporter.explain_wait(asking, {"job"});
              late();
              reporter.finish_asking();
            }),
            "dlock: waiting for \"job\"\n");
}

TEST_F(WaitTest, UnreachableOrUnableService_IsNotQueried) {
  const Client in_network = client(Scope::network);
  const Client unable = client(Scope::machine, false);
  const Told told{reporter};
  const std::string without_holder = "dlock: waiting for \"job\"\n";
  const auto explained = [&](const Client& asking) { return said([&] { reporter.explain_wait(asking, {"job"}); }); };
  EXPECT_EQ(explained(unable), without_holder);
  EXPECT_EQ(explained(in_network), without_holder);
  (void)said([&] { told.connect(), told.cut(refused); });
  EXPECT_EQ(explained(in_network), without_holder);
  (void)said([&] { told.connect(); });
  const Client connected = client(Scope::network);
  EXPECT_EQ(said_of(connected, {"job"}, LockKind::semaphore, held_by_somebody),
            "dlock: waiting for \"job\", held by host:1:label\n");
}

}  // namespace
}  // namespace dlock::cli
