// A session: how it comes up, until when it is valid, what it survives, how it ends, and at which host it is looked
// for. What codes of the client library mean.
#include <gtest/gtest.h>
#include <zookeeper/zookeeper.h>

#include <set>
#include <utility>

#include "backends/zookeeper/connection/errors.hpp"
#include "backends/zookeeper/connection/liveness.hpp"
#include "backends/zookeeper/connection/session.hpp"
#include "scenario.hpp"

namespace dlock::zookeeper {
namespace {

struct SessionParts {
  test::ManualEngine engine;
  FakeEnsemble ensemble{engine};
  Options options;
};

// Its timeout is 9 s, so there is a heartbeat every 2.25 s. The query has the hosts.
class SessionScript final : private SessionParts, public Script, private Session::User {
 public:
  explicit SessionScript(const std::string& hosts) : Script(engine, ensemble) {
    std::istringstream names(hosts.empty() ? "h" : hosts);
    for (std::string name; std::getline(names, name, ',');) options.hosts.push_back({.name = name, .port = 2181});
    options.session_timeout = 9s;
    options.connect_timeout = 5s;
    session_.on_watch([this](Handle::WatchId id) { fired_ += id == Session::all_watches ? 1 : 0; });
    add_words();
    add_expectations();
  }

 private:
  void session_ready(bool fresh) override { heard_ += fresh ? " new" : " again"; }
  void session_good() override { ++good_; }
  void session_alive(TimePoint valid_until) override {
    EXPECT_EQ(valid_until, session_.valid_until());
    ++alive_;
  }
  void session_suspended(const Failure& why) override {
    heard_ += " suspended";
    reasons_.push_back(why);
  }
  void session_lost(const Failure& why) override {
    heard_ += " lost";
    reasons_.push_back(why);
    if (!on_loss_.empty()) run(on_loss_);
  }

  void add_words() {
    words_["session_timeout"] = [this](Words& words) { options.session_timeout = *duration(next(words)); };
    words_["connect_timeout"] = [this](Words& words) { options.connect_timeout = *duration(next(words)); };
    words_["want"] = [this](Words&) { session_.want(); };
    words_["rest"] = [this](Words&) { session_.rest(); };
    words_["close"] = [this](Words&) { session_.close([this] { is_closed_ = true; }); };
    words_["on_loss"] = [this](Words& words) { on_loss_ = rest(words); };  // STATEMENT
    words_["write"] = [this](Words&) {                                     // an answer of which counts
      session_.handle().remove("/nothing", [this](const Outcome& outcome) {
        answers_.emplace_back(outcome.problem, session_.epoch());
        if (outcome.problem == Problem::no_node) session_.acknowledged(outcome.sent);
      });
    };
    words_["ask"] = [this](Words&) {  // about a lock
      session_.request_sent(Session::Kind::read);
      session_.handle().get("/nothing", 0, [this](const Outcome& outcome, const Handle::Node&) {
        session_.request_answered(Session::Kind::read, outcome);
      });
    };
    // --- Time. The end: valid_until() ---
    words_["stop"] = [this](Words& words) { engine.manual_clock().advance(*duration(next(words))); };  // the process
    words_["stop_until_end"] = [this](Words&) { engine.manual_clock().advance(left()); };
    words_["until_end"] = [this](Words&) { engine.advance(left()); };
    words_["until_just_before_end"] = [this](Words&) { engine.advance(left() - 1ns); };
    words_["until_closed"] = [this](Words&) {  // another handle
      for (const int closed = ensemble.closed; closed == ensemble.closed;) engine.advance(1ms);
    };
    words_["stamp"] = [this](Words& words) { times_[next(words)] = engine.now(); };
    words_["keep"] = [this](Words& words) { times_[next(words)] = session_.valid_until(); };
  }

  void add_expectations() {
    words_["valid"] = [this](Words& words) {  // for the timeout DURATION from a stamp on
      const auto timeout = *duration(next(words));
      EXPECT_EQ(session_.valid_until(), lease_valid_until(times_.at(next(words)), timeout));
    };
    words_["extended"] = [this](Words& words) {  // what was kept, by DURATION
      const TimePoint kept = times_.at(next(words));
      EXPECT_EQ(session_.valid_until(), kept + *duration(next(words)));
    };
    words_["heard"] = [this](Words& words) {  // since it was looked at
      EXPECT_EQ(heard_.empty() ? heard_ : heard_.substr(1), rest(words));
      heard_.clear();
    };
    words_["ready"] = [this](Words&) { EXPECT_TRUE(session_.ready()); };
    words_["unready"] = [this](Words&) { EXPECT_FALSE(session_.ready()); };
    words_["idle"] = [this](Words&) { EXPECT_TRUE(session_.idle()); };
    words_["epoch"] = [this](Words& words) { EXPECT_TRUE(is_in(session_.epoch(), next(words))); };
    words_["good"] = [this](Words& words) { EXPECT_TRUE(is_in(good_, next(words))); };
    words_["alive"] = [this](Words& words) { EXPECT_TRUE(is_in(alive_, next(words))); };
    words_["fired"] = [this](Words& words) { EXPECT_TRUE(is_in(fired_, next(words))); };  // all watches
    words_["no_problem"] = [this](Words&) { EXPECT_FALSE(session_.problem().code); };
    words_["problem"] = [this](Words& words) { EXPECT_TRUE(is_failure(session_.problem(), words)); };
    words_["reason"] = [this](Words& words) { EXPECT_TRUE(is_failure(reasons_.back(), words)); };  // the last one
    words_["reasons"] = [this](Words& words) {                                                     // different ones
      std::set<std::string> all;
      for (const Failure& why : reasons_) all.insert(why.detail);
      EXPECT_TRUE(is_in(all.size(), next(words)));
    };
    words_["failed_in"] = [this](Words& words) {  // EPOCH COUNT: writes
      const auto is = std::pair<Problem, std::uint64_t>(Problem::session_over, std::stoul(next(words)));
      EXPECT_TRUE(is_in(static_cast<std::size_t>(std::ranges::count(answers_, is)), next(words)));
    };
    words_["hosts"] = [this](Words& words) {  // different ones that were dialled
      EXPECT_TRUE(is_in(std::set(ensemble.dialled_first.begin(), ensemble.dialled_first.end()).size(), next(words)));
    };
  }

  [[nodiscard]] std::chrono::nanoseconds left() const { return session_.valid_until() - engine.now(); }

  std::string heard_;
  std::string on_loss_;
  std::size_t good_ = 0;
  std::size_t alive_ = 0;
  std::size_t fired_ = 0;
  std::vector<Failure> reasons_;
  std::vector<std::pair<Problem, std::uint64_t>> answers_;
  std::map<std::string, TimePoint> times_;
  Session session_{engine, options, ensemble.handles(), *this};
};

class SessionScenario : public testing::TestWithParam<Scenario> {};

TEST_P(SessionScenario, Holds) {
  run_scenario<SessionScript>(GetParam());
}

constexpr Scenario session_rows[] = {
    // --- Coming up ---
    {"Session_NotWanted_IsNotMade", "", "60min; dialled 0; unready; epoch 0; rest; closed 0"},
    // Hazard: a callback blocks: the library's threads only post a message
    {"Session_Wanted_ComesUpOnceAndNotInsideTheCall", "",
     "want; heard; run; heard new; ready; epoch 1; repeat 10 want, run; heard; dialled 1"},
    {"Attempt_Unsuccessful_SaysWhyAfterTheConnectTimeout", "",
     "session_timeout 30s; dial refuse; want; run; problem unavailable not connected; 4999ms; heard; 1ms; heard "
     "suspended; problem unavailable h:2181; dial accept; reconnect; run; heard new; dialled 1; no_problem"},
    {"Attempt_ThatCannotBegin_IsRepeatedWithGrowingPauses", "",
     "dial fail; want; run; heard suspended; 60s; dialled 30-80; dial accept; {2s; ready|want; 50ms; ready}"},
    {"ManyWishes_DialNotMoreOften", "", "dial fail; repeat 1000 want, 1ms; dialled 1-30"},
    {"Credentials_Refused_AreFinalUntilTheNextWish", "",
     "dial refuse_auth; want; run; heard suspended; reason access_denied; problem access_denied; 60min; dialled 1; "
     "want; 50ms; dialled 2"},
    {"Server_RequiringAuthentication_IsNamedAndNotTriedAgain", "",
     "dial require_auth; want; run; heard suspended; reason access_denied; problem access_denied "
     "SESSIONCLOSEDREQUIRESASLAUTH; 60min; dialled 1; asked heartbeat 1; dial accept; want; 50ms; heard new"},
    {"Server_ClosingUponTheFirstRequest_IsTriedWithPauses", "",
     "on heartbeat* lose_request do disconnect; want; 60s; dialled 30-80; reasons 2; good 0; problem unavailable "
     "auth=; calm; 2s; ready; good 0; 15s; good 1"},
    {"FirstRequest_NotAnswered_IsNamedAfterTheConnectTimeout", "",
     "on heartbeat* hold; want; 5s; heard suspended; problem unavailable no answer to a request"},

    // --- Validity ---
    {"Session_IsValidForTheGrantedTimeout_FromBeforeItWasRequested", "",
     "grants 6s; answers_after 700ms; stamp a; want; 1s; ready; valid 6s a; alive 1"},
    {"Session_IsKeptAliveByAWriteEveryQuarter", "",
     "want; run; mark; 24750ms; stamp a; 2250ms; valid 9s a; asked heartbeat 12; sent; heard new; ready"},
    {"Heartbeat_NotAnswered_IsNotRepeated", "", "want; run; on heartbeat* hold; mark; 8s; asked heartbeat 1"},
    {"Heartbeat_NeedsNoRights", "", "forbid_below /; want; 1min; heard new"},
    // With enableEagerACLCheck a server that is cut off from the others may say so by itself.
    {"Heartbeat_ForbiddenOrRefused_IsNone", "",
     "want; run; on heartbeat* {forbid|refuse}; until_end; heard new lost; reason lost"},
    {"Writes_Answered_StandInForHeartbeats", "",
     "want; run; mark; repeat 27 1s, write, run; stamp a; repeat 3 1s, write, run; asked heartbeat 0; valid 9s a; "
     "alive 10-31"},
    // Hazard: a paused process, a late reconnection: dlock checks the clock, not the state
    {"Process_Stopped_FindsTheSessionOverBeforeATimerDoes", "",
     "want; run; {stop 9s|stop_until_end}; unready; problem unavailable 9s; run; heard new lost"},
    {"FirstRequest_AnsweredAfterTheDeadline_MakesNoSession", "",
     "on heartbeat hold; want; run; stop 10s; release_answers; tasks 1; unready; heard"},
    {"Request_Held_CountsFromItsBeginning", "",
     "dial silence; stamp a; want; 4s; dial accept; reconnect; run; ready; dialled 1; valid 9s a"},

    // --- Suspended ---
    {"Disconnect_SuspendsAndLosesNothing", "",
     "want; run; keep v; disconnect; run; unready; problem unavailable; heard new suspended; 5s; reconnect; stamp r; "
     "run; ready; heard again; epoch 1; extended v 0ms; 2250ms; valid 9s r"},
    {"Reconnection_Alone_ExtendsNothing", "",
     "want; run; keep v; disconnect; 5s; on heartbeat* hold; reconnect; run; extended v 0ms; until_end; heard new "
     "suspended lost"},
    {"Reconnection_AfterTheDeadline_ComesTooLate", "",
     "want; run; disconnect; run; {stop_until_end|stop 10s}; reconnect; {|disconnect}; run; heard new suspended lost"},
    {"Reconnection_AuthenticationRequired_EndsNoLockEarly", "",
     "want; run; disconnect; dial require_auth; reconnect; run; heard new suspended suspended; reason access_denied; "
     "problem access_denied; dial accept; reconnect; 1s; heard again; disconnect; dial require_auth; reconnect; "
     "until_just_before_end; heard suspended suspended; until_end; heard lost; reason lost SESSIONCLOSEDREQUIRES"},
    {"Reconnection_ClosedUponTheFirstRequest_IsRepeatedWithPauses", "",
     "want; run; on heartbeat* lose_request do disconnect; disconnect; mark; repeat 4000 reconnect, 1ms; asked "
     "heartbeat 1-12; reasons 2; calm; 2s; ready"},
    {"Connection_BrokenUnderARequest_NextProvesItselfFirst", "",
     "want; run; good 1; on get hold; ask; disconnect; run; reconnect; run; good 1; {15s|2s; ask; run}; good 2"},
    // Trouble at the beginning, then good for a day: the next session is requested without a long pause, although this
    // one was not confirmed again since its connection was made anew.
    {"Reconnection_HasNotToProveItselfAnew", "",
     "dial fail; want; 1min; dial accept; 1440min; ready; disconnect; run; on heartbeat* hold; reconnect; run; mark; "
     "expire; 50ms; dialled 1"},
    {"Reconnection_WithAShorterTimeout_EndsTheSession", "",
     "want; run; disconnect; grants 4s; reconnect; run; heard new suspended lost"},
    // To end its handle might end the session, and let others in.
    {"Session_ThatMayHoldLocks_IsNotGivenUpForASilentHost", "",
     "want; run; disconnect; dial silence; until_just_before_end; dialled 1; closed 0; dial accept; reconnect; run; "
     "heard new suspended again"},

    // --- Lost ---
    {"Servers_OutOfReach_LoseItAtTheDeadline", "",
     "want; run; disconnect; until_just_before_end; heard new suspended; until_end; heard lost; reason lost"},
    // A client that learns of the loss can still stop before another one is let in. Others may count on its being over,
    // so the session is closed even if the server still knows it.
    // Hazard: the session expires under a holder: the loss signal comes before the nodes go
    {"Answers_StayAway_LoseItAtTheDeadlineBeforeItIsClosed", "",
     "want; run; put /a/node ours; on_loss closed 0; on heartbeat* hold; until_end; heard new lost; closed 1; gone "
     "/a/node; calm; 1s; ready; epoch 2; heard new"},
    {"Expiry_IsALoss_AndANewSessionFollows", "",
     "want; run; expire; run; heard new lost; reason lost; unready; problem unavailable; 1s; heard new; epoch 2; "
     "closed 1"},
    {"Expiry_IsNoticedAfterReconnecting", "",
     "want; run; disconnect; expire; 1s; heard new suspended; reconnect; run; heard lost"},
    // Hazard: closing loses answers: dlock answers the rest
    {"Requests_OfALostSession_AreAnsweredBeforeTheNextIsReady", "",
     "want; run; on any* hold; on heartbeat* hold; repeat 3 write; until_end; failed_in 1 3"},
    // All clients that lose their sessions at the same moment would dial at the same moment.
    {"Session_Lost_IsWantedBackInItsTurn", "", "want; run; on_loss want; 1s; expire; run; dialled 1; 20ms; dialled 2"},
    {"Session_Lost_OnceItHadItsTurnAWishEndsThePause", "",
     "want; run; dial silence; expire; 60s; until_closed; dial accept; want; 50ms; ready"},
    {"Session_ThatKeepsEnding_IsNotMadeAnewWithoutPause", "",
     "on heartbeat* hold; want; run; repeat 1000 expire, 10ms; dialled 1-30"},

    // --- Hosts ---
    {"SilentHost_IsLeftWithinTheConnectTimeout", "a,b", "session_timeout 30s; silent {a|b}; want; 4999ms; heard new"},
    {"SilentHosts_EachGetsItsTurn", "a,b,c,d",
     "session_timeout 30s; dial silence; want; 4999ms; hosts 4; dialled 4; closed 3; heard; 1ms; heard suspended; "
     "problem unavailable"},
    {"SilentHosts_AreTriedLessOften_UntilOneIsBack", "a,b",
     "session_timeout 30s; connect_timeout 200ms; dial silence; want; 10min; dialled 30-60; dial accept; 18s; ready"},
    {"SlowServer_IsReachedInTheEnd", "", "connect_timeout 100ms; answers_after 500ms; want; 3s; ready"},
    {"SilentHost_IsLeftAfterHalfOfTheSessionTimeout", "a,b", "connect_timeout 1min; silent {a|b}; want; 4500ms; ready"},
    // Less is requested than servers grant.
    {"ShortSession_LeavesTheNetworkItsTime", "",
     "session_timeout 200ms; grants 4s; answers_after 300ms; want; 5s; ready"},
    {"HostsThatRefuse_AreLeftToTheClientLibrary", "", "dial refuse; want; 60min; dialled 1; heard suspended"},
    {"NextHost_CountsFromItsOwnAttempt", "a,b",
     "dial silence; want; 2500ms; dialled 2; stamp a; 1s; dial accept; reconnect; run; ready; valid 9s a"},
    // It would be valid for too short a time, or for none.
    // Hazard: a session that was requested long ago: it counts from then, or is replaced
    {"LongOutage_SessionIsRequestedAnew", "",
     "dial refuse; want; 60min; dial accept; reconnect; stamp a; run; ready; heard suspended new; valid 9s a; epoch 1; "
     "closed 1"},
    // Servers that are slow every time: a session that is not valid yet is better than none.
    {"SessionLateTwice_IsTakenAndValidAfterItsHeartbeats", "",
     "dial refuse; want; 20s; dial accept; reconnect; dial refuse; run; dialled 2; stamp a; 20s; dial accept; "
     "reconnect; run; dialled 2; ready; valid 9s a; stamp c; 2250ms; valid 9s c; heard suspended suspended new"},

    // --- Rest and end ---
    {"Rest_GivesTheSessionUpUntilItIsWantedAgain", "",
     "want; run; heard new; rest; unready; idle; fired 1; 1min; closed 1; dialled 1; heard; want; run; ready; epoch 2; "
     "heard new"},
    {"Rest_AfterALoss_HoldsNoWishBack", "", "want; run; expire; run; rest; want; run; ready"},
    {"RestOrClose_EndsAttemptsAndPauses", "",
     "{dial silence; want; run; heard|dial fail; want; run; heard suspended}; {rest|close; run; is_closed}; run; "
     "closed 1; 1min; heard; dialled 1"},
    {"Rest_IsNoWayBackFromTheEnd", "", "want; run; close; rest; want; 1min; dialled 1; problem closed"},
    {"Close_EndsTheSessionAtTheServer", "",
     "want; run; put /a/node ours; close; is_not_closed; run; is_closed; gone /a/node; unready; problem closed; 60min; "
     "want; 60min; dialled 1; heard new"},
    {"Close_WaitsForSessionsThatAreBeingEnded", "", "want; run; expire; tasks {0..3}; close; run; is_closed; closed 1"},
};

INSTANTIATE_TEST_SUITE_P(, SessionScenario, testing::ValuesIn(session_rows), name_of);

// --- When it is safe, by our own clock: events and times in, times out -----------------------------------------------

TimePoint at(int ms) {
  return TimePoint() + std::chrono::hours(1) + std::chrono::milliseconds(ms);
}

// With a timeout of 8 s. Times are in ms.
struct LivenessRow {
  const char* what;
  const char* events;  // "begin REQUESTED NOW", "ack SENT NOW", "end 0 0"
  int valid_from;      // of which request a timeout counts; -1: none
  int probe_at = 0;
  int expires_at = 0;  // 0: as valid_until()
};

constexpr LivenessRow liveness_rows[] = {
    {"there is no session", "", -1},
    {"a session that came at once", "begin 0 0", 0, 2000},
    // The margin of a lease: 1 % and 2 ms.
    {"one that came late gets the time for its first heartbeat", "begin 0 3000", 0, 2000, 3000 + 8000 - 82 - 2000},
    {"one write says only that the session lived", "begin 0 0 ack 1000 1001", 0, 3000},
    {"nor do two that are close", "begin 0 0 ack 1000 1001 ack 2999 3000", 0, 4999},
    {"a quarter later the leader knew", "begin 0 0 ack 1000 1001 ack 3000 3001", 1000, 5000},
    {"after a gap it need not have known", "begin 0 0 ack 6000 6000", 0, 8000},
    {"of several the newest that it knew counts", "begin 0 0 ack 500 500 ack 1000 1000 ack 3100 3100", 1000, 5100},
    {"too many are not kept apart", "begin 0 0 ack 1000 1000 ack 1100 1100 ack 3110 3110", 1000, 5110},
    {"a sixteenth of the quarter is", "begin 0 0 ack 1000 1000 ack 1125 1125 ack 3125 3125", 1125, 5125},
    {"an answer that comes late counts from its request", "begin 0 0 ack 2000 5000 ack 4000 5500", 2000, 6000},
    {"an older answer takes nothing back", "begin 0 0 ack 1000 1000 ack 3000 3000 ack 2000 3100", 1000, 5000},
    {"until the deadline it can be extended", "begin 0 0 ack 2000 2000 ack 7900 7917", 2000, 9900},
    {"from the deadline on nothing is brought back to life", "begin 0 0 ack 2000 2000 ack 7900 7918", 0, 4000},
    {"an extension moves the deadline", "begin 0 0 ack 2000 2000 ack 4000 4000 ack 9000 9900", 4000, 11000},
    {"the time for the first heartbeat is not taken away", "begin 0 7000 ack 7001 7001 ack 9001 9001", 7001, 11001},
    {"after its end there is none", "begin 0 0 ack 1000 1000 end 0 0", -1},
    {"nor does an answer bring it back", "begin 0 0 end 0 0 ack 1 1", -1},
    {"the next one knows nothing of the one before",
     "begin 0 0 ack 1000 1000 begin 1050 1050 ack 1100 1100 ack 3100 3100", 1100, 5100},
};

TEST(LivenessTest, Validity_CountsFromAWriteKnownToTheLeader) {
  constexpr std::chrono::milliseconds timeout{8000};
  for (const LivenessRow& row : liveness_rows) {
    SCOPED_TRACE(row.what);
    Liveness liveness;
    std::istringstream events(row.events);
    std::string event;
    for (int sent = 0, now = 0; events >> event >> sent >> now;) {
      if (event == "begin") liveness.begin(at(sent), at(now), timeout);
      if (event == "ack") liveness.acknowledged(at(sent), at(now));
      if (event == "end") liveness.end();
    }
    const bool stands = row.valid_from >= 0;
    const TimePoint valid_until = stands ? lease_valid_until(at(row.valid_from), timeout) : TimePoint::min();
    const TimePoint expires_at = row.expires_at == 0 ? valid_until : at(row.expires_at);
    EXPECT_EQ(liveness.valid_until(), valid_until);
    EXPECT_EQ(liveness.expires_at(), expires_at);
    EXPECT_TRUE(liveness.is_over(expires_at));
    EXPECT_EQ(liveness.timeout(), stands ? timeout : std::chrono::milliseconds(0));
    if (!stands) continue;
    EXPECT_FALSE(liveness.is_over(expires_at - std::chrono::nanoseconds(1)));
    EXPECT_EQ(liveness.probe_at(), at(row.probe_at));
  }
}

// --- Codes of the client library ---

// The library has no names for these.
constexpr int unknown_session = -12;
constexpr int request_timeout = -122;
constexpr int quota_exceeded = -125;

TEST(ZooKeeperErrors, Code_HasItsMeaningForTheRequest) {
  struct Row {
    Problem problem;
    errc code;
    std::vector<int> codes;
  };
  const std::vector<Row> rows = {
      // A request that was under way may have been carried out, or may still be.
      {Problem::unknown_outcome,
       errc::ambiguous,
       {ZCONNECTIONLOSS, ZOPERATIONTIMEOUT, ZCLOSING, ZSYSTEMERROR, ZRUNTIMEINCONSISTENCY, ZDATAINCONSISTENCY,
        ZMARSHALLINGERROR, ZSSLCONNECTIONERROR, request_timeout}},
      {Problem::session_over, errc::unavailable, {ZSESSIONEXPIRED, ZINVALIDSTATE, unknown_session}},
      {Problem::session_over, errc::access_denied, {ZAUTHFAILED, ZSESSIONCLOSEDREQUIRESASLAUTH}},
      {Problem::not_executed,
       errc::unavailable,
       {ZTHROTTLEDOP, ZSESSIONMOVED, ZNOTREADONLY, ZNEWCONFIGNOQUORUM, ZRECONFIGINPROGRESS, quota_exceeded}},
      {Problem::no_rights, errc::access_denied, {ZNOAUTH, ZINVALIDACL}},
      {Problem::other, errc::invalid_argument, {ZBADARGUMENTS, ZINVALIDCALLBACK}},
      {Problem::other, errc::unsupported, {ZUNIMPLEMENTED, ZEPHEMERALONLOCALSESSION, ZRECONFIGDISABLED}},
      {Problem::other, errc::protocol, {ZNOTEMPTY, ZNOCHILDRENFOREPHEMERALS, ZBADVERSION, ZNOWATCHER}},
      // A code nobody knows is temporary: it ends a try, not a wait.
      {Problem::not_executed, errc::unavailable, {-126, -9999}},
      {Problem::unknown_outcome, errc::ambiguous, {-50, 1}},
  };
  for (const auto& [problem, code, codes] : rows) {
    for (const int each : codes) {
      EXPECT_EQ(problem_of(each), problem) << each;
      EXPECT_EQ(failure_of(each, "/a").code, code) << each;
    }
  }
  EXPECT_EQ(problem_of(ZNONODE), Problem::no_node);
  EXPECT_EQ(problem_of(ZNODEEXISTS), Problem::node_exists);
  EXPECT_EQ(problem_of(ZOK), Problem::none);
  EXPECT_FALSE(failure_of(ZOK, "/a").code);
}

TEST(ZooKeeperErrors, Failure_NamesThePathAndTheCode) {
  const std::string text = failure_of(ZNOAUTH, "/locks/a\n").detail;
  EXPECT_NE(text.find("/locks/a"), std::string::npos) << text;
  EXPECT_NE(text.find("ZNOAUTH"), std::string::npos) << text;
  EXPECT_NE(failure_of(-9999, "/a").detail.find("-9999"), std::string::npos);
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  const std::string over = failure_of(ZSESSIONCLOSEDREQUIRESASLAUTH, "/locks/a").detail;
  EXPECT_EQ(over.find("/locks/a"), std::string::npos) << "it is about the session: " << over;
  EXPECT_NE(over.find("auth="), std::string::npos) << over;
}

}  // namespace
}  // namespace dlock::zookeeper
