// Queries of locks, breaking and forgetting them, checks for dlock doctor, and making the node that is everything's
// root.
#include <gtest/gtest.h>

#include <utility>

#include "scenario.hpp"

namespace dlock::zookeeper {
namespace {

using Severity = Finding::Severity;

// Queries about the lock "lock", unless another is named. Each of them has one answer, which is what the next statement
// about an answer means.
class AdministrationScript final : public BackendScript {
 public:
  explicit AdministrationScript(std::string query) : BackendScript(std::move(query)) {
    srvr = "Zookeeper version: 3.8.0-x\nConnections: 1\nMode: standalone\n";
    add_words();
    add_expectations();
  }

 private:
  void add_words() {
    words_["destroy"] = [this](Words&) { backend.reset(); };
    words_["node"] = [this](Words& words) {  // NAME PATH [DATA]: numbered, of another client
      const std::string name = next(words);
      const std::string path = next(words);
      const std::string data = rest(words);
      names_[name] = ensemble.put(path, data.empty() ? "other:2:x" : data, 77, true).path;
    };
    words_["servers_silent"] = [this](Words&) { srvr = std::nullopt; };
    words_["init"] = [this](Words&) { backend->initialize(answered<Names>(&joined)); };
    words_["init_again"] = [this](Words&) {  // in the handler of another one
      backend->initialize([this](const Result<Names>&) { execute("init"); });
    };
    words_["of"] = [this](Words& words) { name_ = next(words); };  // NAME: a different lock
    words_["inspect"] = [this](Words&) { backend->inspect(kind_, name_, answered<LockInfo>(&shown)); };
    words_["list"] = [this](Words&) {
      backend->list(kind_, answered<std::vector<LockInfo>>([](const std::vector<LockInfo>& all) {
                      Names names;
                      for (const LockInfo& info : all) names.push_back(info.name + (info.held ? "+" : "-"));
                      return joined(names);
                    }));
    };
    words_["break"] = [this](Words&) { backend->break_lock(kind_, name_, answered<bool>(&yes_or_no)); };
    words_["ping"] = [this](Words&) { backend->ping(name_, answered<bool>(&yes_or_no)); };
    words_["forget"] = [this](Words&) {
      backend->forget({.name = name_, .idle = 1min, .kind = kind_}, answered<Names>(&joined));
    };
    words_["diagnose"] = [this](Words&) {
      backend->diagnose(answered<std::vector<Finding>>([this](const std::vector<Finding>& all) {
        findings_ = all;
        return std::string();
      }));
    };
  }

  void add_expectations() {
    words_["says"] = [this](Words& words) {
      engine.run();
      EXPECT_EQ(std::exchange(answer_, {}).value().value(), rest(words));
    };
    words_["fails"] = [this](Words& words) {  // CODE [words]
      engine.run();
      EXPECT_TRUE(is_failure(std::exchange(answer_, {}).value().failure(), words));
    };
    words_["unanswered"] = [this](Words&) {
      engine.run();
      EXPECT_FALSE(answer_);
    };
    words_["finds"] = [this](Words& words) {  // COUNT [CHECK words]: problems, and one of them
      engine.run();
      ASSERT_TRUE(answer_);
      const std::string count = next(words);
      const std::string check = next(words);
      const std::string message = rest(words);
      std::size_t problems = 0;
      bool found = check.empty();
      bool works = false;
      for (const Finding& each : findings_) {
        problems += each.severity > Severity::note ? 1 : 0;
        found = found || (each.severity > Severity::note && each.check == check &&
                          each.message.find(message) != std::string::npos);
        works = works || (each.severity == Severity::ok && each.check == "permissions");
      }
      EXPECT_TRUE(is_in(problems, count));
      EXPECT_TRUE(found) << check;
      EXPECT_EQ(works, problems == 0 || ensemble.granted);
    };
  }

  template <class T>
  Backend::Handler<T> answered(std::function<std::string(const T&)> text) {
    answer_.reset();
    return [this, text = std::move(text)](const Result<T>& result) {
      EXPECT_FALSE(answer_) << "answered twice";
      answer_ = result.ok() ? Result<std::string>(text(result.value())) : Result<std::string>(result.failure());
    };
  }
  static std::string joined(const Names& names) {
    std::string text;
    for (const std::string& each : names) text += (text.empty() ? "" : " ") + each;
    return text;
  }
  static std::string yes_or_no(const bool& answer) { return answer ? "yes" : "no"; }

  std::string name_ = "lock";
  std::optional<Result<std::string>> answer_;
  std::vector<Finding> findings_;
};

class AdministrationScenario : public testing::TestWithParam<Scenario> {};

TEST_P(AdministrationScenario, Holds) {
  run_scenario<AdministrationScript>(GetParam());
}

constexpr Scenario administration_rows[] = {
    // --- Queries ---
    {"LeaderNotConfirmed_NoAnswerIsGiven", "",
     "node h /dlock/lock/_c_1-lock-; inspect; says held by other:2:x, 0 waiters; on heartbeat* lose_answer; inspect; "
     "fails unavailable"},
    // Hazard 24. A leader that was deposed answers a sync.
    // Hazard: a server lags behind: an own create or empty write comes first; if old data does no harm, a sync
    {"Answer_IsNoOlderThanTheQuestion", "",
     "inspect; says free, 0 waiters; node a /dlock/lock/_c_1-lock-; node b /dlock/b/_c_1-lock-; node c "
     "/dlock/c/_c_1-lock-; on heartbeat do mark, put /first; inspect; says held by other:2:x, 0 waiters; exists "
     "/first; asked heartbeat 0; asked any 3; remove /first; on heartbeat do mark, put /first; list; says b+ c+ lock+; "
     "exists /first; asked heartbeat 0; asked any 10"},
    // Hazard: a request is never answered: dlock's own deadlines
    {"Query_WithoutASession_EndsAtTheResponseTimeout", "",
     "dial silence; {ping|inspect|break|forget|list}; 1999ms; unanswered; 1ms; fails unavailable; dial accept; "
     "reconnect; 1s; asked remove 0"},
    {"NodeOfZookeeperItself_IsNoLock",
     "prefix=", "dial silence; of zookeeper; {ping|inspect|break|forget}; fails invalid_argument"},
    {"EphemeralLock_IsShownByQueues", "",
     "put /dlock/lock ephemeral web-3:4711:billing; inspect; says held by web-3:4711:billing, 0 waiters"},
    {"EphemeralLock_IsShownByItsStrategy", "strategy=ephemeral",
     "put /dlock/lock ephemeral web-3:4711:billing; inspect; says held by web-3:4711:billing"},
    {"HolderGoneMeanwhile_IsReplacedByTheNext", "",
     "node a /dlock/lock/_c_1-lock- first; node b /dlock/lock/_c_2-lock- second; on get@a do remove a; inspect; says "
     "held by second, 0 waiters"},
    {"ReaderGoneMeanwhile_IsReplacedByTheNext", "",
     "as read_write; node a /dlock.rw/lock/_c_1-__READ__ first; node b /dlock.rw/lock/_c_2-__READ__ second; on get@a "
     "do remove a; inspect; says held by second, reader second, 0 waiters"},
    // What a semaphore of Curator leaves behind is no queue.
    {"QueueOfAnotherProgram_IsRefusedAndLeftAlone", "{|strategy=sequential-herd}",
     "put /dlock/lock/{x__lock__|leases/_c_1-lease-} ephemeral numbered; inspect; fails protocol; break; fails "
     "protocol; list; says; exists /dlock/lock/{x__lock__|leases/_c_1-lease-}0000000000; remove "
     "/dlock/lock/{x__lock__|leases/_c_1-lease-}0000000000; inspect; says free, 0 waiters; node a "
     "/dlock/lock/_c_1-lock-; node b /dlock/lock/_c_2-lock-; inspect; says held by other:2:x, 1 waiters"},
    {"MissingRights_ToTheLock_AreTheAnswer", "",
     "node h /dlock/lock/_c_1-lock-; ping; says yes; on children@/dlock/lock* forbid; ping; fails access_denied; "
     "inspect; fails access_denied"},
    {"MissingRights_ToThePrefix_AreTheAnswerToAPing", "",
     "node h /dlock/lock/_c_1-lock-; on children@/dlock* forbid; ping; fails access_denied; inspect; says held by "
     "other:2:x, 0 waiters"},
    {"List_HasAllLocksAndNothingElse", "",
     "list; says; node a /dlock/b/_c_1-lock-; node b /dlock/a%2Fx/_c_1-lock-; put /dlock/free; put /dlock/single "
     "ephemeral me; put /dlock/data theirs; put /dlock/not%a%name; put /dlock/foreign/x__lock__ ephemeral numbered; "
     "put /zookeeper/quota; list; says a/x+ b+ free- single+"},
    {"List_WithoutAPrefix_HasNoNodeOfZookeeperItself",
     "prefix=", "put /zookeeper/quota; node a /mine/_c_1-lock-; list; says mine+"},

    // --- Breaking and forgetting ---
    {"Break_OfAFreeLock_SaysSo", "", "as {lock|read_write|semaphore|election}; break; says no"},
    {"Break_RemovesTheNodesOfTheHoldersOnly", "",
     "node h /dlock/lock/_c_1-lock-; node x /dlock/lock/_c_2-lock-; node r /dlock.rw/lock/_c_1-__READ__; node s "
     "/dlock.rw/lock/_c_2-__READ__; node w /dlock.rw/lock/_c_3-__WRIT__; as read_write; break; says yes; gone r; gone "
     "s; exists w; exists h; as lock; break; says yes; gone h; exists x"},
    {"Break_RemovesAnEphemeralNode", "", "put /dlock/lock ephemeral me; break; says yes; gone /dlock/lock"},
    {"BreakCarriedOutInPart_IsAFailure", "",
     "as read_write; node r /dlock.rw/lock/_c_1-__READ__; node s /dlock.rw/lock/_c_2-__READ__; on remove forbid; "
     "break; fails access_denied"},
    {"BreakAnsweredAtTheDeadline_RemovesNothingLater", "",
     "node h /dlock/lock/_c_1-lock-; inspect; says held by other:2:x, 0 waiters; on children hold; break; 2s; fails "
     "unavailable; release_answers; run; asked remove 0"},
    // Between the list and the removal any client may come, in a queue or not, and the node may go.
    {"ForgetOvertakenByAQueue_RemovesNothing", "",
     "put /dlock/lock; on remove@/dlock/lock do put /dlock/lock/_c_1-lock- ephemeral numbered other; forget; says; "
     "exists /dlock/lock/_c_1-lock-0000000000"},
    {"ForgetOvertakenByANode_RemovesNothing", "",
     "put /dlock/lock; on remove@/dlock/lock do remove /dlock/lock, put /dlock/lock ephemeral host:1:x; forget; says; "
     "data /dlock/lock host:1:x"},
    {"ForgetOvertakenByARemoval_RemovesNothing", "",
     "put /dlock/lock; on remove@/dlock/lock do remove /dlock/lock; forget; says; asked remove@/dlock/lock 1"},
    {"ForgetOfWhatIsNoLock_RemovesNothing", "",
     "put /dlock/lock theirs; forget; fails protocol; set /dlock/lock; put /dlock/lock/something; forget; fails "
     "protocol; exists /dlock/lock/something"},

    // --- Diagnosis ---
    {"Diagnosis_OfWhatWorks_FindsNothing", "{|prefix=/a/b/c}", "diagnose; finds 0; below /dlock 0"},
    {"Diagnosis_ShortSession_IsNamed", "",
     "grants 4s; diagnose; finds 1 session of 10s was requested, and 4s was granted; below /dlock 0"},
    {"Diagnosis_MissingRights_AreNamed", "",
     "on {create|children}* forbid; diagnose; finds 1 permissions cannot be created below /dlock:; below /dlock 0"},
    {"Diagnosis_MissingRightsToTheRoot_AreNamed",
     "prefix=", "on create* forbid; diagnose; finds 1 permissions cannot be created below /:"},
    {"Diagnosis_PrefixThatExists_NeedsNoRightToWhatIsAbove", "",
     "put /dlock; forbid_below /; diagnose; finds 0; below /dlock 0"},
    {"Diagnosis_RefusedCredentials_AreNamed", "", "dial refuse_auth; diagnose; finds 1 session h:2181"},
    {"Diagnosis_MissingChroot_IsNamed", "",
     "fresh /app; remove /; diagnose; finds 1 chroot /app, the URL's path, does not exist"},
    {"Diagnosis_WithoutAnswers_EndsAtTheResponseTimeout", "",
     "{dial silence|on any* hold}; servers_silent; diagnose; 1999ms; unanswered; 1ms; finds 1-9 server h:2181: no "
     "answer in time; finds 1-9 session; release_answers; run"},
    {"Diagnosis_ProbeNotKnownToBeMade_IsRemoved", "",
     "put /dlock; on create* lose_answer; diagnose; finds 1-9 permissions; below /dlock 0; calm; 1s; below /dlock 0"},
    {"Diagnosis_ProbeLeftBehind_IsRemovedLater", "",
     "put /dlock; on remove* lose_request; diagnose; finds 1-9 permissions; below /dlock 1; calm; 1s; below /dlock 0"},

    // --- The URL's path ---
    // Not by the client's own session, whose root does not exist.
    {"Chroot_MissingNodes_AreMadeToStay", "",
     "fresh /a/b; put /a; init; says node /a/b; made_as persistent; dialled 1; closed 1; remove /a; init; says node /a "
     "node /a/b; init; says; fresh; init; says; dialled 3"},
    // A node that may not be read exists.
    {"Chroot_NodesThatExist_NeedNoRights", "",
     "fresh /a/b; forbid_below /; init; fails access_denied; put /a; init; says node /a/b; forbid_below / /a; init; "
     "says; on get* forbid; init; says"},
    {"Chroot_FailedRequest_IsRepeatedAndTheNodeNamed", "",
     "fresh /a/b; put /a; on {get|create} {lose_answer|lose_request|refuse}; init; unanswered; 1100ms; says node /a/b"},
    {"Chroot_RequestUnansweredAsTheConnectionBreaks_IsRepeated", "",
     "fresh /a/b; put /a; on {get|create} hold; init; unanswered; disconnect; 100ms; reconnect; 1s; says node /a/b"},
    {"Chroot_SecondRequestInTheHandler_IsAnswered", "", "fresh /a/b; init_again; says"},
    {"Chroot_OverloadedServer_IsRetriedWithPauses", "",
     "fresh /a/b; on create* refuse; init; 2s; fails unavailable overloaded; asked create 1-20"},
    {"Chroot_ClientDestroyedMeanwhile_IsNotAnswered", "",
     "fresh /a/b; on create hold; init; unanswered; destroy; 5s; unanswered"},
};

INSTANTIATE_TEST_SUITE_P(, AdministrationScenario, testing::ValuesIn(administration_rows), name_of);

// --- What scenarios cannot say ---

using InspectionTest = BackendTest;

TEST_F(InspectionTest, Queue_IsShownByInspectAndList) {
  struct Row {
    LockKind kind;
    std::vector<std::pair<std::string, std::string>> nodes;  // the end of the name, the data
    std::string is;
    std::size_t newest = 0;  // of the holders
  };
  using enum LockKind;
  const std::string other = "other:2:x";
  const std::vector<Row> rows = {
      {lock, {}, "free, 0 waiters"},
      {lock,
       {{"-lock-", "web-3:4711:billing"}, {"-lock-", other}, {"-lock-", other}},
       "held by web-3:4711:billing, 2 waiters"},
      // Other programs write anything; Curator's Revoker asks a holder to let go.
      {lock, {{"-lock-", std::string("\x00\xff\x12", 3)}}, "held by , 0 waiters"},
      {lock, {{"-lock-", "__REVOKE__"}}, "held by , 0 waiters"},
      {read_write, {}, "free, 0 waiters"},
      {read_write,
       {{"-__READ__", "web-1:1:x"}, {"-__READ__", "web-2:2:x"}, {"-__WRIT__", other}, {"-__READ__", other}},
       "held by web-1:1:x, reader web-1:1:x, reader web-2:2:x, 2 waiters",
       1},
      {read_write, {{"-__WRIT__", other}, {"-__READ__", other}}, "held by other:2:x, owner other:2:x, 1 waiters"},
      {semaphore,
       {{"-permit-of-2-", "web-1:1:x\nheld"}, {"-permit-of-2-", other}, {"-permit-of-2-", other}},
       "held by web-1:1:x, owner web-1:1:x, owner other:2:x, 2 permits, 1 waiters",
       1},
      {election,
       {{"-lock-", "web-1:1:x\n10.0.0.7"}, {"-lock-", other}},
       "held by web-1:1:x, value 10.0.0.7, 1 waiters"},
      {election, {{"-lock-", "theirs"}}, "held by theirs, 0 waiters"},
      {election, {{"-lock-", "\x01\nvalue"}}, "held by , 0 waiters"},
  };
  for (const auto& [kind, nodes, is, newest] : rows) {
    SCOPED_TRACE(is);
    const std::string place = lock_path("/dlock", "lock", kind);
    std::vector<std::string> paths;
    for (const auto& [end, data] : nodes) paths.push_back(put_node(place, end, data));
    const LockInfo info =
        answer_to<LockInfo>([&](auto done) { backend->inspect(kind, "lock", std::move(done)); }).value();
    EXPECT_EQ(shown(info), is);
    EXPECT_EQ(info.name, "lock");
    EXPECT_EQ(info.kind, kind);
    EXPECT_EQ(info.token.value(),
              nodes.empty() ? 0U : static_cast<std::uint64_t>(ensemble.stat(paths[newest]).created));
    for (const LockKind each : {lock, read_write, semaphore, election}) {
      const auto listed =
          answer_to<std::vector<LockInfo>>([&](auto done) { backend->list(each, std::move(done)); }).value();
      ASSERT_EQ(listed.size(), each == kind && !nodes.empty() ? 1U : 0U);
      if (!listed.empty()) {
        EXPECT_EQ(shown(listed[0]), is);
      }
    }
    if (!nodes.empty()) ensemble.remove(place);
  }
}

}  // namespace
}  // namespace dlock::zookeeper
