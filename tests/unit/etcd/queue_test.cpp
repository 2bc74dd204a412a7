// Places in queues: what happens to them when requests overtake each other, sessions end and answers do not come.
#include "backends/etcd/locks/queue.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend_fixture.hpp"

namespace dlock::etcd {
namespace {

using namespace std::chrono_literals;

class EtcdQueueTest : public EtcdFixture {
 protected:
  std::unique_ptr<Attempt> ask_for_permit(Backend& whose, std::uint32_t permits = 2) {
    auto attempt = std::make_unique<Attempt>();
    attempt->request = {.name = "s",
                        .owner = host.new_owner_id(),
                        .holder = "h",
                        .lease = 10s,
                        .wait = true,
                        .space = Space::semaphore,
                        .permits = permits};
    attempt->contention = whose.contend(attempt->request, *attempt);
    engine.run();
    return attempt;
  }
};

// Acquires of one lock go one after another. Those of a session that is over may still wait for their turn when the
// next one stands, and must not go together with its own: one of them that names a lease that is gone fails them all.
TEST_F(EtcdQueueTest, WhatWaitsSinceASessionThatIsOverDoesNotHarmTheNextOne) {
  (void)contend(*backend, "first");
  engine.advance(3200ms);  // a keep-alive is sent soon
  bool holds = true;
  etcd.fate = [&](std::string_view method) {
    return holds && method == method_transaction ? Fate::held : Fate::answered;
  };
  std::vector<std::unique_ptr<Attempt>> hot;
  for (int i = 0; i < 5; ++i) hot.push_back(begin(*backend, "hot"));
  engine.run();
  holds = false;
  etcd.expire_leases();
  engine.advance(200ms);
  ASSERT_EQ(etcd.grants, 2);
  std::vector<std::unique_ptr<Attempt>> others;
  for (int i = 0; i < 5; ++i) others.push_back(begin(*backend, "other/" + std::to_string(i)));
  engine.run();
  etcd.answer_held();
  engine.advance(5s);
  EXPECT_EQ(etcd.grants, 2);
  for (const auto& each : others) EXPECT_TRUE(each->grant);
  for (const auto& each : hot) {
    ASSERT_TRUE(each->grant);
    (void)release(*backend, *each);
    engine.run();
  }
  EXPECT_TRUE(etcd.keys_below("dlock/hot/").empty());
}

// The answer to a waiter's request is lost, and it finds its key when it asks again. It has waited, then, and whoever
// is behind it must be told when it enters.
TEST_F(EtcdQueueTest, WhoEntersASemaphoreByAnAnswerThatWasLostTellsTheOneBehind) {
  const auto other = make();
  const auto first = ask_for_permit(*other);
  const auto second = ask_for_permit(*other);
  (void)contend(*backend, "first");
  bool lost = false;
  etcd.fate = [&](std::string_view method) {
    return method == method_transaction && !std::exchange(lost, true) ? Fate::carried_out : Fate::answered;
  };
  const auto third = ask_for_permit(*backend);
  ASSERT_TRUE(lost);
  const auto fourth = ask_for_permit(*other);
  (void)release(*other, *first);
  engine.advance(3s);
  ASSERT_TRUE(third->grant);
  ASSERT_FALSE(fourth->grant);
  (void)release(*other, *second);
  engine.advance(1s);
  EXPECT_TRUE(fourth->grant);
}

// The first in line watches all keys of the semaphore. What was removed in the revision that it has just looked at is
// told again and again if it goes on from that one.
TEST_F(EtcdQueueTest, TheFirstInLineLooksOnceMoreWhenOneBehindItGivesUpAndThenWaits) {
  const auto first = ask_for_permit(*backend);
  const auto second = ask_for_permit(*backend);
  const auto third = ask_for_permit(*backend);
  auto fourth = ask_for_permit(*backend);
  const int before = etcd.transactions;
  fourth.reset();
  for (int i = 0; i < 1000 && engine.run_one(); ++i) {
  }
  EXPECT_LE(etcd.transactions - before, 4);
  EXPECT_FALSE(engine.run_one());
  (void)release(*backend, *second);
  EXPECT_TRUE(third->grant);
}

}  // namespace
}  // namespace dlock::etcd
