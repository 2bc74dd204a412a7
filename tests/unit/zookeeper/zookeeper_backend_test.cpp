// Several sessions for one client: opened under load and used; refused; resting; closed.
#include "backends/zookeeper/zookeeper_backend.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <utility>

#include "scenario.hpp"

namespace dlock::zookeeper {
namespace {

// Acquires of a client: each of a lock of its own, or several of a LOCK that is named.
class ClientScript final : public BackendScript {
 public:
  explicit ClientScript(std::string query) : BackendScript(std::move(query)) {
    add_words();
    add_expectations();
  }

 private:
  using Attempts = std::vector<std::unique_ptr<Attempt>>;
  static constexpr int full = static_cast<int>(ZookeeperBackend::busy_from);

  void add_words() {
    words_["connect"] = [this](Words&) {  // the first session
      EXPECT_EQ(release(*backend, *contend(*backend, {.name = "first"}))->status, ReleaseStatus::released);
    };
    words_["start"] = [this](Words& words) { start_all(count(words), {}); };  // COUNT, or `full`
    words_["add"] = [this](Words& words) {                                    // COUNT [LOCK]: one after the other
      const int all = count(words);
      const std::string lock = next(words);
      for (int i = 0; i < all; ++i) start_all(1, lock), engine.run();
    };
    words_["hold"] = [this](Words&) { execute("on create* hold"); };  // carried out, but not answered
    // New acquires find all sessions busy, for as long as it takes to open another one. What was before does not count.
    words_["press"] = [this](Words&) {
      engine.advance(2 * ZookeeperBackend::busy_for);
      execute("add 1");
      engine.advance(ZookeeperBackend::busy_for);
      execute("add 1");
    };
    words_["load"] = [this](Words&) { execute("repeat 1 hold, add full, press"); };
    words_["busy"] = [this](Words& words) {  // load opens so many sessions, and one acquire is in the last of them
      for (int i = count(words); i > 1; --i) execute("load");
      execute("repeat 1 add 1, answer");
    };
    words_["answer"] = [this](Words&) {
      execute("repeat 1 calm, release_answers, run");
      for (const auto& attempt : attempts_[{}]) EXPECT_TRUE(attempt->grant);
    };
    words_["leave_granted"] = [this](Words& words) {  // LOCK: its last acquire is over, as the core does
      const auto& attempt = attempts_.at(next(words)).back();
      EXPECT_TRUE(attempt->grant);
      attempt->contention.reset();
    };
    words_["end"] = [this](Words& words) {  // [LOCK [COUNT]]: releases them, the oldest first
      Attempts& all = attempts_[next(words)];
      int left = std::numeric_limits<int>::max();
      words >> left;
      for (; left > 0 && !all.empty(); --left) {
        ASSERT_TRUE(all.front()->grant);
        EXPECT_EQ(release(*backend, *all.front())->status, ReleaseStatus::released);
        all.erase(all.begin());
      }
    };
    words_["let_go"] = [this](Words&) {  // releases them, and waits for none
      for (const auto& attempt : std::exchange(attempts_[{}], {})) {
        backend->release(*attempt->grant, [this](const ReleaseOutcome&) { ++released_; });
      }
      engine.run();
    };
    words_["cut"] = [this](Words& words) {  // first|last: the connection of that acquire
      const Attempts& all = attempts_[{}];
      ensemble.disconnect(session_of(next(words) == "first" ? *all.front() : *all.back()));
    };
  }

  void add_expectations() {
    words_["sessions"] = [this](Words& words) {  // COUNT [LOCK]: they are in so many
      const int expected = count(words);
      std::set<std::int64_t> all;
      for (const auto& attempt : attempts_[next(words)]) all.merge(sessions_at(attempt->request.name));
      EXPECT_EQ(all.size(), static_cast<std::size_t>(expected));
    };
    words_["newest"] = [this](Words& words) {  // [LOCK]: the last one is in the session that was opened last
      EXPECT_EQ(session_of(*attempts_[next(words)].back()), ensemble.last_session());
    };
    words_["waits"] = [this](Words& words) { EXPECT_FALSE(attempts_.at(next(words)).back()->grant); };
    words_["released"] = [this](Words& words) { EXPECT_EQ(released_, count(words)); };
    // The session of the last acquire ends, and with it the locks that are in it.
    words_["last_session_loses_its_own"] = [this](Words&) {
      std::set<std::string> expected;
      std::set<std::string> lost;
      const std::int64_t doomed = session_of(*attempts_[{}].back());
      for (const auto& attempt : attempts_[{}]) {
        if (session_of(*attempt) == doomed) expected.insert(attempt->request.owner.to_string());
      }
      ensemble.expire(doomed);
      engine.advance(1min);
      for (const auto& loss : host.losses) lost.insert(loss.owner.to_string());
      EXPECT_EQ(lost, expected);
      for (const auto& attempt : attempts_[{}]) {
        const bool is_lost = expected.contains(attempt->request.owner.to_string());
        EXPECT_EQ(release(*backend, *attempt)->status, is_lost ? ReleaseStatus::not_owner : ReleaseStatus::released);
      }
    };
  }

  static int count(Words& words) {
    const std::string word = next(words);
    return word == "full" ? full : std::stoi(word);
  }
  void start_all(int count, const std::string& lock) {
    for (int i = 0; i < count; ++i) {
      const std::string name = lock.empty() ? "n" + std::to_string(++last_) : lock;
      const bool ephemeral = query_.starts_with("strategy=ephemeral");
      if (!ensemble.exists("/dlock/" + name) && !ephemeral) (void)ensemble.put("/dlock/" + name);
      attempts_[lock].push_back(start(*backend, {.name = name}));
    }
  }
  [[nodiscard]] std::set<std::int64_t> sessions_at(const std::string& name) const {
    const std::string path = "/dlock/" + name;
    std::set<std::int64_t> sessions;
    for (const std::string& node : ensemble.children(path)) sessions.insert(ensemble.stat(path + "/" + node).owner);
    if (sessions.empty()) sessions.insert(ensemble.exists(path) ? ensemble.stat(path).owner : 0);
    return sessions;
  }
  // For an acquire that is alone at its lock.
  [[nodiscard]] std::int64_t session_of(const Attempt& attempt) const {
    return *sessions_at(attempt.request.name).begin();
  }

  std::map<std::string, Attempts> attempts_;  // by LOCK
  int last_ = 0;
  int released_ = 0;
};

class ClientScenario : public testing::TestWithParam<Scenario> {};

TEST_P(ClientScenario, Holds) {
  run_scenario<ClientScript>(GetParam());
}

constexpr Scenario client_rows[] = {
    // --- Under load ---
    {"AcquiresBeforeThereIsASession_WaitForTheFirst", "",
     "1min; dialled 0; repeat 3 start full; run; dialled 1; sessions 1"},
    // Hazard 27.
    {"ClientThatIsNotBusy_HasOneSession", "", "connect; add 100; sessions 1; end; hold; add full; 1s; dialled 1"},
    {"Burst_OpensNoSession", "",
     "connect; {repeat 6 hold, repeat 5 add full, answer, end, 1s|repeat 6 add 10, hold, add full, add 5, answer, end, "
     "100ms}; dialled 1"},
    // It is not ready yet when it has been opened.
    {"Load_OpensAnotherSessionThatIsUsed", "",
     "connect; hold; add full; dialled 1; press; dialled 2; sessions 1; add full; sessions 2; newest; dialled 2; "
     "answer; end"},
    // When no acquire of the name is left, the next one goes where there is less to do.
    {"AcquiresOfAName_KeepTheOrderOfTheirCalls", "",
     "connect; add 1 same; load; add 3 same; add 1; newest; answer; sessions 1 same; end same; hold; add full; add 1 "
     "same; newest same"},
    {"Releases_AreLoadAsWell", "",
     "connect; add full; on remove* hold; let_go; released 0; press; dialled 2; answer; released full; add 1; sessions "
     "1"},
    {"Sessions_AreNeverMoreThanAllowed", "sessions={1|2|4|6}",
     "connect; repeat 8 load; dialled {1|2|4|6}; sessions {1|2|4|6}; answer"},
    {"SessionWithoutAConnection_IsNotChosen", "",
     "connect; busy 2; cut first; run; add 1 later; newest later; end later"},
    {"LostSession_LosesOnlyItsOwnLocks", "", "connect; busy 3; last_session_loses_its_own"},
    {"Observer_LearnsOfTheFirstConnectionOnly", "",
     "grants 4s; connect; busy 2; warnings 1; cut last; 10s; connections connected; lost 1; cut first; run; "
     "connections reconnecting"},

    // --- Connections that are refused ---
    // Hazard: few connections per address: further sessions are optional
    {"FurtherSessionRefused_DoesNoHarm", "",
     "connect; dial {silence|fail|refuse_auth}; load; load; 1s; answer; sessions 1; end; 2min; connections connected; "
     "lost 0"},
    // They are opened one at a time.
    {"AfterARefusal_NoSessionIsTriedForAWhile", "",
     "connect; dial silence; load; load; dialled 2; answer; 10s; closed 1; load; dialled 2; answer; dial accept; 30s; "
     "load; add 1; dialled 3; sessions 2"},
    // It is given up after the connect timeout, by when all hosts have had their turn.
    {"FurtherSession_LeavesASilentHostForTheNextOne", "",
     "fresh ,g; connect; silent {h|g}; load; 6s; add 1; sessions 2"},
    // The one that is not ready is closed.
    {"SessionNotNeeded_DoesNotCompeteForAConnectionWithAHolder", "",
     "connect; dial silence; load; answer; dialled 2; closed 0; cut first; run; closed 1; load; dialled 2; dial "
     "accept; reconnect; 1s; lost 0"},

    // --- Rest ---
    // In the end there are the heartbeats of one session.
    {"FurtherSessionNotUsed_RestsAndIsWokenUnderLoad", "{|strategy=ephemeral}",
     "connect; repeat 3 mark, busy 3, dialled 2, sessions 3, end, 29s, closed 0, 12s, closed 2, mark, 1min, asked "
     "heartbeat 0-25; lost 0; warnings 0"},
    {"FurtherSessionWithALock_DoesNotRest", "", "connect; busy 2; 2min; lost 0; sessions 2; end; 1min; closed 1"},
    {"FurtherSessionWithAWaiter_DoesNotRest", "{|strategy=sequential-herd|strategy=ephemeral}",
     "connect; add 1 held; leave_granted held; load; add 1 held; answer; end; waits held; 2min; closed 0; end held 1; "
     "1s; end held"},

    // --- The end ---
    {"Close_WaitsForTheSessionWithSomethingToRemove", "",
     "connect; busy 2; cut last; run; let_go; close; 1s; is_not_closed; reconnect; 1s; is_closed"},
};

INSTANTIATE_TEST_SUITE_P(, ClientScenario, testing::ValuesIn(client_rows), name_of);

using ZookeeperBackendTest = BackendTest;

TEST_F(ZookeeperBackendTest, LeaseLongerThanTheSession_IsRefused) {
  backend = make("session_timeout=4s");
  EXPECT_EQ(backend->capabilities().max_lease, 10s);
  EXPECT_TRUE(contend(*backend, {.name = "default", .lease = 10s})->grant);
  EXPECT_TRUE(contend(*backend, {.name = "short", .lease = 1s})->grant);
  ASSERT_TRUE(failed(*contend(*backend, {.name = "long", .lease = 5s}), errc::invalid_argument, "session_timeout"));
}

TEST_F(ZookeeperBackendTest, RestingSession_HasNoConnectionThatCouldBreak) {
  const auto session = make<SessionLocks>();
  (void)release(*session, *contend(*session));
  auto observing = session->watch(LockKind::election, "lock", [] {});
  EXPECT_FALSE(session->unused());
  observing.reset();
  EXPECT_TRUE(session->unused());
  session->rest();
  host.connections.clear();
  ensemble.dialling = Dialling::silence;
  const auto waiting = contend(*session);
  engine.advance(6s);
  EXPECT_FALSE(waiting->unreachable_reports.empty());
  EXPECT_TRUE(host.connections.empty());
}

TEST_F(ZookeeperBackendTest, Clients_AreSpreadOverTheHosts) {
  for (int i = 0; i < 16; ++i) (void)contend(*make({}, ",g"));
  EXPECT_EQ(std::set(ensemble.dialled_first.begin(), ensemble.dialled_first.end()).size(), 2U);
}

// A request more for each waiter would be a load that grows with its square: of permits and of a wave of readers, too.
TEST_F(ZookeeperBackendTest, HandOver_CostsTheSameHoweverManyWait) {
  const std::pair<Wish, Wish> queues[] = {{{}, {}},
                                          {{.kind = LockKind::semaphore, .permits = 3}, {}},
                                          {{.kind = LockKind::read_write}, {.mode = Mode::shared}}};
  for (const auto& [first, others] : queues) {
    const auto cost = [&](int waiters) {
      std::vector<std::unique_ptr<Attempt>> attempts;
      attempts.push_back(contend(*backend, first));
      Wish wish = first;
      wish.mode = others.mode;
      for (int i = 1; i < waiters; ++i) attempts.push_back(contend(*backend, wish));
      const std::size_t before = ensemble.requests.size();
      for (const auto& attempt : attempts) EXPECT_TRUE(attempt->grant && release(*backend, *attempt));
      return (ensemble.requests.size() - before) / static_cast<std::size_t>(waiters);
    };
    EXPECT_LE(cost(60), cost(10) + 1);
  }
}

TEST_F(ZookeeperBackendTest, Destructor_InTheMiddleOfAnything_EndsAll) {
  constexpr int full = static_cast<int>(ZookeeperBackend::busy_from);
  std::unique_ptr<ZookeeperBackend> group;
  std::vector<std::unique_ptr<Attempt>> attempts;
  for (const std::string query : {"", "strategy=sequential-herd", "strategy=ephemeral"}) {
    for (int moment = 0; moment < 20; ++moment) {
      SCOPED_TRACE(query + ' ' + std::to_string(moment));
      attempts.clear();
      group.reset();
      ensemble.fate = nullptr;
      ensemble.remove("/dlock");
      group = make<ZookeeperBackend>(query);
      (void)release(*group, *contend(*group, {.name = "first"}));
      ensemble.fate = [](const FakeRequest& request) {
        return request.kind == Kind::create ? Fate::hold_answer : Fate::answer;
      };
      for (int i = 0; i < 4 * full; ++i) {
        if (i == 2 * full) engine.advance(ZookeeperBackend::busy_for);
        if (i == 3 * full) ensemble.fate = nullptr;
        attempts.push_back(start(*group, {.name = "m" + std::to_string(i % 40), .wait = i % 3 != 0}));
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
