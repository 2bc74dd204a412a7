// The queue when requests, connections and sessions break: what is believed, and what is cleaned up.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "backend_fixture.hpp"
#include "tests/unit/support/reports.hpp"

namespace dlock::zookeeper {

namespace {

class SequentialTroubleTest : public BackendTest {
 protected:
  SequentialTroubleTest() { connect_anew(); }
  void connect_anew() {
    backend.reset();
    backend = make();
    (void)ensemble.put(parent);
    (void)contend(*backend, true, "warm-up");
  }
};

// --- Outcomes that are not known -------------------------------------------------------------------------------------

// Hazard 1.
TEST_F(SequentialTroubleTest, ACreateWhoseAnswerWasLostIsFoundByItsGuid) {
  next(Kind::create, Fate::lose_answer);
  const auto attempt = contend(*backend);
  EXPECT_FALSE(attempt->grant);
  EXPECT_EQ(attempt->unreachable_reports.size(), 1U);
  engine.advance(100ms);
  ASSERT_TRUE(attempt->grant);
  ASSERT_EQ(own_nodes().size(), 1U);
  EXPECT_EQ(attempt->grant->token.value(), static_cast<std::uint64_t>(ensemble.stat(own_nodes()[0]).created));
}

TEST_F(SequentialTroubleTest, TheSearchIsBroughtUpToDateFirst) {
  next(Kind::create, Fate::lose_answer);
  const auto attempt = contend(*backend);
  const std::size_t before = ensemble.requests.size();
  engine.advance(100ms);
  ASSERT_GE(ensemble.requests.size(), before + 2);
  EXPECT_TRUE(is_heartbeat(ensemble.requests[before]));
  EXPECT_EQ(ensemble.requests[before + 1].kind, Kind::children);
}

// Else it would wait for itself.
TEST_F(SequentialTroubleTest, ASearchThatIsNotAnsweredFindsNothingOut) {
  for (const Fate fate : {Fate::lose_answer, Fate::lose_request, Fate::refuse}) {
    connect_anew();
    int lists = 0;
    ensemble.fate = [&](const FakeRequest& request) {
      if (request.kind == Kind::create) return Fate::lose_answer;
      return request.kind == Kind::children && ++lists == 2 ? fate : Fate::answer;  // the first is behind the create
    };
    const auto attempt = contend(*backend);
    engine.advance(500ms);
    EXPECT_GT(lists, 2);
    ASSERT_TRUE(attempt->grant);
    EXPECT_EQ(own_nodes().size(), 1U);
    ensemble.fate = nullptr;
    (void)release(*backend, *attempt);
  }
}

// The same of the node that the search has found.
TEST_F(SequentialTroubleTest, ANodeThatTheSearchFoundAndCouldNotLookAtIsNotGone) {
  for (const Fate fate : {Fate::lose_answer, Fate::lose_request, Fate::refuse}) {
    connect_anew();
    next(Kind::create, Fate::lose_answer);
    const auto attempt = contend(*backend);
    const std::string place = own_nodes().at(0);
    next(Kind::get, fate);
    engine.advance(500ms);
    EXPECT_TRUE(attempt->grant);
    EXPECT_EQ(own_nodes(), std::vector{place});
    (void)release(*backend, *attempt);
  }
}

TEST_F(SequentialTroubleTest, WhereTheNodeGoesThatTheSearchFoundAnotherIsMadeAtOnce) {
  next(Kind::create, Fate::lose_answer);
  const auto attempt = contend(*backend);
  const std::string place = own_nodes().at(0);
  ensemble.fate = [&](const FakeRequest& request) {
    if (request.kind == Kind::get) ensemble.remove(place);
    return Fate::answer;
  };
  const std::size_t before = ensemble.requests.size();
  engine.advance(100ms);
  EXPECT_TRUE(attempt->grant);
  EXPECT_EQ(attempt->unreachable_reports.size(), 1U) << "of the create";
  EXPECT_EQ(requests_since(before, Kind::children), 2U) << "the search, and the list behind the new create";
  EXPECT_EQ(own_nodes().size(), 1U);
}

TEST_F(SequentialTroubleTest, WhereTheLocksNodeIsGoneOursIs) {
  next(Kind::create, Fate::lose_answer);
  const auto attempt = contend(*backend);
  ensemble.remove(parent);
  engine.advance(100ms);
  ASSERT_TRUE(attempt->grant);
  EXPECT_EQ(own_nodes().size(), 1U);
}

// A request of the session before that is carried out late.
TEST_F(SequentialTroubleTest, ANodeUnderOurGuidThatIsNotOfOurSessionIsRemovedAndNoPlace) {
  std::string late;
  ensemble.fate = [&](const FakeRequest& request) {
    if (request.kind != Kind::create) return Fate::answer;
    ensemble.fate = nullptr;
    late = ensemble.put(request.path, request.data, 77, true).path;
    return Fate::lose_request;
  };
  const auto attempt = contend(*backend);
  engine.advance(500ms);
  EXPECT_FALSE(ensemble.exists(late));
  ASSERT_TRUE(attempt->grant);
  ASSERT_EQ(own_nodes().size(), 1U);
  EXPECT_EQ(ensemble.stat(own_nodes()[0]).owner, ensemble.last_session());
}

TEST_F(SequentialTroubleTest, ACreateThatWasNotCarriedOutIsRepeatedUnderAnotherGuid) {
  next(Kind::create, Fate::lose_request);
  const auto attempt = contend(*backend);
  engine.advance(100ms);
  EXPECT_TRUE(attempt->grant);
  EXPECT_EQ(own_nodes().size(), 1U);
  std::vector<std::string> paths;
  for (const FakeRequest& request : ensemble.requests) {
    if (request.kind == Kind::create && request.path.starts_with(parent + std::string("/")))
      paths.push_back(request.path);
  }
  ASSERT_EQ(paths.size(), 2U);
  EXPECT_NE(paths[0], paths[1]);
}

TEST_F(SequentialTroubleTest, ATryWhoseAnswerWasLostIsAmbiguousAndTakenBack) {
  next(Kind::create, Fate::lose_answer);
  auto attempt = contend(*backend, false);
  ASSERT_TRUE(failed(*attempt, errc::ambiguous));
  EXPECT_TRUE(own_nodes().empty());
}

TEST_F(SequentialTroubleTest, AConnectionThatBreaksUnderTheCreateIsNoLoss) {
  next(Kind::create, Fate::hold_answer);
  const auto attempt = contend(*backend);
  ensemble.disconnect();
  engine.run();
  EXPECT_FALSE(attempt->grant);
  engine.advance(1s);
  ensemble.reconnect();
  engine.advance(1s);
  ASSERT_TRUE(attempt->grant);
  EXPECT_EQ(own_nodes().size(), 1U);
}

// Hazard 2: what the session before made is never believed.
TEST_F(SequentialTroubleTest, ANodeOfTheSessionBeforeIsNeverBelieved) {
  next(Kind::create, Fate::hold_answer);
  const auto attempt = contend(*backend);
  const std::string old_node = own_nodes().at(0);
  ensemble.expire();
  engine.advance(1s);
  ASSERT_TRUE(attempt->grant);
  ASSERT_EQ(own_nodes().size(), 1U);
  EXPECT_NE(own_nodes()[0], old_node);
  EXPECT_EQ(ensemble.stat(own_nodes()[0]).owner, ensemble.last_session());
}

// The process was stopped: the answers are there before anything says that the session is over.
TEST_F(SequentialTroubleTest, AGrantHeardOfAfterTheSessionsDeadlineIsNoGrant) {
  const auto attempt = start(*backend);
  const std::string old_node = own_nodes().at(0);
  engine.sleep_through(11s);
  engine.advance(5s);
  ASSERT_TRUE(attempt->grant);
  EXPECT_FALSE(ensemble.exists(old_node));
  EXPECT_EQ(attempt->grant->token.value(), static_cast<std::uint64_t>(ensemble.stat(own_nodes().at(0)).created));
  EXPECT_EQ(ensemble.stat(own_nodes().at(0)).owner, ensemble.last_session());
  EXPECT_EQ(own_nodes().size(), 1U);
}

// --- Waiting ---------------------------------------------------------------------------------------------------------

TEST_F(SequentialTroubleTest, AWaiterKeepsItsPlaceAcrossADisconnection) {
  const std::string holder = put_member();
  const auto attempt = contend(*backend);
  const std::string place = own_nodes().at(0);
  ensemble.disconnect();
  engine.run();
  EXPECT_FALSE(attempt->unreachable_reports.empty());
  engine.advance(1s);
  ensemble.reconnect();
  engine.run();
  EXPECT_EQ(own_nodes().at(0), place);
  EXPECT_GT(attempt->busy_reports, 1);
  ensemble.remove(holder);
  engine.run();
  EXPECT_TRUE(attempt->grant);
}

TEST_F(SequentialTroubleTest, AHandOverMissedWhileDisconnectedIsNoticed) {
  const std::string holder = put_member();
  const auto attempt = contend(*backend);
  ensemble.disconnect();
  engine.run();
  ensemble.remove(holder);
  engine.run();
  EXPECT_FALSE(attempt->grant);
  ensemble.reconnect();
  engine.advance(100ms);
  EXPECT_TRUE(attempt->grant);
}

// The news of it comes before the answer, so that nothing may be asked when that is there.
TEST_F(SequentialTroubleTest, AWaiterGoesOnWhereTheOneBeforeItGoesAsTheConnectionBreaks) {
  const std::string holder = put_member();
  const std::string quitter = put_member();
  ensemble.fate = [&](const FakeRequest& request) {
    if (request.kind == Kind::get && request.watch != 0) {
      ensemble.fate = nullptr;
      ensemble.remove(quitter);
      ensemble.disconnect();
    }
    return Fate::answer;
  };
  const auto attempt = contend(*backend);
  engine.advance(1s);
  ensemble.reconnect();
  engine.advance(1s);
  EXPECT_FALSE(attempt->grant);
  ensemble.remove(holder);
  engine.run();
  EXPECT_TRUE(attempt->grant);
}

// Twice the same create could make a node that nobody asks for any more.
TEST_F(SequentialTroubleTest, AReconnectionRepeatsNoCreateThatIsUnderWay) {
  ensemble.keeps_unsent = true;
  ensemble.disconnect();
  const auto attempt = start(*backend);  // the backend has not heard yet
  engine.run();
  ensemble.reconnect();
  engine.run();
  EXPECT_TRUE(attempt->grant);
  EXPECT_EQ(own_nodes().size(), 1U);
}

TEST_F(SequentialTroubleTest, AWaitSurvivesTheEndOfItsSession) {
  const std::string holder = put_member();
  const auto attempt = contend(*backend);
  const std::string place = own_nodes().at(0);
  ensemble.expire();
  engine.advance(1s);
  ASSERT_EQ(own_nodes().size(), 1U);
  EXPECT_NE(own_nodes()[0], place);
  EXPECT_FALSE(attempt->failure);
  ensemble.remove(holder);
  engine.run();
  ASSERT_TRUE(attempt->grant);
  EXPECT_EQ(ensemble.stat(own_nodes().at(0)).owner, ensemble.last_session());
}

// We gave the session up before the servers did, and they keep its nodes for as long.
TEST_F(SequentialTroubleTest, APlaceOfASessionThatWasGivenUpIsNoPlaceThoughItStands) {
  const std::string holder = put_member();
  const auto attempt = contend(*backend);
  const std::string place = own_nodes().at(0);
  ensemble.disconnect();
  engine.run();
  ensemble.remove(holder);
  engine.advance(20s);  // past our deadline
  ASSERT_TRUE(attempt->grant);
  ASSERT_EQ(own_nodes().size(), 1U);
  EXPECT_NE(own_nodes()[0], place);
  EXPECT_EQ(ensemble.stat(own_nodes()[0]).owner, ensemble.last_session());
  EXPECT_EQ(attempt->grant->token.value(), static_cast<std::uint64_t>(ensemble.stat(own_nodes()[0]).created));
}

TEST_F(SequentialTroubleTest, AWaiterWhoseNodeWasRemovedQueuesAnew) {
  const std::string holder = put_member();
  const auto attempt = contend(*backend);
  ensemble.remove(own_nodes().at(0));
  const std::string other = put_member();
  ensemble.remove(holder);
  engine.advance(1s);
  EXPECT_FALSE(attempt->grant) << "somebody came before the new place";
  ASSERT_EQ(own_nodes().size(), 1U);
  ensemble.remove(other);
  engine.run();
  EXPECT_TRUE(attempt->grant);
}

TEST_F(SequentialTroubleTest, AWaiterWhoseLocksNodeWasRemovedQueuesAnew) {
  (void)put_member();
  (void)put_member();
  const auto attempt = contend(*backend);
  ensemble.remove(parent);
  engine.advance(100ms);
  EXPECT_TRUE(attempt->grant);
  EXPECT_TRUE(attempt->unreachable_reports.empty());
}

TEST_F(SequentialTroubleTest, QuestionsThatAreNotAnsweredAreAskedAgain) {
  for (const Kind kind : {Kind::children, Kind::get}) {
    for (const Fate fate : {Fate::lose_answer, Fate::lose_request, Fate::refuse}) {
      connect_anew();
      const std::string holder = put_member();
      next(kind, fate);
      const auto attempt = contend(*backend);
      engine.advance(200ms);
      EXPECT_FALSE(attempt->grant);
      next(Kind::get, fate);
      ensemble.remove(holder);
      engine.advance(500ms);
      EXPECT_TRUE(attempt->grant);
      EXPECT_EQ(own_nodes().size(), 1U);
      (void)release(*backend, *attempt);
    }
  }
}

// Of one number, only the node itself says who was first.
TEST_F(SequentialTroubleTest, AQuestionAboutTheOtherOfOurNumberIsAskedAgain) {
  const std::string twin = parent + std::string("/_c_00000000-0000-4000-8000-000000000001-lock-0000000000");
  for (const Fate fate : {Fate::lose_answer, Fate::lose_request, Fate::refuse}) {
    connect_anew();
    (void)ensemble.put(twin, "other:2:x", 77);
    ensemble.set_sequence(parent, 0);
    next(Kind::get, fate);
    const auto attempt = contend(*backend);
    engine.advance(100ms);
    EXPECT_FALSE(attempt->grant);
    ensemble.remove(twin);
    engine.run();
    EXPECT_TRUE(attempt->grant);
    (void)release(*backend, *attempt);
  }
}

TEST_F(SequentialTroubleTest, WhereTheOneBeforeUsCannotBeLookedAtItIsNotGone) {
  for (const Fate fate : {Fate::lose_answer, Fate::lose_request, Fate::refuse}) {
    connect_anew();
    const std::string holder = put_member();
    const auto attempt = contend(*backend);
    next(Kind::get, fate);
    ensemble.set_data(holder, "__REVOKE__");
    engine.advance(100ms);
    EXPECT_FALSE(attempt->grant);
    ensemble.remove(holder);
    engine.run();
    EXPECT_TRUE(attempt->grant);
    (void)release(*backend, *attempt);
  }
}

// Else it would queue behind the place that it has.
TEST_F(SequentialTroubleTest, AQuestionAboutOurOwnNodeThatIsNotAnsweredFindsNothingOut) {
  for (const Fate fate : {Fate::lose_answer, Fate::lose_request, Fate::refuse}) {
    connect_anew();
    const std::string holder = put_member();
    const auto attempt = contend(*backend);
    const std::string place = own_nodes().at(0);
    ensemble.fate = [&](const FakeRequest& request) {
      return request.kind == Kind::get && request.path == place ? fate : Fate::answer;
    };
    ensemble.remove(holder);
    engine.run();
    ensemble.fate = nullptr;
    engine.advance(100ms);
    EXPECT_TRUE(attempt->grant);
    ASSERT_EQ(own_nodes().size(), 1U);
    EXPECT_EQ(own_nodes()[0], place);
    (void)release(*backend, *attempt);
  }
}

TEST_F(SequentialTroubleTest, TroubleThatIsOverMakesNobodySlow) {
  const std::string holder = put_member();
  ensemble.fate = [left = std::make_shared<int>(9)](const FakeRequest& request) {
    return request.kind == Kind::create && --*left > 0 ? Fate::refuse : Fate::answer;
  };
  const auto attempt = contend(*backend);
  engine.advance(5s);
  ASSERT_EQ(attempt->busy_reports, 1);
  next(Kind::get, Fate::refuse);
  ensemble.remove(holder);
  engine.advance(50ms);
  EXPECT_TRUE(attempt->grant);
}

TEST_F(SequentialTroubleTest, ARequestThatTheServerPutsOffIsRepeated) {
  next(Kind::create, Fate::refuse);
  const auto attempt = contend(*backend);
  EXPECT_EQ(attempt->unreachable_reports.size(), 1U);
  engine.advance(100ms);
  EXPECT_TRUE(attempt->grant);
}

TEST_F(SequentialTroubleTest, WithoutAConnectionAWaitWaits) {
  ensemble.dialling = FakeEnsemble::Dialling::silence;
  backend = make();
  const auto attempt = contend(*backend);
  engine.advance(4s);
  EXPECT_FALSE(attempt->reported()) << "it may still be made in time";
  engine.advance(2s);
  EXPECT_FALSE(attempt->unreachable_reports.empty());
  const auto later = contend(*backend);
  EXPECT_EQ(later->unreachable_reports.size(), 1U) << "the trouble is known";
  ensemble.dialling = FakeEnsemble::Dialling::accept;
  ensemble.reconnect();
  engine.advance(1s);
  EXPECT_TRUE(attempt->grant);
}

TEST_F(SequentialTroubleTest, WhoeverComesAfterTheEndOfTheSessionHearsOfIt) {
  ensemble.dialling = FakeEnsemble::Dialling::silence;
  ensemble.expire();
  engine.run();
  const auto attempt = contend(*backend);
  ASSERT_EQ(attempt->unreachable_reports.size(), 1U);
  EXPECT_EQ(attempt->unreachable_reports[0].code, errc::unavailable);
  EXPECT_NE(attempt->unreachable_reports[0].detail.find("expired"), std::string::npos);
}

TEST_F(SequentialTroubleTest, ThoseWhoWaitedForASessionQueueInTheirOrder) {
  ensemble.dialling = FakeEnsemble::Dialling::silence;
  backend = make();
  std::vector<std::unique_ptr<Attempt>> attempts;
  for (int i = 0; i < 5; ++i) attempts.push_back(contend(*backend));
  ensemble.dialling = FakeEnsemble::Dialling::accept;
  ensemble.reconnect();
  for (const auto& attempt : attempts) {
    engine.run();
    ASSERT_TRUE(attempt->grant);
    (void)release(*backend, *attempt);
  }
}

TEST_F(SequentialTroubleTest, WithoutAConnectionATryEndsBeforeTheResponseTimeout) {
  ensemble.dialling = FakeEnsemble::Dialling::silence;
  backend = make();
  const auto attempt = contend(*backend, false);
  engine.advance(1499ms);
  EXPECT_FALSE(attempt->reported());
  engine.advance(1ms);
  ASSERT_EQ(attempt->unreachable_reports.size(), 1U);
  EXPECT_EQ(attempt->unreachable_reports[0].code, errc::unavailable);
}

TEST_F(SequentialTroubleTest, ATryIsNotDisturbedByAShortDisconnection) {
  ensemble.disconnect();
  engine.run();
  const auto attempt = contend(*backend, false);
  engine.advance(500ms);
  ensemble.reconnect();
  engine.run();
  EXPECT_TRUE(attempt->grant);
}

// At our own deadline: the questions are answered behind the news, and only that their session is over.
TEST_F(SequentialTroubleTest, ATryWhoseSessionIsGivenUpGoesOnInTheNext) {
  const std::string holder = put_member();
  (void)contend(*backend, false);
  ensemble.remove(holder);
  ensemble.fate = [](const FakeRequest&) { return Fate::hold_answer; };
  const auto attempt = contend(*backend, false);    // looks first
  while (host.losses.empty()) engine.advance(1ms);  // of the lock that the session holds
  ensemble.fate = nullptr;
  engine.advance(1s);
  EXPECT_FALSE(attempt->failure);
  EXPECT_TRUE(attempt->unreachable_reports.empty());
  EXPECT_TRUE(attempt->grant);
}

TEST_F(SequentialTroubleTest, RefusedCredentialsEndAWait) {
  ensemble.dialling = FakeEnsemble::Dialling::refuse_auth;
  backend = make();
  for (const bool wait : {true, false}) {
    const auto attempt = contend(*backend, wait);
    engine.advance(100ms);
    ASSERT_TRUE(failed(*attempt, errc::access_denied));
  }
}

// --- Refusals --------------------------------------------------------------------------------------------------------

// Hazard 11.
TEST_F(SequentialTroubleTest, ACounterThatRanOutIsRefusedAndLeavesNothing) {
  for (const std::int64_t next : {std::int64_t{2147483647}, std::int64_t{2147483648} - 65536}) {
    for (const bool wait : {true, false}) {
      connect_anew();
      ensemble.set_sequence(parent, next);
      const auto attempt = contend(*backend, wait);
      ASSERT_TRUE(failed(*attempt, errc::protocol, parent));
      EXPECT_TRUE(own_nodes().empty());
    }
  }
}

// Hazard 14.
TEST_F(SequentialTroubleTest, AForeignLayoutIsRefusedAndLeftAlone) {
  const auto foreign = ensemble.put(parent + std::string("/0e1cf9d85f6c4a498f0a1c0f0c3f1b2d__lock__"), {}, 77, true);
  for (const bool wait : {true, false}) {
    const auto attempt = contend(*backend, wait);
    ASSERT_TRUE(failed(*attempt, errc::protocol, "kazoo"));
  }
  EXPECT_TRUE(own_nodes().empty());
  EXPECT_TRUE(ensemble.exists(foreign.path));
  const auto kazoo = make("layout=kazoo");
  const auto attempt = contend(*kazoo);
  EXPECT_FALSE(attempt->failure);
  ensemble.remove(foreign.path);
  engine.run();
  EXPECT_TRUE(attempt->grant);
}

TEST_F(SequentialTroubleTest, AnUnknownChildIsIgnoredWithOneWarning) {
  (void)ensemble.put(parent + std::string("/config"));
  for (int i = 0; i < 3; ++i) {
    const auto attempt = contend(*backend);
    ASSERT_TRUE(attempt->grant);
    (void)release(*backend, *attempt);
  }
  ASSERT_EQ(host.warnings.size(), 1U);
  EXPECT_EQ(host.warnings[0].name, "lock");
  EXPECT_NE(host.warnings[0].reason.detail.find("config"), std::string::npos);
}

// Hazard 15.
TEST_F(SequentialTroubleTest, MissingRightsEndAnAcquireAndNameTheReason) {
  for (const Kind kind : {Kind::create, Kind::children}) {
    connect_anew();
    next(kind, Fate::forbid);
    const auto attempt = contend(*backend);
    ASSERT_TRUE(failed(*attempt, errc::access_denied));
    EXPECT_FALSE(attempt->failure->detail.empty());
    engine.run();
    EXPECT_TRUE(own_nodes().empty());
  }
}

TEST_F(SequentialTroubleTest, ASearchThatIsForbiddenEndsAnAcquire) {
  ensemble.fate = [lists = std::make_shared<int>(0)](const FakeRequest& request) {
    if (request.kind == Kind::create) return Fate::lose_answer;
    return request.kind == Kind::children && ++*lists == 2 ? Fate::forbid : Fate::answer;  // the first: see above
  };
  const auto attempt = contend(*backend);
  engine.advance(100ms);
  ASSERT_TRUE(failed(*attempt, errc::access_denied));
}

TEST_F(SequentialTroubleTest, ATryThatMayNotLookAtABusyLockDoesNotEnterItsQueue) {
  (void)put_member();
  (void)contend(*backend, false);
  const std::size_t before = ensemble.requests.size();
  next(Kind::children, Fate::forbid);
  const auto attempt = contend(*backend, false);
  EXPECT_TRUE(failed(*attempt, errc::access_denied));
  EXPECT_EQ(requests_since(before, Kind::create), 0U);
}

TEST_F(SequentialTroubleTest, ARefusalIsNotLaidToStrategyEphemeralWhereTheNodeIsNone) {
  ensemble.remove(parent);
  (void)ensemble.put(parent, "other", 77);
  ensemble.fate = [&](const FakeRequest& request) {
    if (request.kind == Kind::get) {
      ensemble.fate = nullptr;
      ensemble.remove(parent);
      (void)ensemble.put(parent);
    }
    return Fate::answer;
  };
  const auto attempt = contend(*backend);
  ASSERT_TRUE(failed(*attempt, errc::protocol));
  EXPECT_EQ(attempt->failure->detail.find("strategy=ephemeral"), std::string::npos) << attempt->failure->detail;
}

TEST_F(SequentialTroubleTest, ALockThatIsAnEphemeralNodeIsRefused) {
  ensemble.remove(parent);
  (void)ensemble.put(parent, "other", 77);
  const auto attempt = contend(*backend);
  ASSERT_TRUE(failed(*attempt, errc::protocol, "strategy=ephemeral"));
  EXPECT_TRUE(ensemble.exists(parent));
}

// --- Giving up -------------------------------------------------------------------------------------------------------

// Hazard 9.
TEST_F(SequentialTroubleTest, WhoeverGivesUpLeavesNothingBehind) {
  // At every moment of the way: after so many tasks of the engine.
  for (int moment = 0; moment < 12; ++moment) {
    connect_anew();
    const std::string holder = put_member();
    auto attempt = start(*backend);
    for (int i = 0; i < moment; ++i) (void)engine.run_one();
    attempt.reset();
    engine.run();
    EXPECT_TRUE(own_nodes().empty()) << "given up after " << moment;
    EXPECT_EQ(ensemble.children(parent).size(), 1U);
    ensemble.remove(holder);
  }
}

TEST_F(SequentialTroubleTest, WhoeverGivesUpWhileDisconnectedLeavesNothingBehind) {
  for (int moment = 0; moment < 12; ++moment) {
    connect_anew();
    const std::string holder = put_member();
    auto attempt = start(*backend);
    for (int i = 0; i < moment; ++i) (void)engine.run_one();
    ensemble.disconnect();
    (void)engine.run_one();
    attempt.reset();
    engine.advance(1s);
    ensemble.reconnect();
    engine.advance(1s);
    EXPECT_TRUE(own_nodes().empty()) << "given up after " << moment;
    ensemble.remove(holder);
  }
}

TEST_F(SequentialTroubleTest, ACreateThatIsAnsweredAfterGivingUpIsTakenBack) {
  for (const Fate fate : {Fate::hold_answer, Fate::lose_answer}) {
    connect_anew();
    next(Kind::create, fate);
    auto attempt = start(*backend);
    attempt.reset();
    engine.run();
    ensemble.release_answers();
    engine.advance(1s);
    EXPECT_TRUE(own_nodes().empty());
  }
}

TEST_F(SequentialTroubleTest, ACreateThatIsNotAnsweredBeforeTheSessionEndsIsTakenBack) {
  next(Kind::create, Fate::hold_answer);
  auto attempt = contend(*backend);
  attempt.reset();
  ensemble.disconnect();
  engine.advance(20s);  // past our deadline: the session is given up
  ensemble.reconnect();
  engine.advance(5s);
  EXPECT_TRUE(own_nodes().empty());
}

}  // namespace

}  // namespace dlock::zookeeper
