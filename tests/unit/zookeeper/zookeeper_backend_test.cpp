// Several sessions for one client: opened under load and used; refused; resting; closed.
#include "backends/zookeeper/zookeeper_backend.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "backend_fixture.hpp"

namespace dlock::zookeeper {

namespace {

class ZookeeperBackendTest : public BackendTest {
 protected:
  using Attempts = std::vector<std::unique_ptr<Attempt>>;
  static constexpr int full = static_cast<int>(ZookeeperBackend::busy_from);

  void drop() {
    attempts.clear();
    group.reset();
  }
  // A client with its first session.
  void connect(const std::string& query = {}, const std::string& path = {}) {
    drop();
    group = make<ZookeeperBackend>(query, path);
    EXPECT_EQ(release(*group, *contend(*group, {.name = "first"}))->status, ReleaseStatus::released);
  }
  // The same in an empty ensemble: what queues leave behind is in the way of strategy=ephemeral.
  void connect_alone(const std::string& query) {
    drop();
    ensemble.fate = nullptr;
    ensemble.remove("/dlock");
    ephemeral_ = query.starts_with("strategy=ephemeral");
    connect(query);
  }
  // From now on creates are carried out, but not answered.
  void hold_creates() { always(Kind::create, Fate::hold_answer); }
  void answer() {
    ensemble.fate = nullptr;
    ensemble.release_answers();
    engine.run();
  }
  // Each of a name of its own, that no other client waits for.
  void add(int count, Attempts& to) {
    for (int i = 0; i < count; ++i) {
      const std::string name = "n" + std::to_string(++names_);
      if (!ensemble.exists("/dlock/" + name) && !ephemeral_) (void)ensemble.put("/dlock/" + name);
      to.push_back(contend(*group, {.name = name}));
    }
  }
  void add(int count) { add(count, attempts); }
  // New acquires find all sessions busy, for as long as it takes to open another one.
  void press(Attempts& to) {
    engine.advance(2 * ZookeeperBackend::busy_for);  // what was before does not count
    add(1, to);
    engine.advance(ZookeeperBackend::busy_for);
    add(1, to);
  }
  // Of creates that are not answered.
  void load() {
    hold_creates();
    add(full);
    press(attempts);
  }
  // So many sessions are opened by load, and one acquire is in the last of them.
  void busy(int sessions) {
    for (int i = 1; i < sessions; ++i) load();
    add(1);
    answer_all();
  }
  void answer_all() {
    answer();
    for (const auto& attempt : attempts) EXPECT_TRUE(attempt->grant);
  }
  void end(Attempts& all) {
    for (const auto& attempt : all) EXPECT_EQ(release(*group, *attempt)->status, ReleaseStatus::released);
    all.clear();
  }
  void end() { end(attempts); }
  std::int64_t session_of(const Attempt& attempt) const {
    const std::string path = "/dlock/" + attempt.request.name;
    const auto nodes = ensemble.children(path);
    if (nodes.empty()) return ensemble.exists(path) ? ensemble.stat(path).owner : 0;
    return ensemble.stat(path + "/" + nodes.front()).owner;
  }
  std::size_t sessions_of(const Attempts& all) const {
    std::set<std::int64_t> sessions;
    for (const auto& attempt : all) sessions.insert(session_of(*attempt));
    return sessions.size();
  }

  std::unique_ptr<ZookeeperBackend> group;
  Attempts attempts;

 private:
  int names_ = 0;
  bool ephemeral_ = false;
};

// --- Under load ------------------------------------------------------------------------------------------------------

TEST_F(ZookeeperBackendTest, AcquiresBeforeThereIsASession_WaitForTheFirst) {
  group = make<ZookeeperBackend>();
  engine.advance(1min);
  EXPECT_EQ(ensemble.dialled, 0);
  for (int i = 0; i < 3 * full; ++i) attempts.push_back(start(*group, {.name = "n" + std::to_string(i)}));
  engine.run();
  EXPECT_EQ(ensemble.dialled, 1);
  EXPECT_EQ(sessions_of(attempts), 1U);
}

// Hazard 27.
TEST_F(ZookeeperBackendTest, ClientThatIsNotBusy_HasOneSession) {
  connect();
  add(100);
  EXPECT_EQ(sessions_of(attempts), 1U);
  end();
  hold_creates();
  add(full);
  engine.advance(1s);
  EXPECT_EQ(ensemble.dialled, 1);
}

TEST_F(ZookeeperBackendTest, Burst_OpensNoSession) {
  for (const int calm : {0, 10}) {  // before the burst
    connect();
    const int dialled = ensemble.dialled;
    for (int i = 0; i < 6; ++i) {
      add(calm);
      hold_creates();
      add(calm > 0 ? full + 5 : 5 * full);
      answer();
      end();
      engine.advance(calm > 0 ? std::chrono::milliseconds(ZookeeperBackend::busy_for) : 1s);
    }
    EXPECT_EQ(ensemble.dialled, dialled) << calm;
  }
}

TEST_F(ZookeeperBackendTest, Load_OpensAnotherSessionThatIsUsed) {
  connect();
  hold_creates();
  add(full);
  EXPECT_EQ(ensemble.dialled, 1);
  press(attempts);
  EXPECT_EQ(ensemble.dialled, 2);
  EXPECT_EQ(sessions_of(attempts), 1U) << "it was not ready yet";
  add(full);
  EXPECT_EQ(sessions_of(attempts), 2U);
  EXPECT_EQ(session_of(*attempts.back()), ensemble.last_session());
  EXPECT_EQ(ensemble.dialled, 2);
  answer_all();
  end();
}

TEST_F(ZookeeperBackendTest, AcquiresOfAName_KeepTheOrderOfTheirCalls) {
  connect();
  (void)ensemble.put("/dlock/same");
  Attempts same;
  same.push_back(contend(*group, {.name = "same"}));  // before there are others
  load();
  for (int i = 0; i < 3; ++i) same.push_back(contend(*group, {.name = "same"}));
  add(1);
  EXPECT_EQ(session_of(*attempts.back()), ensemble.last_session()) << "there are others";
  answer();
  for (const std::string& node : ensemble.children("/dlock/same")) {
    EXPECT_EQ(ensemble.stat("/dlock/same/" + node).owner, session_of(*same.front()));
  }
  end(same);
  // No acquire of the name is left, so it goes where there is less to do.
  hold_creates();
  add(full);
  same.push_back(contend(*group, {.name = "same"}));
  EXPECT_EQ(session_of(*same.back()), ensemble.last_session());
}

TEST_F(ZookeeperBackendTest, Releases_AreLoadAsWell) {
  connect();
  add(full);
  always(Kind::remove, Fate::hold_answer);
  int released = 0;
  for (const auto& attempt : attempts) group->release(*attempt->grant, [&](const ReleaseOutcome&) { ++released; });
  engine.run();
  EXPECT_EQ(released, 0);
  Attempts more;
  press(more);
  EXPECT_EQ(ensemble.dialled, 2);
  answer();
  EXPECT_EQ(released, full);
  add(1, more);
  EXPECT_EQ(sessions_of(more), 1U) << "the first one is free again";
}

TEST_F(ZookeeperBackendTest, Sessions_AreNeverMoreThanAllowed) {
  for (const int most : {1, 2, 4, 6}) {
    const int before = ensemble.dialled;
    connect(most == 4 ? "" : "sessions=" + std::to_string(most));
    for (int i = 0; i < most + 2; ++i) load();
    EXPECT_EQ(ensemble.dialled - before, most);
    EXPECT_EQ(sessions_of(attempts), static_cast<std::size_t>(most));
    answer_all();
  }
}

TEST_F(ZookeeperBackendTest, SessionWithoutAConnection_IsNotChosen) {
  connect();
  busy(2);
  const std::int64_t first = session_of(*attempts.front());
  ensemble.disconnect(first);
  engine.run();
  Attempts more;
  add(1, more);
  ASSERT_TRUE(more.front()->grant);
  EXPECT_NE(session_of(*more.front()), first);
}

TEST_F(ZookeeperBackendTest, LostSession_LosesOnlyItsOwnLocks) {
  connect();
  busy(3);
  const std::int64_t doomed = session_of(*attempts.back());
  std::set<std::string> expected;
  for (const auto& attempt : attempts) {
    if (session_of(*attempt) == doomed) expected.insert(attempt->request.owner.to_string());
  }
  ensemble.expire(doomed);
  engine.advance(1min);
  std::set<std::string> lost;
  for (const auto& loss : host.losses) lost.insert(loss.owner.to_string());
  EXPECT_EQ(lost, expected);
  for (const auto& attempt : attempts) {
    const bool is_lost = expected.contains(attempt->request.owner.to_string());
    EXPECT_EQ(release(*group, *attempt)->status, is_lost ? ReleaseStatus::not_owner : ReleaseStatus::released);
  }
}

TEST_F(ZookeeperBackendTest, Observer_LearnsOfTheFirstConnectionOnly) {
  ensemble.granted = 4s;
  connect();
  busy(2);
  EXPECT_EQ(host.warnings.size(), 1U) << "of the short session";
  ensemble.disconnect(session_of(*attempts.back()));
  engine.advance(10s);
  EXPECT_EQ(host.connections.size(), 1U);
  EXPECT_EQ(host.losses.size(), 1U);
  ensemble.disconnect(session_of(*attempts.front()));
  engine.run();
  EXPECT_EQ(host.connections.back(), ConnectionEvent::State::reconnecting);
}

// --- Connections that are refused ------------------------------------------------------------------------------------

TEST_F(ZookeeperBackendTest, FurtherSessionRefused_DoesNoHarm) {
  for (const auto refusal : {Dialling::silence, Dialling::fail, Dialling::refuse_auth}) {
    drop();
    ensemble.dialling = Dialling::accept;
    host.connections.clear();
    connect();
    ensemble.dialling = refusal;
    load();
    load();
    engine.advance(1s);
    answer_all();
    EXPECT_EQ(sessions_of(attempts), 1U);
    end();
    engine.advance(2min);
    EXPECT_EQ(host.connections.size(), 1U);
    EXPECT_TRUE(host.losses.empty());
  }
}

TEST_F(ZookeeperBackendTest, AfterARefusal_NoSessionIsTriedForAWhile) {
  connect();
  ensemble.dialling = Dialling::silence;
  load();
  load();
  EXPECT_EQ(ensemble.dialled, 2) << "one at a time";
  answer();
  engine.advance(10s);
  EXPECT_EQ(ensemble.closed, 1);
  load();
  EXPECT_EQ(ensemble.dialled, 2);
  answer();
  ensemble.dialling = Dialling::accept;
  engine.advance(ZookeeperBackend::rest_after);
  load();
  add(1);
  EXPECT_EQ(ensemble.dialled, 3);
  EXPECT_EQ(sessions_of(attempts), 2U);
}

// It is given up after the connect timeout, by when all hosts have had their turn.
TEST_F(ZookeeperBackendTest, FurtherSession_LeavesASilentHostForTheNextOne) {
  for (const std::string silent : {"h", "g"}) {
    ensemble.silent = {};
    connect("", ",g");
    ensemble.silent = {silent};
    load();
    engine.advance(6s);
    add(1);
    EXPECT_EQ(sessions_of(attempts), 2U) << silent;
    answer();
  }
}

TEST_F(ZookeeperBackendTest, SessionNotNeeded_DoesNotCompeteForAConnectionWithAHolder) {
  connect();
  ensemble.dialling = Dialling::silence;
  load();
  answer();
  EXPECT_EQ(ensemble.dialled, 2);
  EXPECT_EQ(ensemble.closed, 0);
  ensemble.disconnect(session_of(*attempts.front()));
  engine.run();
  EXPECT_EQ(ensemble.closed, 1) << "the one that is not ready";
  load();
  EXPECT_EQ(ensemble.dialled, 2);
  ensemble.dialling = Dialling::accept;
  ensemble.reconnect();
  engine.advance(1s);
  EXPECT_TRUE(host.losses.empty());
}

// --- Rest ------------------------------------------------------------------------------------------------------------

TEST_F(ZookeeperBackendTest, FurtherSessionNotUsed_RestsAndIsWokenUnderLoad) {
  for (const std::string query : {"", "strategy=ephemeral"}) {
    connect_alone(query);
    const int closed = ensemble.closed;
    const int dialled = ensemble.dialled;
    for (int round = 1; round <= 3; ++round) {
      busy(3);
      EXPECT_EQ(ensemble.dialled - dialled, 2 * round);
      EXPECT_EQ(sessions_of(attempts), 3U);
      end();
      engine.advance(ZookeeperBackend::rest_after - 1s);
      EXPECT_EQ(ensemble.closed - closed, 2 * (round - 1));
      engine.advance(12s);
      EXPECT_EQ(ensemble.closed - closed, 2 * round);
      const std::size_t heartbeats = ensemble.heartbeats();
      engine.advance(1min);
      EXPECT_LE(ensemble.heartbeats() - heartbeats, 25U) << "of one session";
    }
  }
  EXPECT_TRUE(host.losses.empty());
  EXPECT_TRUE(host.warnings.empty());
}

TEST_F(ZookeeperBackendTest, FurtherSessionWithALock_DoesNotRest) {
  connect();
  busy(2);
  engine.advance(2min);
  EXPECT_TRUE(host.losses.empty());
  EXPECT_EQ(sessions_of(attempts), 2U);
  end();
  engine.advance(1min);
  EXPECT_EQ(ensemble.closed, 1);
}

TEST_F(ZookeeperBackendTest, FurtherSessionWithAWaiter_DoesNotRest) {
  for (const std::string query : {"", "strategy=sequential-herd", "strategy=ephemeral"}) {
    connect_alone(query);
    const int closed = ensemble.closed;
    const auto holder = contend(*group, {.name = "held"});
    holder->contention.reset();  // as the core does; the next acquire may go to a different session
    load();
    const auto waiting = contend(*group, {.name = "held"});
    answer();
    end();
    EXPECT_FALSE(waiting->grant);
    engine.advance(2min);
    EXPECT_EQ(ensemble.closed, closed);
    EXPECT_EQ(release(*group, *holder)->status, ReleaseStatus::released);
    engine.advance(1s);
    ASSERT_TRUE(waiting->grant);
    EXPECT_EQ(release(*group, *waiting)->status, ReleaseStatus::released);
  }
}

// --- The end ---------------------------------------------------------------------------------------------------------

TEST_F(ZookeeperBackendTest, Close_WaitsForTheSessionWithSomethingToRemove) {
  connect();
  busy(2);
  Attempt& last = *attempts.back();
  ensemble.disconnect(session_of(last));
  engine.run();
  group->release(*last.grant, [](const ReleaseOutcome&) {});
  bool closed = false;
  group->close([&] { closed = true; });
  engine.advance(1s);
  EXPECT_FALSE(closed);
  ensemble.reconnect();
  engine.advance(1s);
  EXPECT_TRUE(closed);
}

TEST_F(ZookeeperBackendTest, Destructor_InTheMiddleOfAnything_EndsAll) {
  for (const std::string query : {"", "strategy=sequential-herd", "strategy=ephemeral"}) {
    for (int moment = 0; moment < 20; ++moment) {
      SCOPED_TRACE(query + ' ' + std::to_string(moment));
      connect_alone(query);
      hold_creates();
      for (int i = 0; i < 4 * full; ++i) {
        if (i == 2 * full) engine.advance(ZookeeperBackend::busy_for);
        if (i == 3 * full) ensemble.fate = nullptr;
        attempts.push_back(start(*group, {.wait = i % 3 != 0, .name = "m" + std::to_string(i % 40)}));
        if (i % 20 == 19) (void)engine.run_one();
      }
      group->inspect(LockKind::lock, "m1", [](const Result<LockInfo>&) {});
      group->list(LockKind::lock, [](const Result<std::vector<LockInfo>>&) {});
      group->diagnose([](const Result<std::vector<Finding>>&) {});
      auto watch = group->watch(LockKind::election, "m1", [] {});
      ensemble.release_answers();
      if (moment % 2 == 0) ensemble.disconnect();
      for (int i = 0; i < moment * 10; ++i) (void)engine.run_one();
      attempts.clear();
      watch.reset();
      if (moment % 3 == 0) group->close([] {});
      group.reset();
      const std::size_t asked = ensemble.requests.size();
      engine.advance(1min);
      ASSERT_EQ(ensemble.closed, ensemble.dialled);
      ASSERT_EQ(ensemble.requests.size(), asked);
      ASSERT_EQ(engine.pending_timers(), 0U);
    }
  }
}

}  // namespace

}  // namespace dlock::zookeeper
