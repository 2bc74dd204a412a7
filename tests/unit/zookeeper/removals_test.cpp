// Nodes that must go, whatever becomes of the requests and of the session.
#include "backends/zookeeper/nodes/removals.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fake_handle.hpp"
#include "tests/support/manual_engine.hpp"

namespace dlock::zookeeper {

namespace {

using namespace std::chrono_literals;
using Kind = FakeRequest::Kind;
using End = ReleaseOutcome::Status;

class RemovalsTest : public testing::Test, private Session::User {
 protected:
  RemovalsTest() {
    options.hosts = {{"h", 2181}};
    options.session_timeout = 10s;
    options.connect_timeout = 5s;
    session.want();
    engine.run();
  }

  OwnNode node(const std::string& path = "/l/_c_guid-lock-0000000000") {
    return {.lock_path = "/l", .path = path, .guid = "guid", .epoch = session.epoch()};
  }
  // Whose path others use, too.
  OwnNode shared(std::int64_t created) {
    return {.lock_path = "/shared", .path = "/shared", .epoch = session.epoch(), .created = created, .owner = {9, 9}};
  }
  std::string put() { return ensemble.put("/l/_c_guid-lock-", {}, session.id(), true).path; }
  void remove(OwnNode what) {
    removals.remove(std::move(what), [this](const ReleaseOutcome& outcome) {
      end = outcome.status;
      failure = outcome.failure;
    });
  }
  void always(Kind kind, Fate fate) {
    ensemble.fate = [kind, fate](const FakeRequest& request) { return request.kind == kind ? fate : Fate::answer; };
  }

  test::ManualEngine engine;
  FakeEnsemble ensemble{engine};
  Options options;
  Session session{engine, options, ensemble.handles(), *this};
  Requests requests{session};
  std::vector<Failure> warnings;
  Removals removals{engine, requests, 2s, [this](Failure why) { warnings.push_back(std::move(why)); }};
  std::optional<End> end;
  Failure failure;

 private:
  void session_ready(bool fresh) override { removals.session_ready(fresh); }
  void session_alive(TimePoint) override {}
  void session_suspended(const Failure&) override {}
  void session_lost(const Failure&) override { removals.session_lost(); }
};

TEST_F(RemovalsTest, ANodeIsRemovedByItsPath) {
  const std::string path = put();
  remove(node(path));
  engine.run();
  EXPECT_EQ(end, End::released);
  EXPECT_FALSE(ensemble.exists(path));
  EXPECT_EQ(removals.size(), 0U);
}

TEST_F(RemovalsTest, ANodeThatIsNotThereIsGone) {
  remove(node());
  engine.run();
  EXPECT_EQ(end, End::not_owner);
}

TEST_F(RemovalsTest, ARemovalWhoseAnswerWasLostIsRepeatedAndCounts) {
  const std::string path = put();
  always(Kind::remove, Fate::lose_answer);
  remove(node(path));
  engine.run();
  EXPECT_FALSE(end);
  ensemble.fate = nullptr;
  engine.advance(100ms);
  EXPECT_EQ(end, End::released);
  EXPECT_EQ(ensemble.count(Kind::remove), 2U);
  EXPECT_TRUE(warnings.empty());
}

// Hazard 10.
TEST_F(RemovalsTest, WhatIsNotConfirmedInTimeGoesOnInTheBackground) {
  const std::string path = put();
  ensemble.disconnect();
  engine.run();
  remove(node(path));
  engine.advance(2s);
  EXPECT_EQ(end, End::failed);
  EXPECT_EQ(failure.code, errc::unavailable);
  EXPECT_TRUE(ensemble.exists(path));
  ensemble.reconnect();
  engine.run();
  EXPECT_FALSE(ensemble.exists(path));
}

TEST_F(RemovalsTest, WhatWasSentAndNotAnsweredIsAmbiguous) {
  always(Kind::remove, Fate::hold_answer);
  remove(node(put()));
  engine.advance(2s);
  EXPECT_EQ(end, End::failed);
  EXPECT_EQ(failure.code, errc::ambiguous);
}

TEST_F(RemovalsTest, WhatWasUnderWayWhenTheSessionWasLostIsAmbiguous) {
  always(Kind::remove, Fate::hold_answer);
  remove(node(put()));
  engine.run();
  removals.session_lost();
  engine.advance(2s);
  EXPECT_EQ(end, End::failed);
  EXPECT_EQ(failure.code, errc::ambiguous);
}

TEST_F(RemovalsTest, ARemovalBehindAComparisonThatIsNotAnsweredIsAmbiguous) {
  const auto made = ensemble.put("/shared", {}, session.id());
  always(Kind::remove, Fate::hold_answer);
  remove({.lock_path = "/shared",
          .path = "/shared",
          .epoch = session.epoch(),
          .created = made.stat.created,
          .owner = {9, 9}});
  engine.advance(2s);
  EXPECT_EQ(end, End::failed);
  EXPECT_EQ(failure.code, errc::ambiguous);
}

TEST_F(RemovalsTest, ANodeIsFoundByItsGuid) {
  const std::string path = put();
  remove(node(""));
  engine.run();
  EXPECT_EQ(end, End::released);
  EXPECT_FALSE(ensemble.exists(path));
}

TEST_F(RemovalsTest, WhatANewSessionFindsOfTheOldIsRemoved) {
  const std::string path = ensemble.put("/l/_c_guid-lock-", {}, 77, true).path;  // its session ends when it may
  for (const std::string& known : {path, std::string()}) {
    if (!ensemble.exists(path)) (void)ensemble.put(path, {}, 77);
    OwnNode old = node(known);
    ensemble.disconnect();
    engine.run();
    remove(std::move(old));
    ensemble.expire();
    ensemble.reconnect();
    engine.advance(1s);
    EXPECT_FALSE(ensemble.exists(path));
    EXPECT_EQ(end, End::released);
  }
}

// A late request of the old session may still be carried out.
TEST_F(RemovalsTest, WhatTheOldSessionMayStillMakeIsLookedForUntilItMustBeOver) {
  OwnNode old = node("");
  ensemble.disconnect();
  engine.run();
  removals.remove(std::move(old));
  ensemble.expire();
  ensemble.reconnect();
  engine.advance(5s);
  bool finished = false;
  removals.finish([&] { finished = true; });
  EXPECT_TRUE(finished) << "it is not waited for";
  EXPECT_EQ(removals.size(), 1U);
  const std::string late = ensemble.put("/l/_c_guid-lock-", {}, 77, true).path;
  engine.advance(2s);
  EXPECT_FALSE(ensemble.exists(late));
  EXPECT_EQ(removals.size(), 0U);

  old = node("");
  old.epoch = session.epoch() - 1;
  removals.remove(std::move(old));
  ensemble.expire();
  engine.advance(30s);
  EXPECT_EQ(removals.size(), 0U);
}

TEST_F(RemovalsTest, ACreateUnderWayIsWaitedFor) {
  const auto id = removals.await(node(""));
  engine.run();
  EXPECT_EQ(ensemble.count(Kind::children), 0U);
  const std::string path = put();
  removals.created(id, {}, path);
  engine.run();
  EXPECT_FALSE(ensemble.exists(path));
  EXPECT_EQ(ensemble.count(Kind::children), 0U);
}

TEST_F(RemovalsTest, AReconnectionRepeatsNothingThatIsUnderWay) {
  const auto id = removals.await(node(""));
  always(Kind::remove, Fate::hold_answer);
  const std::string path = put();
  removals.remove(node(path));
  const std::size_t before = ensemble.count(Kind::remove);
  removals.session_ready(false);
  engine.run();
  EXPECT_EQ(ensemble.count(Kind::children), 0U);
  EXPECT_EQ(ensemble.count(Kind::remove), before);
  EXPECT_EQ(removals.size(), 2U);
  ensemble.fate = nullptr;
  ensemble.release_answers();
  const std::string late = put();
  removals.created(id, {}, late);
  engine.run();
  EXPECT_FALSE(ensemble.exists(late));
  EXPECT_EQ(removals.size(), 0U);
}

// Its answer never comes, but the node may.
TEST_F(RemovalsTest, ACreateIsNotWaitedForBeyondItsSession) {
  (void)removals.await(node(""));
  const std::string late = ensemble.put("/l/_c_guid-lock-", {}, 77, true).path;
  ensemble.expire();
  engine.advance(1s);
  EXPECT_FALSE(ensemble.exists(late));
  EXPECT_EQ(removals.size(), 0U);
}

TEST_F(RemovalsTest, EachHasANumberOfItsOwn) {
  always(Kind::remove, Fate::hold_answer);
  const auto first = removals.await(node(""));
  removals.remove(node(put()));
  const auto second = removals.await(node(""));
  EXPECT_NE(first, second);
  EXPECT_EQ(removals.size(), 3U);
}

TEST_F(RemovalsTest, ACreateThatFailedLeavesNothingToDo) {
  for (const Problem problem : {Problem::no_node, Problem::not_executed, Problem::no_rights, Problem::other}) {
    removals.created(removals.await(node("")), {.problem = problem, .failure = {}, .sent = {}}, "/l/");
    EXPECT_EQ(removals.size(), 0U);
  }
  EXPECT_EQ(ensemble.requests.size(), ensemble.heartbeats());
}

// Hazard 24: the list may come from a server that does not know yet what another one has carried out.
TEST_F(RemovalsTest, AListIsNotBelievedWhereTheEnsembleDidNotAgreeBefore) {
  ensemble.fate = [](const FakeRequest& request) { return is_heartbeat(request) ? Fate::lose_request : Fate::answer; };
  removals.remove(node(""));
  engine.run();
  EXPECT_EQ(ensemble.count(Kind::children), 1U);
  EXPECT_EQ(removals.size(), 1U);
  ensemble.fate = nullptr;
  const std::string path = put();
  engine.advance(1s);
  EXPECT_FALSE(ensemble.exists(path));
  EXPECT_EQ(removals.size(), 0U);
}

// A list that was under way when the session was given up: what it does not show may come yet.
TEST_F(RemovalsTest, WhatALostSessionStillAnswersIsNotBelieved) {
  always(Kind::children, Fate::hold_answer);
  removals.remove(node(""));
  engine.run();
  removals.session_lost();
  ensemble.fate = nullptr;
  ensemble.release_answers();
  engine.run();
  ASSERT_EQ(removals.size(), 1U);
  const std::string path = put();
  removals.session_ready(false);
  engine.run();
  EXPECT_FALSE(ensemble.exists(path));
  EXPECT_EQ(removals.size(), 0U);
}

TEST_F(RemovalsTest, NorIsAComparisonThatALostSessionStillAnswers) {
  const auto made = ensemble.put("/shared", {}, session.id());
  always(Kind::get, Fate::hold_answer);
  removals.remove(shared(made.stat.created));
  engine.run();
  removals.session_lost();
  ensemble.fate = nullptr;
  ensemble.release_answers();
  engine.run();
  EXPECT_EQ(ensemble.count(Kind::remove), 0U);
  ASSERT_EQ(removals.size(), 1U);
  removals.session_ready(false);
  engine.run();
  EXPECT_FALSE(ensemble.exists("/shared"));
  EXPECT_EQ(removals.size(), 0U);
}

TEST_F(RemovalsTest, ACreateThatMayHaveHappenedIsLookedFor) {
  const std::string path = put();
  removals.created(removals.await(node("")), {.problem = Problem::unknown_outcome, .failure = {}, .sent = {}}, "/l/");
  engine.run();
  EXPECT_FALSE(ensemble.exists(path));
}

TEST_F(RemovalsTest, WhatTheServerForbidsIsSaidOnceAndTriedOn) {
  const std::string path = put();
  always(Kind::remove, Fate::forbid);
  removals.remove(node(path));
  removals.remove(node(path));
  engine.advance(5s);
  EXPECT_EQ(warnings.size(), 1U);
  EXPECT_EQ(warnings.at(0).code, errc::access_denied);
  EXPECT_LT(ensemble.count(Kind::remove), 40U);
  ensemble.fate = nullptr;
  engine.advance(5s);
  EXPECT_FALSE(ensemble.exists(path));
}

TEST_F(RemovalsTest, WhatTheServerRefusesIsSaid) {
  const std::string path = put();
  (void)ensemble.put(path + "/below");
  removals.remove(node(path));
  engine.run();
  EXPECT_EQ(warnings.size(), 1U);
}

// A server that lags behind may still show a node that is removed already, while another one has its place.
TEST_F(RemovalsTest, ARemovalThatMayHaveHappenedIsRepeatedOnlyBehindAWrite) {
  const auto made = ensemble.put("/shared", {}, session.id());
  const auto created = made.stat.created;
  ensemble.fate = [](const FakeRequest& request) {
    return request.kind == Kind::remove && !is_heartbeat(request) ? Fate::lose_request : Fate::answer;
  };
  const std::size_t before = ensemble.heartbeats();
  remove({.lock_path = "/shared", .path = "/shared", .epoch = session.epoch(), .created = created, .owner = {9, 9}});
  engine.run();
  EXPECT_EQ(ensemble.heartbeats(), before) << "what was answered is known everywhere";
  ensemble.fate = nullptr;
  engine.advance(1s);
  EXPECT_EQ(ensemble.heartbeats(), before + 1);
  EXPECT_FALSE(ensemble.exists("/shared"));
}

// Where others use the same path, nothing of theirs is touched.
TEST_F(RemovalsTest, ASharedPathIsComparedFirst) {
  const auto theirs = ensemble.put("/shared", {}, 77);
  remove(shared(1));
  engine.run();
  EXPECT_EQ(end, End::not_owner);
  EXPECT_TRUE(ensemble.exists("/shared"));
  remove(shared(theirs.stat.created));
  engine.run();
  EXPECT_EQ(end, End::released);
  EXPECT_FALSE(ensemble.exists("/shared"));
}

TEST_F(RemovalsTest, ANodeAtASharedPathIsKnownByItsSessionAndTheOwnerInItsData) {
  const OwnerId owner(1, 2);
  struct Row {
    const char* name;
    std::string data;
    bool of_session;
    bool removed;
  };
  for (const Row& row : {Row{"ours", data_of("host:1:x", owner), true, true},
                         {"of another owner", data_of("host:1:x", {1, 3}), true, false},
                         {"of another session", data_of("host:1:x", owner), false, false},
                         {"without an owner", "host:1:x", true, false}}) {
    (void)ensemble.put("/shared", row.data, row.of_session ? session.id() : 77);
    remove({.lock_path = "/shared", .path = "/shared", .epoch = session.epoch(), .owner = owner});
    engine.run();
    EXPECT_EQ(std::exchange(end, std::nullopt), row.removed ? End::released : End::not_owner) << row.name;
    EXPECT_NE(ensemble.exists("/shared"), row.removed) << row.name;
    if (!row.removed) ensemble.remove("/shared");
  }
}

TEST(OwnerInData, IsFoundAndCutOffWhateverTheHolderIs) {
  const OwnerId owner(1, 2);
  for (const std::string holder : {"", "host:1:x", "host:1:x\nvalue", "\n"}) {
    const std::string data = data_of(holder, owner);
    EXPECT_TRUE(is_of(data, owner));
    EXPECT_FALSE(is_of(data, {1, 3}));
    EXPECT_EQ(holder_of(data), holder);
    EXPECT_EQ(holder_of(holder), holder) << "of an earlier version, or of another program";
  }
}

TEST_F(RemovalsTest, ASharedPathThatCouldNotBeComparedIsLeftAlone) {
  for (const Fate fate : {Fate::refuse, Fate::forbid, Fate::lose_answer}) {
    if (!ensemble.exists("/shared")) (void)ensemble.put("/shared", {}, 77);
    always(Kind::get, fate);
    remove(shared(1));
    engine.run();
    EXPECT_FALSE(end);
    ensemble.fate = nullptr;
    engine.advance(1s);
    EXPECT_EQ(std::exchange(end, std::nullopt), End::not_owner);
    EXPECT_TRUE(ensemble.exists("/shared"));
  }
}

TEST_F(RemovalsTest, ASharedPathOfAnEarlierSessionIsLeftToTheServer) {
  (void)ensemble.put("/shared", {}, 77);
  const OwnNode ours{.lock_path = "/shared", .path = "/shared", .epoch = session.epoch(), .owner = {1, 1}};
  ensemble.disconnect();
  engine.run();
  remove(ours);
  ensemble.expire();
  ensemble.reconnect();
  engine.advance(1s);
  EXPECT_EQ(end, End::not_owner);
  EXPECT_TRUE(ensemble.exists("/shared"));
}

TEST_F(RemovalsTest, AThousandAreRemovedAtOnceWhenTheConnectionIsBack) {
  std::vector<std::string> paths;
  for (int i = 0; i < 1000; ++i) paths.push_back(put());
  ensemble.disconnect();
  engine.run();
  for (const std::string& path : paths) removals.remove(node(path));
  engine.advance(1s);
  EXPECT_EQ(ensemble.count(Kind::remove), 0U);
  bool finished = false;
  removals.finish([&] { finished = true; });
  ensemble.reconnect();
  engine.run();
  EXPECT_TRUE(finished);
  EXPECT_TRUE(ensemble.children("/l").empty());
}

}  // namespace

}  // namespace dlock::zookeeper
