// The locks of one session: what scenarios cannot say, because it counts, compares clients or asks for more than locks.
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backend_fixture.hpp"
#include "tests/support/recording_host.hpp"

namespace dlock::zookeeper {

namespace {

using SessionLocksTest = BackendTest;

TEST_F(SessionLocksTest, LeaseLongerThanTheSession_IsRefused) {
  backend = make("session_timeout=4s");
  EXPECT_EQ(backend->capabilities().max_lease, 10s);
  EXPECT_TRUE(contend(*backend, {.name = "default", .lease = 10s})->grant);
  EXPECT_TRUE(contend(*backend, {.name = "short", .lease = 1s})->grant);
  ASSERT_TRUE(failed(*contend(*backend, {.name = "long", .lease = 5s}), errc::invalid_argument, "session_timeout"));
}

TEST_F(SessionLocksTest, ShorterSessionThanRequested_CountsAndIsWarnedOfOnce) {
  ensemble.granted = 4s;
  const auto attempt = contend(*backend);
  ASSERT_TRUE(attempt->grant);
  EXPECT_EQ(attempt->grant->lease, 4s);
  EXPECT_LE(attempt->grant->valid_until, lease_valid_until(engine.now(), 4s));
  ensemble.expire();
  engine.advance(1s);
  ASSERT_EQ(host.warnings.size(), 1U);
  EXPECT_NE(host.warnings[0].reason.detail.find("4s"), std::string::npos);
}

TEST_F(SessionLocksTest, RestingSession_HasNoConnectionThatCouldBreak) {
  (void)release(*backend, *contend(*backend));
  auto observing = backend->watch(LockKind::election, "lock", [] {});
  EXPECT_FALSE(backend->unused());
  observing.reset();
  EXPECT_TRUE(backend->unused());
  backend->rest();
  host.connections.clear();
  ensemble.dialling = Dialling::silence;
  const auto waiting = contend(*backend);
  engine.advance(6s);
  EXPECT_FALSE(waiting->unreachable_reports.empty());
  EXPECT_TRUE(host.connections.empty());
}

TEST_F(SessionLocksTest, Clients_AreSpreadOverTheHosts) {
  for (int i = 0; i < 16; ++i) (void)contend(*make({}, ",g"));
  EXPECT_EQ(std::set(ensemble.dialled_first.begin(), ensemble.dialled_first.end()).size(), 2U);
}

// Shows: known-end
TEST_F(SessionLocksTest, Lease_CountsFromWhenItsRequestWasSent) {
  (void)ensemble.put(parent);
  (void)contend(*backend, {.name = "warm-up"});
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

// A request more for each waiter would be a load that grows with its square: of permits and of a wave of readers, too.
TEST_F(SessionLocksTest, HandOver_CostsTheSameHoweverManyWait) {
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

// Hazard 13. An object of kazoo's makes its parents once, and does not find out that a server has removed them.
TEST_F(SessionLocksTest, MissingParents_AreContainersInCuratorsLayoutAndStayInKazoos) {
  for (const auto& [layout, kind] :
       {std::pair("curator", NodeKind::container), std::pair("kazoo", NodeKind::persistent)}) {
    const std::string prefix = std::string("/a/b/") + layout;
    ensemble.requests.clear();
    backend = make("prefix=" + prefix + "&layout=" + layout);
    EXPECT_TRUE(contend(*backend)->grant);
    EXPECT_TRUE(ensemble.exists(prefix + "/lock"));
    for (const FakeRequest& request : ensemble.requests) {
      if (request.kind != Kind::create || request.node == NodeKind::ephemeral_sequential) continue;
      EXPECT_EQ(request.node, kind) << layout << " " << request.path;
      EXPECT_EQ(request.data, "");
    }
  }
}

// The second lists while both holders are there, and the first, which never waits, when one of them has gone. The
// second learns of the first before it watches it, or after.
TEST_F(SessionLocksTest, ClientThatEntersAtOnce_IsNotTakenForAWaiter) {
  const std::string place = "/dlock.sem/lock";
  const Wish wish{.kind = LockKind::semaphore, .permits = 2};
  const auto others = make();
  for (const bool second_is_late : {false, true}) {
    const std::string holder = put_node(place, "-permit-of-2-");
    const std::string other_holder = put_node(place, "-permit-of-2-");
    std::unique_ptr<Attempt> second;
    ensemble.fate = [&](const FakeRequest& request) {
      if (request.kind != Kind::children || request.path != place) return Fate::answer;
      ensemble.fate = nullptr;
      if (second_is_late) next(Kind::children, Fate::hold_answer);
      second = start(*others, wish);
      ensemble.remove(holder);
      return Fate::answer;
    };
    (void)contend(*others, {.name = "connects"});
    const auto first = contend(*backend, wish);
    ASSERT_TRUE(first->grant);
    ensemble.release_answers();
    engine.run();
    ASSERT_FALSE(second->grant);
    ensemble.remove(other_holder);
    engine.run();
    ASSERT_TRUE(second->grant) << "late: " << second_is_late;
    (void)release(*others, *second);
    (void)release(*backend, *first);
  }
}

}  // namespace

}  // namespace dlock::zookeeper
