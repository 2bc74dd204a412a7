// The queue: what scenarios cannot say, because it counts, compares clients or asks for more than locks. The others are
// in queue_scenarios_test.cpp.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend_fixture.hpp"
#include "tests/support/reports.hpp"

namespace dlock::zookeeper {

namespace {

using SequentialTest = BackendTest;

TEST_F(SequentialTest, ReadWriteLocksAndSemaphores_AreOfTheQueueWhoseWaitersWatchOneNode) {
  for (const auto& [query, has_them] :
       {std::pair("", true), std::pair("strategy=sequential-herd", false), std::pair("strategy=ephemeral", false)}) {
    const Capabilities can = make(query)->capabilities();
    EXPECT_EQ(can.read_write_locks, has_them) << query;
    EXPECT_EQ(can.semaphores, has_them) << query;
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

// Of locks, permits and a wave of readers: a request more for each would be a load that grows with its square.
TEST_F(SequentialTest, AHandOverCostsTheSameHoweverManyWait) {
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
      for (const auto& attempt : attempts) {
        EXPECT_TRUE(attempt->grant);
        if (attempt->grant) (void)release(*backend, *attempt);
      }
      return (ensemble.requests.size() - before) / static_cast<std::size_t>(waiters);
    };
    EXPECT_LE(cost(60), cost(10) + 1);
  }
}

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

// The second looks while both holders are there, and the first, which never waits, when one of them has gone. The
// second hears of the first before it watches it, or after.
TEST_F(SequentialTest, OneWhoEntersAtOnceIsNotTakenForAWaiter) {
  const std::string place = "/dlock.sem/lock";
  const Wish wish{.kind = LockKind::semaphore, .permits = 2};
  const auto others = make();
  for (const bool second_is_late : {false, true}) {
    const std::string holder = put_node(place, "-permit-of-2-");
    const std::string other_holder = put_node(place, "-permit-of-2-");
    std::unique_ptr<Attempt> second;
    ensemble.fate = [&](const FakeRequest& request) {
      if (request.kind != Kind::children || request.path != place) return Fate::answer;
      if (second_is_late) {
        next(Kind::children, Fate::hold_answer);
      } else {
        ensemble.fate = nullptr;
      }
      second = start(*others, wish);
      ensemble.remove(holder);
      return Fate::answer;
    };
    (void)contend(*others, true, "connects");
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

TEST_F(SequentialTest, QuestionsAboutASemaphoreAreRefusedAndNothingOfItIsBroken) {
  const std::string theirs = ensemble.put(parent + std::string("/leases/_c_1-lease-0000000001"), {}, 77).path;
  for (const std::string query : {"", "layout=kazoo", "strategy=sequential-herd"}) {
    backend = make(query);
    std::optional<Result<LockInfo>> info;
    backend->inspect(LockKind::lock, "lock", [&](Result<LockInfo> result) { info = std::move(result); });
    std::optional<Result<bool>> broken;
    backend->break_lock(LockKind::lock, "lock", [&](Result<bool> result) { broken = std::move(result); });
    std::optional<Result<std::vector<LockInfo>>> infos;
    backend->list(LockKind::lock, [&](Result<std::vector<LockInfo>> result) { infos = std::move(result); });
    engine.run();
    ASSERT_TRUE(info && !info->ok() && broken && !broken->ok());
    EXPECT_EQ(info->failure().code, errc::protocol);
    EXPECT_EQ(broken->failure().code, errc::protocol);
    ASSERT_TRUE(infos && infos->ok());
    EXPECT_TRUE(infos->value().empty());
  }
  EXPECT_TRUE(ensemble.exists(theirs));
}

TEST_F(SequentialTest, QuestionsAreAnsweredBesideWhatASemaphoreLeavesBehind) {
  (void)ensemble.put(std::string(parent) + "/leases");
  const auto ask = [&] {
    std::optional<Result<LockInfo>> info;
    backend->inspect(LockKind::lock, "lock", [&](Result<LockInfo> result) { info = std::move(result); });
    engine.run();
    return info.value().value();
  };
  EXPECT_FALSE(ask().held);
  (void)put_member();
  (void)put_member();
  EXPECT_TRUE(ask().held);
  EXPECT_EQ(ask().waiters, 1U);
}

}  // namespace

}  // namespace dlock::zookeeper
