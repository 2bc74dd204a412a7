// The queue while its connection comes and goes: what is asked, what is not asked twice, and who is told.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>

#include "backend_fixture.hpp"
#include "tests/unit/support/reports.hpp"

namespace dlock::zookeeper {

namespace {

class SequentialConnectionTest : public BackendTest {
 protected:
  SequentialConnectionTest() { connect_anew(); }
  void connect_anew(const std::string& query = {}) {
    backend.reset();
    backend = make(query);
    if (ensemble.exists(parent)) ensemble.remove(parent);
    (void)ensemble.put(parent);
    (void)contend(*backend, true, "warm-up");
  }

  // What is due now; answers how much is asked once the backend knows that it is disconnected.
  std::size_t run_and_count_vain_requests() {
    std::optional<std::size_t> before;
    do {
      if (!before && disconnected()) before = ensemble.requests.size();
    } while (engine.run_one());
    return before ? ensemble.requests.size() - *before : 0;
  }
};

// --- What is asked ---------------------------------------------------------------------------------------------------

// Whatever it is that a waiter asks last before it hears that the connection broke.
TEST_F(SequentialConnectionTest, WhileDisconnectedNothingIsAskedAndAfterwardsAWaiterGoesOn) {
  for (const std::string query : {"", "strategy=sequential-herd"}) {
    bool broke = true;
    for (int left = 0; broke; ++left) {
      connect_anew(query);
      // A container of a semaphore's that somebody was below until now, one before us, and another with our number.
      const std::string lease = ensemble.put(parent + std::string("/leases/_c_1-lease-"), {}, 77, true).path;
      ASSERT_TRUE(failed(*contend(*backend), errc::protocol));
      ensemble.remove(lease);
      const std::string holder = put_member();
      const std::string twin = parent + std::string("/_c_00000000-0000-4000-8000-000000000000-lock-0000000099");
      (void)ensemble.put(twin, "other:2:x", 77);
      ensemble.set_sequence(parent, 99);

      int before = left;
      break_behind([&](const FakeRequest& request) { return !is_heartbeat(request) && before-- == 0; });
      const auto attempt = start(*backend);
      std::size_t vain_requests = run_and_count_vain_requests();
      ensemble.remove(twin);
      vain_requests += run_and_count_vain_requests();
      EXPECT_FALSE(attempt->grant) << query << left;
      ensemble.remove(holder);
      vain_requests += run_and_count_vain_requests();
      EXPECT_EQ(vain_requests, 0U) << query << left;
      engine.advance(100ms);
      ensemble.reconnect();
      engine.advance(1s);
      EXPECT_TRUE(attempt->grant) << query << left;
      EXPECT_EQ(own_nodes().size(), 1U);
      EXPECT_FALSE(attempt->failure);
      broke = !std::exchange(ensemble.fate, nullptr);
    }
  }
}

// The same for the question whose the number is, which above is never next.
TEST_F(SequentialConnectionTest, WhileDisconnectedNobodyAsksWhoseTheNumberIs) {
  const std::string twin = parent + std::string("/_c_00000000-0000-4000-8000-000000000000-lock-0000000000");
  (void)ensemble.put(twin, "other:2:x", 77);
  ensemble.set_sequence(parent, 0);
  next(Kind::children, Fate::lose_answer);
  const auto attempt = contend(*backend);
  const std::size_t before = ensemble.requests.size();
  break_behind(Kind::children);
  engine.advance(100ms);
  EXPECT_EQ(requests_since(before, Kind::children), 1U);
  EXPECT_EQ(requests_since(before, Kind::get), 0U);
  ensemble.reconnect();
  engine.run();
  EXPECT_FALSE(attempt->grant);
  ensemble.remove(twin);
  engine.run();
  EXPECT_TRUE(attempt->grant);
}

TEST_F(SequentialConnectionTest, WhileDisconnectedNobodyAsksForItsOwnNodeWhereTheOneBeforeItIsGone) {
  const std::string holder = put_member();
  break_behind([&](const FakeRequest& request) {
    if (request.watch != 0) ensemble.remove(holder);
    return request.watch != 0;
  });
  const std::size_t before = ensemble.requests.size();
  const auto attempt = contend(*backend);
  EXPECT_TRUE(disconnected());
  EXPECT_EQ(requests_since(before, Kind::get), 1U);
  EXPECT_FALSE(attempt->grant);
  ensemble.reconnect();
  engine.run();
  EXPECT_TRUE(attempt->grant);
}

TEST_F(SequentialConnectionTest, WhileDisconnectedAWaiterDoesNotLookWhetherItMissedAChange) {
  for (const std::string query : {"", "strategy=sequential-herd"}) {
    connect_anew(query);
    const std::string holder = put_member();
    const auto attempt = contend(*backend);
    for (int i = 0; i < 45; ++i) {
      ensemble.disconnect();
      engine.run();
      const std::size_t before = ensemble.requests.size();
      engine.advance(1s);
      EXPECT_EQ(ensemble.requests.size(), before);
      ensemble.reconnect();
      engine.run();
    }
    EXPECT_FALSE(attempt->grant);
    ensemble.remove(holder);
    engine.run();
    EXPECT_TRUE(attempt->grant);
  }
}

// The news of it came before the answer.
TEST_F(SequentialConnectionTest, AGrantHeardOfAfterTheConnectionBrokeIsMadeSureOfFirst) {
  next(Kind::children, Fate::lose_answer);
  const auto attempt = contend(*backend);
  break_behind(Kind::children);  // alone, for our node is there
  engine.advance(1s);
  EXPECT_TRUE(disconnected());
  EXPECT_EQ(own_nodes().size(), 1U);
  EXPECT_FALSE(attempt->grant);
  ensemble.reconnect();
  engine.advance(1s);
  ASSERT_TRUE(attempt->grant);
  EXPECT_EQ(attempt->grant->token.value(), static_cast<std::uint64_t>(ensemble.stat(own_nodes().at(0)).created));
}

// A server that answers late has made a session that is old already.
TEST_F(SequentialConnectionTest, AGrantIsValidWhenItIsTold) {
  ensemble.granted = 2s;
  ensemble.answers_after = 3s;
  backend = make();
  const auto attempt = start(*backend);
  attempt->when_granted = [&] { EXPECT_GT(attempt->grant->valid_until, engine.now()); };
  engine.advance(10s);
  EXPECT_TRUE(attempt->grant);
}

// --- What is not asked twice -----------------------------------------------------------------------------------------

TEST_F(SequentialConnectionTest, ASearchThatIsAnsweredBeforeTheSessionIsReadyIsRepeatedOnce) {
  next(Kind::create, Fate::lose_answer);
  const auto attempt = contend(*backend);
  const std::size_t before = ensemble.requests.size();
  ensemble.keeps_unsent = true;
  break_behind(is_heartbeat);
  engine.advance(100ms);
  ensemble.reconnect();
  engine.run();
  EXPECT_TRUE(attempt->grant);
  EXPECT_EQ(requests_since(before, Kind::children), 3U) << "the searches, and the list once our node is found";
}

TEST_F(SequentialConnectionTest, AFirstLookThatIsAnsweredBeforeTheSessionIsReadyIsRepeatedOnce) {
  const std::string holder = put_member();
  (void)contend(*backend, false);
  ensemble.remove(holder);
  const std::size_t before = ensemble.requests.size();
  ensemble.keeps_unsent = true;
  break_behind(Kind::sync);
  const auto attempt = contend(*backend, false);
  ensemble.reconnect();
  engine.run();
  EXPECT_TRUE(attempt->grant);
  EXPECT_EQ(requests_since(before, Kind::children), 3U) << "the looks, and the list behind the create";
}

TEST_F(SequentialConnectionTest, AReconnectionSaysNothingOfAQuestionThatIsUnderWay) {
  const std::string holder = put_member();
  const auto attempt = contend(*backend);
  const std::size_t before = ensemble.requests.size();
  ensemble.keeps_unsent = true;
  ensemble.remove(holder);
  (void)engine.run_one();  // the event; what comes of it is next
  ensemble.disconnect();
  engine.run();
  ensemble.reconnect();
  engine.run();
  EXPECT_TRUE(attempt->grant);
  EXPECT_EQ(attempt->busy_reports, 1) << "before the holder went";
  EXPECT_EQ(requests_since(before, Kind::get), 2U);
}

// --- Who is told -----------------------------------------------------------------------------------------------------

TEST_F(SequentialConnectionTest, ATryWithoutAConnectionSaysWhatBrokeIt) {
  ensemble.disconnect();
  engine.run();
  const auto attempt = contend(*backend, false);
  engine.advance(2s);
  ASSERT_EQ(attempt->unreachable_reports.size(), 1U);
  EXPECT_NE(attempt->unreachable_reports[0].detail.find("fake: disconnected"), std::string::npos);
}

TEST_F(SequentialConnectionTest, NobodyHearsOfTroubleThatIsOver) {
  backend = make();
  backend->want();
  engine.run();
  ensemble.disconnect();
  engine.run();
  ensemble.reconnect();
  engine.run();
  backend->rest();
  const auto attempt = contend(*backend);
  EXPECT_TRUE(attempt->grant);
  EXPECT_TRUE(attempt->unreachable_reports.empty());
}

TEST_F(SequentialConnectionTest, WhoeverHasItsAnswerHearsOfNothingAndBeginsNothing) {
  const auto granted = contend(*backend);
  ASSERT_TRUE(granted->grant);
  const auto busy = contend(*backend, false);
  ASSERT_EQ(busy->busy_reports, 1);
  next(Kind::create, Fate::forbid);
  const auto refused = contend(*backend);
  ASSERT_TRUE(refused->failure);

  ensemble.disconnect();
  engine.advance(1s);
  ensemble.reconnect();
  engine.advance(1s);
  ensemble.expire();
  engine.advance(5s);
  EXPECT_TRUE(own_nodes().empty());
  ensemble.dialling = FakeEnsemble::Dialling::refuse_auth;
  ensemble.expire();
  engine.advance(5s);
  for (const auto* attempt : {granted.get(), busy.get(), refused.get()}) {
    EXPECT_TRUE(attempt->unreachable_reports.empty());
    EXPECT_EQ(attempt->grant.has_value(), attempt == granted.get());
    EXPECT_EQ(attempt->busy_reports, attempt == busy.get() ? 1 : 0);
    EXPECT_EQ(attempt->failure.has_value(), attempt == refused.get());
  }
}

}  // namespace

}  // namespace dlock::zookeeper
