// Acquiring in the queue: what is sent, what is believed, how waiters wait. What goes wrong is in
// sequential_trouble_test.cpp.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "backend_fixture.hpp"
#include "tests/unit/support/reports.hpp"

namespace dlock::zookeeper {

namespace {

using SequentialTest = BackendTest;

TEST_F(SequentialTest, AFreeLockIsOneRoundTrip) {
  (void)ensemble.put(parent);
  (void)contend(*backend, true, "warm-up");  // connects
  const std::size_t before = ensemble.requests.size();
  const auto attempt = contend(*backend);
  ASSERT_TRUE(attempt->grant);
  ASSERT_EQ(ensemble.requests.size(), before + 2);
  EXPECT_EQ(ensemble.requests[before].kind, Kind::create);
  EXPECT_EQ(ensemble.requests[before + 1].kind, Kind::children);
}

TEST_F(SequentialTest, TheNodeIsAsOthersExpectIt) {
  const auto attempt = contend(*backend);
  const auto nodes = own_nodes();
  ASSERT_EQ(nodes.size(), 1U);
  EXPECT_EQ(last_component(nodes[0]).size(), std::string("_c_").size() + 36 + std::string("-lock-").size() + 10);
  EXPECT_EQ(ensemble.stat(nodes[0]).owner, ensemble.last_session());
  EXPECT_EQ(ensemble.data(nodes[0]), "host:1:test");
  EXPECT_EQ(ensemble.data(parent), "");
}

// Hazard 12: never the sequence number, which begins anew with the parent.
TEST_F(SequentialTest, TheTokenIsTheTransactionThatMadeTheNode) {
  std::uint64_t last = 0;
  for (int i = 0; i < 3; ++i) {
    const auto attempt = contend(*backend);
    ASSERT_TRUE(attempt->grant);
    EXPECT_EQ(attempt->grant->token.value(), static_cast<std::uint64_t>(ensemble.stat(own_nodes().at(0)).created));
    EXPECT_GT(attempt->grant->token.value(), last);
    last = attempt->grant->token.value();
    EXPECT_EQ(release(*backend, *attempt)->status, ReleaseStatus::released);
    ensemble.remove(parent);
  }
}

TEST_F(SequentialTest, ALeaseCountsFromWhenItsRequestWasSent) {
  (void)ensemble.put(parent);
  (void)contend(*backend, true, "warm-up");
  const TimePoint start = engine.now();
  engine.advance(12s);  // with heartbeats after 2.5, 5, 7.5 and 10 seconds
  ensemble.fate = [](const FakeRequest& request) { return is_heartbeat(request) ? Fate::refuse : Fate::hold_answer; };
  const auto attempt = contend(*backend);
  engine.advance(2s);
  ensemble.release_answers();
  engine.run();
  ASSERT_TRUE(attempt->grant);
  // The newest that is a quarter of the session timeout older than the request, not than its answer.
  EXPECT_EQ(attempt->grant->valid_until, lease_valid_until(start + 7500ms, 10s));
  EXPECT_EQ(attempt->grant->lease, 10s);
}

// Hazard 3, 22: two acquires of one session are two nodes.
TEST_F(SequentialTest, EveryAcquireHasANodeOfItsOwn) {
  const auto first = contend(*backend);
  const auto second = contend(*backend);
  EXPECT_TRUE(first->grant);
  EXPECT_FALSE(second->grant);
  EXPECT_GT(second->busy_reports, 0);
  EXPECT_EQ(own_nodes().size(), 2U);
}

TEST_F(SequentialTest, WaitersAreServedInTheirOrder) {
  std::vector<std::unique_ptr<Attempt>> attempts;
  for (int i = 0; i < 5; ++i) attempts.push_back(contend(*backend));
  for (int i = 0; i < 5; ++i) {
    for (int j = 0; j < 5; ++j) EXPECT_EQ(attempts[static_cast<std::size_t>(j)]->grant.has_value(), j <= i);
    (void)release(*backend, *attempts[static_cast<std::size_t>(i)]);
  }
  EXPECT_TRUE(own_nodes().empty());
}

TEST_F(SequentialTest, AWaiterWatchesOnlyTheOneBeforeIt) {
  const std::string holder = put_member();
  const auto first = contend(*backend);
  const std::string before = own_nodes().at(0);
  const std::size_t start = ensemble.requests.size();
  const auto second = contend(*backend);
  std::string watched;
  for (std::size_t i = start; i < ensemble.requests.size(); ++i) {
    if (ensemble.requests[i].watch != 0) watched += ensemble.requests[i].path;
  }
  EXPECT_EQ(watched, before);
  EXPECT_EQ(ensemble.watches(), 2U);
}

// Two small questions at once, however long the queue is behind us.
TEST_F(SequentialTest, TheNextInLineAsksForNoList) {
  const std::string holder = put_member();
  const auto attempt = contend(*backend);
  for (int i = 0; i < 5; ++i) (void)put_member();
  const std::size_t before = ensemble.requests.size();
  ensemble.remove(holder);
  engine.run();
  EXPECT_TRUE(attempt->grant);
  EXPECT_EQ(requests_since(before, Kind::children), 0U);
  EXPECT_EQ(requests_since(before, Kind::get), 2U);
}

TEST_F(SequentialTest, AHandOverCostsTheSameHoweverManyWait) {
  const auto cost = [&](int waiters) {
    std::vector<std::unique_ptr<Attempt>> attempts;
    for (int i = 0; i < waiters; ++i) attempts.push_back(contend(*backend, true, "l" + std::to_string(waiters)));
    const std::size_t before = ensemble.requests.size();
    for (const auto& attempt : attempts) {
      EXPECT_TRUE(attempt->grant);
      if (attempt->grant) (void)release(*backend, *attempt);
    }
    return (ensemble.requests.size() - before) / static_cast<std::size_t>(waiters);
  };
  EXPECT_LE(cost(60), cost(10) + 1);
}

// Hazard 7: whoever goes between the list and the watch is not waited for.
TEST_F(SequentialTest, AHolderThatGoesBetweenTheListAndTheWatchIsNotWaitedFor) {
  const std::string holder = put_member();
  ensemble.fate = [&](const FakeRequest& request) {
    if (request.kind == Kind::get && request.watch != 0) {
      ensemble.fate = nullptr;
      ensemble.remove(holder);
    }
    return Fate::answer;
  };
  const auto attempt = contend(*backend);
  EXPECT_TRUE(attempt->grant);
  EXPECT_EQ(ensemble.watches(), 0U);  // a get of what is not there leaves none
}

// Hazard 11: a counter that begins anew gives a number for the second time.
TEST_F(SequentialTest, OfOneNumberTheNodeThatWasMadeFirstIsFirst) {
  const std::string twin = parent + std::string("/_c_00000000-0000-4000-8000-000000000001-lock-0000000000");
  (void)ensemble.put(twin, "other:2:x", 77);
  ensemble.set_sequence(parent, 0);
  const auto attempt = contend(*backend);
  EXPECT_FALSE(attempt->grant);
  EXPECT_GT(attempt->busy_reports, 0);
  ensemble.remove(twin);
  engine.run();
  EXPECT_TRUE(attempt->grant);
  (void)release(*backend, *attempt);

  ensemble.set_sequence(parent, 0);
  ensemble.fate = [&](const FakeRequest& request) {
    if (request.kind == Kind::children) {
      ensemble.fate = nullptr;
      (void)ensemble.put(twin, "other:2:x", 77);
    }
    return Fate::answer;
  };
  const auto earlier = contend(*backend);
  EXPECT_TRUE(earlier->grant);
  EXPECT_TRUE(ensemble.exists(twin));
}

// Hazard 8.
TEST_F(SequentialTest, AWaiterThatGivesUpHandsNothingOn) {
  const std::string holder = put_member();
  const std::string quitter = put_member();
  const auto attempt = contend(*backend);
  ensemble.remove(quitter);
  engine.run();
  EXPECT_FALSE(attempt->grant);
  ensemble.remove(holder);
  engine.run();
  EXPECT_TRUE(attempt->grant);
}

TEST_F(SequentialTest, AChangeOfTheHoldersDataIsNoHandOver) {
  const std::string holder = put_member();
  const auto attempt = contend(*backend);
  ensemble.set_data(holder, "__REVOKE__");
  engine.run();
  EXPECT_FALSE(attempt->grant);
  EXPECT_EQ(ensemble.watches(), 1U);
  ensemble.remove(holder);
  engine.run();
  EXPECT_TRUE(attempt->grant);
}

TEST_F(SequentialTest, WaitersOfTheSameNodeShareAWatch) {
  backend = make("strategy=sequential-herd");
  (void)put_member();
  const auto first = contend(*backend);
  const auto second = contend(*backend);
  Handle::WatchId watch = 0;
  for (const FakeRequest& request : ensemble.requests) {
    if (request.watch == 0) continue;
    if (watch == 0) watch = request.watch;
    EXPECT_EQ(request.kind, Kind::children);
  }
  EXPECT_NE(watch, 0U);
}

TEST_F(SequentialTest, AHerdListsAnewAtEveryChange) {
  backend = make("strategy=sequential-herd");
  const std::string holder = put_member();
  const auto attempt = contend(*backend);
  std::size_t before = ensemble.requests.size();
  const std::string later = put_member();
  engine.run();
  EXPECT_EQ(requests_since(before, Kind::children), 1U);
  EXPECT_FALSE(attempt->grant);
  before = ensemble.requests.size();
  ensemble.remove(holder);
  engine.run();
  EXPECT_EQ(requests_since(before, Kind::get), 0U);
  EXPECT_TRUE(attempt->grant);
}

TEST_F(SequentialTest, ALostEventIsMadeUpForByLooking) {
  const std::string holder = put_member();
  const auto attempt = contend(*backend);
  ensemble.fate = nullptr;
  const std::size_t before = ensemble.requests.size();
  engine.advance(45s);
  EXPECT_GE(requests_since(before, Kind::get), 1U);
  EXPECT_LE(requests_since(before, Kind::get), 3U);
  EXPECT_FALSE(attempt->grant);
}

TEST_F(SequentialTest, ALostEventBehindAChangeOfDataIsMadeUpForByLooking) {
  const std::string holder = put_member();
  const auto attempt = contend(*backend);
  ensemble.set_data(holder, "__REVOKE__");
  engine.run();
  ensemble.loses_events = true;
  ensemble.remove(holder);
  ensemble.loses_events = false;
  engine.advance(45s);
  EXPECT_TRUE(attempt->grant);
}

TEST_F(SequentialTest, AHolderThatGoesWhileAHerdStillAsksIsNotWaitedFor) {
  backend = make("strategy=sequential-herd");
  const std::string holder = put_member();
  const std::string other = put_member();
  (void)ensemble.put(parent + std::string("/leases"));
  ensemble.fate = [&](const FakeRequest& request) {
    if (request.kind != Kind::get) return Fate::answer;
    if (!ensemble.exists(holder)) return Fate::hold_answer;  // the second question
    ensemble.remove(holder);
    return Fate::answer;
  };
  const auto attempt = contend(*backend);
  EXPECT_FALSE(attempt->grant);
  ensemble.fate = nullptr;
  ensemble.release_answers();
  const std::size_t before = ensemble.requests.size();
  engine.run();
  EXPECT_EQ(requests_since(before, Kind::children), 1U);
  EXPECT_FALSE(attempt->grant);
  ensemble.remove(other);
  engine.run();
  EXPECT_TRUE(attempt->grant);
}

// A list for each waiter of a long queue would be a load that grows with its square.
TEST_F(SequentialTest, AQueueThatStandsStillIsNotListed) {
  for (int i = 0; i < 3; ++i) (void)put_member();
  const auto attempt = contend(*backend);
  const std::size_t before = ensemble.requests.size();
  engine.advance(5min);
  EXPECT_GE(requests_since(before, Kind::get), 7U);
  EXPECT_LE(requests_since(before, Kind::get), 16U);
  EXPECT_EQ(requests_since(before, Kind::children), 0U);
}

TEST_F(SequentialTest, ALostEventInALongQueueIsMadeUpForByLooking) {
  const std::string holder = put_member();
  const std::string before_us = put_member();
  const auto attempt = contend(*backend);
  ensemble.loses_events = true;
  ensemble.remove(before_us);
  ensemble.remove(holder);
  ensemble.loses_events = false;
  engine.run();
  EXPECT_FALSE(attempt->grant);
  engine.advance(45s);
  EXPECT_TRUE(attempt->grant);
}

TEST_F(SequentialTest, ALostEventCostsTwoQuestions) {
  for (const bool changed_before : {false, true}) {
    const std::string holder = put_member();
    const auto attempt = contend(*backend);
    if (changed_before) ensemble.set_data(holder, "__REVOKE__");
    engine.run();
    ensemble.loses_events = true;
    ensemble.remove(holder);
    ensemble.loses_events = false;
    std::size_t questions = 0;
    attempt->when_granted = [&, before = ensemble.requests.size()] { questions = requests_since(before, Kind::get); };
    engine.advance(45s);
    EXPECT_TRUE(attempt->grant);
    EXPECT_EQ(questions, 2U);
    (void)release(*backend, *attempt);
  }
}

TEST_F(SequentialTest, ALostEventInAHerdIsMadeUpForByLooking) {
  backend = make("strategy=sequential-herd");
  const std::string holder = put_member();
  const auto attempt = contend(*backend);
  ensemble.loses_events = true;
  ensemble.remove(holder);
  ensemble.loses_events = false;
  engine.run();
  EXPECT_FALSE(attempt->grant);
  engine.advance(45s);
  EXPECT_TRUE(attempt->grant);
}

// --- Tries -----------------------------------------------------------------------------------------------------------

TEST_F(SequentialTest, ATryOfAFreeLockIsOneRoundTrip) {
  (void)ensemble.put(parent);
  (void)contend(*backend, true, "warm-up");  // connects
  const std::size_t before = ensemble.requests.size();
  const auto attempt = contend(*backend, false);
  ASSERT_TRUE(attempt->grant);
  ASSERT_EQ(ensemble.requests.size(), before + 2);
  EXPECT_EQ(ensemble.requests[before].kind, Kind::create);
  EXPECT_EQ(ensemble.requests[before + 1].kind, Kind::children);
}

TEST_F(SequentialTest, ATryOfABusyLockLeavesNothing) {
  (void)put_member();
  const auto attempt = contend(*backend, false);
  EXPECT_EQ(attempt->busy_reports, 1);
  EXPECT_TRUE(own_nodes().empty());
}

// Hazard 23.
TEST_F(SequentialTest, TryingABusyLockAgainWritesNothing) {
  const std::string holder = put_member();
  (void)contend(*backend, false);
  const std::size_t before = ensemble.requests.size();
  const auto attempt = contend(*backend, false);
  EXPECT_EQ(attempt->busy_reports, 1);
  EXPECT_EQ(requests_since(before, Kind::create), 0U);
  EXPECT_EQ(requests_since(before, Kind::remove), 0U);
  // Hazard 24: a server that lags behind is brought up to date first.
  const auto list =
      std::find_if(ensemble.requests.begin() + static_cast<std::ptrdiff_t>(before), ensemble.requests.end(),
                   [](const FakeRequest& request) { return request.kind == Kind::children; });
  ASSERT_NE(list, ensemble.requests.end());
  EXPECT_EQ((list - 1)->kind, Kind::sync);
  EXPECT_EQ((list - 1)->path, parent);
  // Once it was granted, it is no busy lock any more.
  ensemble.remove(holder);
  const auto granted = contend(*backend, false);
  ASSERT_TRUE(granted->grant);
  EXPECT_EQ(release(*backend, *granted)->status, ReleaseStatus::released);
  const std::size_t again = ensemble.requests.size();
  EXPECT_TRUE(contend(*backend, false)->grant);
  EXPECT_EQ(ensemble.requests.at(again).kind, Kind::create);
}

TEST_F(SequentialTest, ATryIsGrantedWhereTheOneOfTheSameNumberGoes) {
  const std::string twin = parent + std::string("/_c_00000000-0000-4000-8000-000000000001-lock-0000000000");
  (void)ensemble.put(twin, "other:2:x", 77);
  ensemble.set_sequence(parent, 0);
  ensemble.fate = [&](const FakeRequest& request) {
    if (request.kind == Kind::get) {
      ensemble.fate = nullptr;
      ensemble.remove(twin);
    }
    return Fate::answer;
  };
  const auto attempt = contend(*backend, false);
  EXPECT_TRUE(attempt->grant);
}

TEST_F(SequentialTest, ATryOfALockThatWasBusyAndHasNoNodeAnyMoreIsGranted) {
  (void)put_member();
  (void)contend(*backend, false);
  ensemble.remove(parent);
  const auto attempt = contend(*backend, false);
  EXPECT_TRUE(attempt->grant);
}

TEST_F(SequentialTest, ATryOfAFreeLockIsGranted) {
  const auto attempt = contend(*backend, false);
  EXPECT_TRUE(attempt->grant);
}

TEST_F(SequentialTest, ATryThatIsOvertakenTakesItsNodeBack) {
  (void)ensemble.put(parent);
  ensemble.fate = [&](const FakeRequest& request) {
    if (request.kind == Kind::create) {
      ensemble.fate = nullptr;
      (void)put_member();
    }
    return Fate::answer;
  };
  const auto attempt = contend(*backend, false);
  EXPECT_FALSE(attempt->grant);
  EXPECT_EQ(attempt->busy_reports, 1);
  EXPECT_TRUE(own_nodes().empty());
}

// --- Parents ---------------------------------------------------------------------------------------------------------

// Hazard 13. An object of kazoo's makes its parents once, and does not find out that a server has removed them.
TEST_F(SequentialTest, MissingParentsAreMadeAsContainersInCuratorsLayoutAndToStayInKazoos) {
  for (const auto& [layout, kind] :
       {std::pair("curator", NodeKind::container), std::pair("kazoo", NodeKind::persistent)}) {
    const std::string prefix = std::string("/a/b/") + layout;
    const std::size_t before = ensemble.requests.size();
    backend = make("prefix=" + prefix + "&layout=" + layout);
    const auto attempt = contend(*backend);
    EXPECT_TRUE(attempt->grant);
    EXPECT_TRUE(ensemble.exists(prefix + "/lock"));
    for (std::size_t i = before; i < ensemble.requests.size(); ++i) {
      const FakeRequest& request = ensemble.requests[i];
      if (request.kind != Kind::create || request.node == NodeKind::ephemeral_sequential) continue;
      EXPECT_EQ(request.node, kind) << layout << " " << request.path;
      EXPECT_EQ(request.data, "");
    }
  }
}

TEST_F(SequentialTest, AsManyParentsAreMadeAsThePrefixHas) {
  const std::string prefix = "/1/2/3/4/5/6/7/8/9/10/11/12";
  for (const std::string query : {"", "strategy=ephemeral&"}) {
    if (ensemble.exists("/1")) ensemble.remove("/1");
    backend = make(query + "prefix=" + prefix);
    const auto attempt = contend(*backend);
    EXPECT_TRUE(attempt->grant) << query;
    EXPECT_TRUE(attempt->unreachable_reports.empty()) << query;
  }
}

// The server removes containers that are empty again, and none that were never used. In kazoo's layout the node stays:
// an object of kazoo's may have found it meanwhile.
TEST_F(SequentialTest, AContainerIsNotLeftWhereNobodyEntersIt) {
  for (const auto& [query, there_already] :
       {std::pair("", false), std::pair("", true), std::pair("layout=kazoo", false)}) {
    backend = make(query);
    ensemble.remove(parent);
    if (there_already) (void)ensemble.put(parent);
    ensemble.fate = [&](const FakeRequest& request) {
      if (request.kind != Kind::create || request.node == NodeKind::ephemeral_sequential) return Fate::answer;
      return request.path == parent ? Fate::hold_answer : Fate::answer;
    };
    auto attempt = contend(*backend);
    attempt->contention.reset();
    ensemble.fate = nullptr;
    ensemble.release_answers();
    engine.run();
    EXPECT_EQ(ensemble.exists(parent), there_already || query == std::string("layout=kazoo"));
  }
}

TEST_F(SequentialTest, AContainerThatSomebodyElseHasEnteredStays) {
  ensemble.fate = [&](const FakeRequest& request) {
    return request.kind == Kind::create && request.path == parent ? Fate::hold_answer : Fate::answer;
  };
  auto attempt = contend(*backend);
  attempt->contention.reset();
  const std::string other = put_member();
  ensemble.fate = nullptr;
  ensemble.release_answers();
  engine.run();
  EXPECT_TRUE(ensemble.exists(other));
}

TEST_F(SequentialTest, AParentThatWasReapedIsMadeAgain) {
  const auto first = contend(*backend);
  (void)release(*backend, *first);
  ensemble.remove(parent);
  const auto second = contend(*backend);
  EXPECT_TRUE(second->grant);
}

TEST_F(SequentialTest, AParentThatIsReapedAgainAndAgainIsReported) {
  ensemble.fate = [&](const FakeRequest& request) {
    if (request.kind == Kind::create && request.node == NodeKind::ephemeral_sequential && ensemble.exists(parent)) {
      ensemble.remove(parent);
    }
    return Fate::answer;
  };
  const auto attempt = start(*backend);
  engine.advance(10ms);
  EXPECT_FALSE(attempt->failure);
  ASSERT_FALSE(attempt->unreachable_reports.empty());
  EXPECT_EQ(attempt->unreachable_reports[0].code, errc::unavailable);
  const auto tried = contend(*backend, false);
  ASSERT_TRUE(tried->failure);
  ensemble.fate = nullptr;
  engine.advance(1s);
  EXPECT_TRUE(attempt->grant);
}

// Hazard 26.
TEST_F(SequentialTest, AMissingChrootIsSaid) {
  ensemble.remove("/");  // what is the root of the session
  for (const std::string query : {"", "prefix=", "strategy=ephemeral&prefix="}) {
    for (const bool wait : {false, true}) {
      backend = make(query, "/apps/mine");
      const auto attempt = contend(*backend, wait);
      ASSERT_TRUE(failed(*attempt, errc::invalid_argument, "/apps/mine")) << query;
    }
  }
}

}  // namespace

}  // namespace dlock::zookeeper
