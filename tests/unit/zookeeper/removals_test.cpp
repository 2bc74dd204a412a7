// Nodes that must go, whatever becomes of the requests and of the session.
#include "backends/zookeeper/nodes/removals.hpp"

#include <gtest/gtest.h>

#include <functional>
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
using Status = ReleaseOutcome::Status;

class RemovalsTest : public testing::Test, private Session::User {
 protected:
  RemovalsTest() {
    options.hosts = {{"h", 2181}};
    options.session_timeout = 10s;
    options.connect_timeout = 5s;
    session.want();
    engine.run();
  }

  OwnNode node(const std::string& path) {
    return {.lock_path = "/l", .path = path, .guid = "guid", .epoch = session.epoch()};
  }
  // Its path is used by other clients, too.
  OwnNode shared(std::int64_t created, OwnerId owner = {9, 9}) {
    return {.lock_path = "/shared", .path = "/shared", .epoch = session.epoch(), .created = created, .owner = owner};
  }
  std::string put() { return ensemble.put("/l/_c_guid-lock-", {}, session.id(), true).path; }
  // Of a session that ends when it may.
  std::string put_by_old_session() { return ensemble.put("/l/_c_guid-lock-", {}, 77, true).path; }
  void remove(OwnNode what) {
    removals.remove(std::move(what), [this](ReleaseOutcome how) { outcome = std::move(how); });
  }
  std::optional<Status> status() {
    const auto how = std::exchange(outcome, std::nullopt);
    return how ? std::optional(how->status) : std::nullopt;
  }
  void always(Kind kind, Fate fate) {
    ensemble.fate = [kind, fate](const FakeRequest& request) {
      return request.kind == kind && !is_heartbeat(request) ? fate : Fate::answer;
    };
  }
  void disconnect() {
    ensemble.disconnect();
    engine.run();
  }
  void new_session() {
    ensemble.expire();
    ensemble.reconnect();
    engine.advance(1s);
  }

  test::ManualEngine engine;
  FakeEnsemble ensemble{engine};
  Options options;
  Session session{engine, options, ensemble.handles(), *this};
  Requests requests{session};
  std::vector<Failure> warnings;
  Removals removals{engine, requests, 2s, [this](Failure why) { warnings.push_back(std::move(why)); }};
  std::optional<ReleaseOutcome> outcome;

 private:
  void session_ready(bool fresh) override { removals.session_ready(fresh); }
  void session_alive(TimePoint) override {}
  void session_suspended(const Failure&) override {}
  void session_lost(const Failure&) override { removals.session_lost(); }
};

TEST_F(RemovalsTest, ANodeIsRemovedByPathOrGuid_AgainAfterALostAnswer) {
  struct Row {
    const char* name;
    bool there, path_known, lost;
    Status status;
  };
  for (const Row& row : {Row{"by its path", true, true, false, Status::released},
                         {"by its guid", true, false, false, Status::released},
                         {"not there", false, true, false, Status::not_owner},
                         {"not there, path unknown", false, false, false, Status::not_owner},
                         {"answer lost", true, true, true, Status::released},
                         {"answer lost, path unknown", true, false, true, Status::released}}) {
    SCOPED_TRACE(row.name);
    const std::string path = row.there ? put() : "/l/_c_guid-lock-9999999999";
    const std::size_t before = ensemble.count(Kind::remove);
    if (row.lost) always(Kind::remove, Fate::lose_answer);
    remove(node(row.path_known ? path : ""));
    engine.run();
    if (row.lost) {
      EXPECT_FALSE(outcome);
      ensemble.fate = nullptr;
      engine.advance(100ms);
      EXPECT_EQ(ensemble.count(Kind::remove), before + 2);
    }
    EXPECT_EQ(status(), row.status);
    EXPECT_FALSE(ensemble.exists(path));
    EXPECT_EQ(removals.size(), 0U);
  }
  EXPECT_TRUE(warnings.empty());
}

// Hazards 10 and 21.
TEST_F(RemovalsTest, ARemovalThatIsNotConfirmedInTimeGoesOnInTheBackground) {
  struct Row {
    const char* name;
    std::function<void()> trouble;
    bool shares_path;
    errc code;
  };
  const auto nothing = [] {};
  const auto lost = [this] {
    engine.run();
    removals.session_lost();
  };
  for (const Row& row : {Row{"not sent", [this] { disconnect(); }, false, errc::unavailable},
                         {"not answered", nothing, false, errc::ambiguous},
                         {"not answered, behind a comparison", nothing, true, errc::ambiguous},
                         {"not answered when the session was lost", lost, false, errc::ambiguous}}) {
    SCOPED_TRACE(row.name);
    const auto made =
        ensemble.put(row.shares_path ? "/shared" : "/l/_c_guid-lock-", {}, session.id(), !row.shares_path);
    if (row.code == errc::ambiguous) always(Kind::remove, Fate::hold_answer);
    if (row.code == errc::unavailable) row.trouble();
    remove(row.shares_path ? shared(made.stat.created) : node(made.path));
    if (row.code == errc::ambiguous) row.trouble();
    engine.advance(1999ms);
    EXPECT_FALSE(outcome);
    engine.advance(1ms);
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->failure.code, row.code);
    EXPECT_EQ(outcome->failure.detail, "ZooKeeper did not confirm in time that " + made.path + " is removed");
    EXPECT_EQ(status(), Status::failed);
    EXPECT_EQ(removals.size(), 1U);
    ensemble.fate = nullptr;
    disconnect();
    ensemble.reconnect();
    engine.advance(1s);
    EXPECT_FALSE(ensemble.exists(made.path));
    EXPECT_EQ(removals.size(), 0U);
  }
}

TEST_F(RemovalsTest, AReleaseWhoseAnswerWasLostWithItsSessionIsAmbiguous) {
  for (const bool shares_path : {false, true}) {
    const auto made = ensemble.put(shares_path ? "/shared" : "/l/_c_guid-lock-", {}, session.id(), !shares_path);
    always(Kind::remove, Fate::hold_answer);
    remove(shares_path ? shared(made.stat.created) : node(made.path));
    engine.run();
    ensemble.fate = nullptr;
    new_session();
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->failure.code, errc::ambiguous);
    EXPECT_EQ(outcome->failure.detail,
              "the answer to the release was lost, and the session has ended since; the lock is free");
    EXPECT_EQ(status(), Status::failed);
    EXPECT_EQ(removals.size(), 0U);
  }
}

TEST_F(RemovalsTest, ANodeOfAnEarlierSessionIsRemoved_UnlessItsPathIsShared) {
  for (const bool path_known : {true, false}) {
    const std::string path = put_by_old_session();
    OwnNode old = node(path_known ? path : "");
    disconnect();
    remove(std::move(old));
    EXPECT_TRUE(removals.only_of_this_session());
    new_session();
    EXPECT_FALSE(ensemble.exists(path));
    EXPECT_EQ(status(), Status::released);
  }
  (void)ensemble.put("/shared", {}, 77);
  const OwnNode ours = shared(0);
  disconnect();
  remove(ours);
  new_session();
  EXPECT_EQ(status(), Status::not_owner);
  EXPECT_TRUE(ensemble.exists("/shared")) << "a different client may have created it";
}

// A late request of the old session may still be carried out.
TEST_F(RemovalsTest, ANodeThatTheOldSessionMayStillCreateIsLookedForUntilThatMustBeOver) {
  for (const bool comes : {true, false}) {
    OwnNode old = node("");
    disconnect();
    removals.remove(std::move(old));
    new_session();
    bool finished = false;
    removals.finish([&] { finished = true; });
    EXPECT_TRUE(finished) << "closing does not wait for it";
    EXPECT_TRUE(removals.only_of_this_session());
    engine.advance(5s);
    EXPECT_EQ(removals.size(), 1U);
    const std::string late = comes ? put_by_old_session() : "/none";
    engine.advance(1s);
    EXPECT_FALSE(ensemble.exists(late));
    EXPECT_EQ(removals.size(), comes ? 0U : 1U);
    engine.advance(12s);
    EXPECT_EQ(removals.size(), comes ? 0U : 1U);
    engine.advance(3s);
    EXPECT_EQ(removals.size(), 0U) << "twice the session timeout has passed";
  }
}

// Each look costs a write and a list.
TEST_F(RemovalsTest, LaterSessionsThatAreLostSoonDoNotProlongTheSearch) {
  OwnNode old = node("");
  disconnect();
  removals.remove(std::move(old));
  for (int i = 0; i < 2; ++i) {
    new_session();
    engine.advance(14s);
    EXPECT_EQ(removals.size(), i == 0 ? 1U : 0U) << "twice the timeout of the session after it is enough";
  }
}

TEST_F(RemovalsTest, ACreateInFlightIsWaitedFor_UntilItsAnswerOrTheEndOfItsSession) {
  struct Row {
    const char* name;
    Problem problem;
    std::size_t lists;
    bool removed;
  };
  for (const Row& row : {Row{"created", Problem::none, 0, true},
                         {"answer lost", Problem::unknown_outcome, 1, true},
                         {"session over", Problem::session_over, 1, true},
                         {"no parent", Problem::no_node, 0, false},
                         {"refused", Problem::not_executed, 0, false},
                         {"forbidden", Problem::no_rights, 0, false},
                         {"impossible", Problem::other, 0, false}}) {
    SCOPED_TRACE(row.name);
    const std::string path = put();
    const std::size_t lists = ensemble.count(Kind::children);
    const auto id = removals.await(node(""));
    removals.session_ready(false);
    engine.advance(5s);
    EXPECT_TRUE(ensemble.exists(path));
    removals.created(id, {.problem = row.problem, .failure = {}, .sent = {}}, path);
    engine.run();
    EXPECT_NE(ensemble.exists(path), row.removed);
    EXPECT_EQ(ensemble.count(Kind::children), lists + row.lists);
    EXPECT_EQ(removals.size(), 0U);
    removals.created(id, {}, path);  // no effect
    ensemble.remove("/l");
  }
  (void)removals.await(node(""));
  const std::string late = put_by_old_session();
  new_session();
  EXPECT_FALSE(ensemble.exists(late));
  EXPECT_EQ(removals.size(), 0U);
}

TEST_F(RemovalsTest, AReconnectionRepeatsNothingThatIsInFlight) {
  always(Kind::remove, Fate::hold_answer);
  removals.remove(node(put()));
  removals.session_ready(false);
  engine.run();
  EXPECT_EQ(ensemble.count(Kind::remove), 1U);
  ensemble.fate = nullptr;
  ensemble.release_answers();
  engine.run();
  EXPECT_EQ(removals.size(), 0U);
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

// A list or a comparison in flight when the session was lost: the node may come later, or be another client's.
TEST_F(RemovalsTest, AnAnswerOfALostSessionIsNone) {
  for (const Kind kind : {Kind::children, Kind::get}) {
    const auto made = ensemble.put("/shared", {}, session.id());
    const std::size_t before = ensemble.count(Kind::remove);
    always(kind, Fate::hold_answer);
    removals.remove(kind == Kind::get ? shared(made.stat.created) : node(""));
    engine.run();
    removals.session_lost();
    ensemble.fate = nullptr;
    ensemble.release_answers();
    engine.run();
    EXPECT_EQ(ensemble.count(Kind::remove), before);
    ASSERT_EQ(removals.size(), 1U);
    const std::string path = kind == Kind::get ? "/shared" : put();
    removals.session_ready(false);
    engine.run();
    EXPECT_FALSE(ensemble.exists(path));
    EXPECT_EQ(removals.size(), 0U);
  }
}

TEST_F(RemovalsTest, ARefusedRemovalIsTriedOn_AndWarnedOfOnce) {
  const std::string path = put();
  always(Kind::remove, Fate::refuse);
  removals.remove(node(path));
  engine.advance(1s);
  EXPECT_TRUE(warnings.empty()) << "this may end by itself";
  always(Kind::remove, Fate::forbid);
  removals.remove(node(path));
  engine.advance(5s);
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_EQ(warnings[0].code, errc::access_denied);
  EXPECT_TRUE(
      warnings[0].detail.starts_with("a node that is not needed any more cannot be removed before the session "
                                     "ends: "));
  EXPECT_LT(ensemble.count(Kind::remove), 50U);
  ensemble.fate = nullptr;
  engine.advance(5s);
  EXPECT_FALSE(ensemble.exists(path));
}

TEST_F(RemovalsTest, ANodeThatCannotBeRemovedIsWarnedOf) {
  const std::string path = put();
  (void)ensemble.put(path + "/below");
  removals.remove(node(path));
  engine.run();
  EXPECT_EQ(warnings.size(), 1U);
}

// --- A path that other clients use -----------------------------------------------------------------------------------

// A server that lags behind may still show a node that is removed already, while another one has its place.
TEST_F(RemovalsTest, ARemovalThatMayHaveHappenedIsRepeatedOnlyBehindAWrite) {
  const auto created = ensemble.put("/shared", {}, session.id()).stat.created;
  always(Kind::remove, Fate::lose_request);
  const std::size_t before = ensemble.heartbeats();
  remove(shared(created));
  engine.run();
  EXPECT_EQ(ensemble.heartbeats(), before) << "what was answered is known everywhere";
  ensemble.fate = nullptr;
  engine.advance(1s);
  EXPECT_EQ(ensemble.heartbeats(), before + 1);
  EXPECT_FALSE(ensemble.exists("/shared"));
}

TEST_F(RemovalsTest, ASharedPathIsComparedFirst_ByTheNodesNumberOrItsSessionAndOwner) {
  const OwnerId owner(1, 2);
  struct Row {
    const char* name;
    std::string data;
    bool of_session, number_known, number_matches, removed;
  };
  const std::string data = data_of("host:1:x", owner);
  for (const Row& row : {Row{"ours", data, true, false, false, true},
                         {"of another owner", data_of("host:1:x", {1, 3}), true, false, false, false},
                         {"of another session", data, false, false, false, false},
                         {"without an owner", "host:1:x", true, false, false, false},
                         {"with another number", data, true, true, false, false},
                         {"with our number, data overwritten", "", false, true, true, true}}) {
    const auto made = ensemble.put("/shared", row.data, row.of_session ? session.id() : 77);
    remove(shared(!row.number_known ? 0 : row.number_matches ? made.stat.created : 1, owner));
    engine.run();
    EXPECT_EQ(status(), row.removed ? Status::released : Status::not_owner) << row.name;
    EXPECT_NE(ensemble.exists("/shared"), row.removed) << row.name;
    if (!row.removed) ensemble.remove("/shared");
  }
}

TEST_F(RemovalsTest, ASharedPathThatCouldNotBeComparedIsLeftAlone) {
  for (const Fate fate : {Fate::refuse, Fate::forbid, Fate::lose_answer}) {
    if (!ensemble.exists("/shared")) (void)ensemble.put("/shared", {}, 77);
    always(Kind::get, fate);
    remove(shared(1));
    engine.run();
    EXPECT_FALSE(outcome);
    ensemble.fate = nullptr;
    engine.advance(1s);
    EXPECT_EQ(status(), Status::not_owner);
    EXPECT_TRUE(ensemble.exists("/shared"));
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

TEST_F(RemovalsTest, AThousandAreRemovedAtOnceWhenTheConnectionIsBack) {
  always(Kind::remove, Fate::refuse);
  for (int i = 0; i < 1000; ++i) removals.remove(node(put()));
  engine.advance(1s);
  disconnect();
  ensemble.fate = nullptr;
  const std::size_t before = ensemble.count(Kind::remove);
  engine.advance(1s);
  EXPECT_EQ(ensemble.count(Kind::remove), before);
  bool finished = false;
  removals.finish([&] { finished = true; });
  ensemble.reconnect();
  engine.run();
  EXPECT_TRUE(finished);
  EXPECT_TRUE(ensemble.children("/l").empty());
}

}  // namespace

}  // namespace dlock::zookeeper
