// One acquire: how many requests it costs, what it is told, and when it is over.
#include "backends/etcd/locks/queue_contention.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "backend_fixture.hpp"

namespace dlock::etcd {
namespace {

using namespace std::chrono_literals;

class EtcdContentionTest : public EtcdFixture {
 protected:
  // The session stands.
  void SetUp() override { (void)release(*backend, *contend(*backend, "first")); }

  // Carried out since it was asked last.
  int transactions() { return etcd.transactions - std::exchange(counted_, etcd.transactions); }

  const GrpcStatus for_now{.code = 8, .message = "etcdserver: too many requests"};
  const GrpcStatus for_good{.code = 7, .message = "etcdserver: permission denied"};

 private:
  int counted_ = 0;
};

// --- What it costs ---------------------------------------------------------------------------------------------------

TEST_F(EtcdContentionTest, ATryOfASemaphoreWritesOnlyWhereThereIsAPermit) {
  (void)transactions();
  EXPECT_TRUE(ask_for_permit(*backend)->grant);
  EXPECT_EQ(transactions(), 1);
  EXPECT_TRUE(ask_for_permit(*backend, false)->grant);
  EXPECT_EQ(transactions(), 2);
  const auto busy = ask_for_permit(*backend, false);
  EXPECT_EQ(busy->busy_reports, 1);
  EXPECT_EQ(transactions(), 1);
}

TEST_F(EtcdContentionTest, TheFirstInLineForAPermitIsNotConcernedWithThoseThatCome) {
  const auto first = ask_for_permit(*backend);
  const auto second = ask_for_permit(*backend);
  const auto third = ask_for_permit(*backend);
  (void)transactions();
  const auto fourth = ask_for_permit(*backend);
  EXPECT_EQ(transactions(), 1);
}

// --- What overtakes it -----------------------------------------------------------------------------------------------

TEST_F(EtcdContentionTest, OfTwoTriesForTheLastPermitOneGetsItAndTheOtherLeavesNothing) {
  const auto other = make();
  const auto holder = ask_for_permit(*other);
  const auto one = begin_for_permit(*backend, false);
  const auto two = begin_for_permit(*other, false);
  engine.run();
  EXPECT_NE(one->grant.has_value(), two->grant.has_value());
  EXPECT_EQ(one->busy_reports + two->busy_reports, 1);
  EXPECT_EQ(etcd.keys_below("dlock.sem/").size(), 2U);
}

TEST_F(EtcdContentionTest, AnAnswerThatComesAfterTheEndOfTheSessionIsOfNoInterest) {
  engine.advance(3200ms);  // a keep-alive is sent soon
  etcd.treat_next(method_transaction, Fate::held);
  const auto attempt = contend(*backend, "a", false);
  etcd.expire_leases();
  engine.advance(500ms);
  ASSERT_EQ(etcd.grants, 2);
  ASSERT_TRUE(attempt->grant);
  etcd.answer_held();  // which would be another grant
  engine.run();
  EXPECT_EQ(etcd.keys_below("dlock/a/").size(), 1U);
}

// It might be over before its user knows of it. The session is heard of again right after that.
TEST_F(EtcdContentionTest, AtTheEndOfTheSessionNothingIsGranted) {
  backend = make("session_ttl=4s");
  const auto other = contend(*backend, "other");
  etcd.holds_keep_alives = true;
  engine.advance(other->grant->valid_until - engine.now() - 500ms);
  etcd.treat_next(method_transaction, Fate::held);
  const auto attempt = contend(*backend);
  engine.advance(other->grant->valid_until - engine.now() - 3ms);
  etcd.holds_keep_alives = false;
  etcd.answer_held();
  engine.run();
  EXPECT_FALSE(attempt->grant);
  engine.advance(1s);
  ASSERT_TRUE(attempt->grant);
  EXPECT_GT(attempt->grant->valid_until, engine.now());
}

TEST_F(EtcdContentionTest, NothingIsGrantedOnceTheSessionIsClosed) {
  etcd.treat_next(method_transaction, Fate::held);
  const auto attempt = contend(*backend);
  backend->close([] {});
  etcd.answer_held();
  engine.run();
  EXPECT_FALSE(attempt->grant);
}

TEST_F(EtcdContentionTest, AKeyThatIsRemovedBeforeItsPermitIsTakenIsMadeAnew) {
  const auto other = make();
  const auto first = ask_for_permit(*other);
  const auto second = ask_for_permit(*other);
  const auto third = ask_for_permit(*backend);
  const std::string key =
      std::ranges::max_element(etcd.keys, {}, [](const auto& each) { return each.second.created; })->first;
  // After the release and the look.
  etcd.fate = [this, &key, met = 0](std::string_view method) mutable {
    if (method == method_transaction && ++met == 3) etcd.remove(key);
    return Fate::answered;
  };
  (void)release(*other, *first);
  engine.run();
  ASSERT_TRUE(third->grant);
  EXPECT_TRUE(etcd.keys.contains(key));
  EXPECT_TRUE(host.losses.empty());
}

TEST_F(EtcdContentionTest, APermitThatIsTakenTwiceForALostAnswerIsNotInDoubt) {
  const auto other = make();
  const auto first = ask_for_permit(*other);
  const auto second = ask_for_permit(*other);
  const auto third = ask_for_permit(*backend);
  etcd.fate = [met = 0](std::string_view method) mutable {
    return method == method_transaction && ++met == 3 ? Fate::carried_out : Fate::answered;
  };
  (void)release(*other, *first);
  engine.advance(4s);
  ASSERT_TRUE(third->grant);
  (void)release(*backend, *third);
  EXPECT_TRUE(std::ranges::none_of(etcd.keys, [](const auto& each) { return each.first.starts_with("dlock/.gone/"); }));
}

TEST_F(EtcdContentionTest, WhatAnEventThatWasLostWouldHaveSaidIsAskedForOnceInAWhile) {
  const auto other = make();
  const auto holder = contend(*other);
  const auto waiter = contend(*backend);
  etcd.holds_news = true;
  (void)release(*other, *holder);
  engine.advance(19s);
  EXPECT_FALSE(waiter->grant);
  engine.advance(21s);
  EXPECT_TRUE(waiter->grant);
}

// --- What it is told -------------------------------------------------------------------------------------------------

TEST_F(EtcdContentionTest, AWaiterIsToldWhenTheConnectionBreaksAndAHolderIsNot) {
  const auto holder = contend(*backend);
  const auto waiter = contend(*backend);
  etcd.break_connections();
  EXPECT_EQ(waiter->unreachable_reports.size(), 1U);
  EXPECT_TRUE(holder->unreachable_reports.empty());
  const int before = waiter->busy_reports;
  engine.advance(1s);
  EXPECT_GT(waiter->busy_reports, before);
}

TEST_F(EtcdContentionTest, AWaiterIsNotToldOfWhatOnlyTakesItsTime) {
  backend = make();
  etcd.silent = true;
  const auto waiter = contend(*backend);
  engine.advance(1900ms);
  EXPECT_TRUE(waiter->unreachable_reports.empty());
}

TEST_F(EtcdContentionTest, ATryOutlastsAConnectionThatIsBackInAMoment) {
  etcd.refuses = true;
  etcd.break_connections();
  engine.run();
  const auto attempt = contend(*backend, "a", false);
  etcd.refuses = false;
  engine.advance(1400ms);
  EXPECT_TRUE(attempt->unreachable_reports.empty());
  EXPECT_TRUE(attempt->grant);
}

TEST_F(EtcdContentionTest, WhatIsRefusedForNowIsToldAndAWaiterAsksAgain) {
  etcd.refuse_next(method_transaction, for_now);
  const auto waiter = contend(*backend);
  EXPECT_EQ(waiter->unreachable_reports.size(), 1U);
  engine.advance(100ms);
  EXPECT_TRUE(waiter->grant);
  etcd.refuse_next(method_transaction, for_now);
  const auto attempt = contend(*backend, "b", false);
  ASSERT_TRUE(attempt->failure);
  EXPECT_EQ(attempt->failure->code, errc::unavailable);
  engine.advance(1s);
  EXPECT_FALSE(attempt->grant);
}

TEST_F(EtcdContentionTest, WhatWasAnsweredBetweenTwoRefusalsMakesThePauseShortAgain) {
  const auto holder = contend(*backend);
  etcd.status = [this](std::string_view method) { return method == method_transaction ? for_now : GrpcStatus{}; };
  const auto waiter = contend(*backend);
  engine.advance(4s);
  etcd.status = nullptr;
  engine.advance(2s);
  ASSERT_GT(waiter->busy_reports, 0);
  const int before = waiter->busy_reports;
  etcd.status = [this](std::string_view method) { return method == method_transaction ? for_now : GrpcStatus{}; };
  etcd.compact();  // it looks
  engine.run();
  etcd.status = nullptr;
  EXPECT_EQ(waiter->busy_reports, before);
  engine.advance(20ms);
  EXPECT_GT(waiter->busy_reports, before);
}

// --- The end ---------------------------------------------------------------------------------------------------------

TEST_F(EtcdContentionTest, AnAcquireThatIsRefusedForGoodLeavesNothingToDo) {
  (void)transactions();
  etcd.refuse_next(method_transaction, for_good);
  const auto attempt = contend(*backend);
  ASSERT_TRUE(attempt->failure);
  EXPECT_EQ(attempt->failure->code, errc::access_denied);
  engine.run();
  EXPECT_EQ(transactions(), 0);
}

TEST_F(EtcdContentionTest, AWaiterThatIsRefusedForGoodGivesUpItsPlaceAndTakesNoOther) {
  const auto other = make();
  const auto holder = contend(*other);
  const auto waiter = contend(*backend);
  etcd.refuse_next(method_transaction, for_good);
  etcd.compact();  // it looks
  engine.run();
  ASSERT_TRUE(waiter->failure);
  EXPECT_EQ(etcd.keys_below("dlock/a/").size(), 1U);
  etcd.expire_leases();
  engine.advance(10s);
  EXPECT_TRUE(etcd.keys_below("dlock/a/").empty());
}

TEST_F(EtcdContentionTest, ATryThatFoundTheLockBusyTakesNoPlaceLater) {
  const auto other = make();
  const auto holder = contend(*other);
  const auto attempt = contend(*backend, "a", false);
  ASSERT_EQ(attempt->busy_reports, 1);
  etcd.expire_leases();
  engine.advance(10s);
  EXPECT_FALSE(attempt->grant);
  EXPECT_TRUE(attempt->unreachable_reports.empty());
  EXPECT_EQ(attempt->busy_reports, 1);
}

}  // namespace
}  // namespace dlock::etcd
