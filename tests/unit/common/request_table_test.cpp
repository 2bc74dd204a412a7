#include "backends/common/request_table.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/manual_engine.hpp"

namespace dlock::common {

namespace {

using namespace std::chrono_literals;

struct Payload {
  std::string name;
  std::function<void()> done;
};

class RequestTableTest : public testing::Test, public RequestTable<Payload>::User {
 protected:
  using Table = RequestTable<Payload>;

  Table::Entry entry(const std::string& name, std::chrono::nanoseconds deadline,
                     std::optional<std::chrono::nanoseconds> patience = std::nullopt) {
    return {.id = table->next_id(),
            .deadline = engine.now() + deadline,
            .sent = engine.now(),
            .patience = patience ? engine.now() + *patience : TimePoint::max(),
            .payload = {name, [this, name] { given_up += name; }}};
  }

  test::ManualEngine engine;
  std::optional<Table> table{std::in_place, engine, *this};
  std::string given_up;
  std::size_t sent_given_up = 0;
  int caught_up = 0;
  int unresponsive = 0;
  std::function<void()> when_catching_up = [] {};
  std::function<TimePoint()> when_unresponsive = [] { return TimePoint::max(); };

 private:
  void requests_catch_up() override {
    ++caught_up;
    when_catching_up();
  }
  TimePoint requests_unresponsive() override {
    ++unresponsive;
    return when_unresponsive();
  }
  void requests_overdue(std::vector<Table::Entry> sent, std::vector<Table::Entry> unsent) override {
    sent_given_up += sent.size();
    for (const auto& each : sent) each.payload.done();
    for (const auto& each : unsent) each.payload.done();
  }
};

TEST_F(RequestTableTest, WhatWaitsIsTakenInTheOrderInWhichItCame) {
  table->wait(entry("a", 1s));
  table->wait(entry("b", 1s));
  table->wait(entry("c", 1s));
  std::string names;
  for (const auto& each : table->take_waiting()) names += each.payload.name;
  EXPECT_EQ(names, "abc");
  EXPECT_TRUE(table->waiting().empty());
}

TEST_F(RequestTableTest, WhatWasSentIsAnsweredInOrderOrById) {
  const auto a = table->sent(entry("a", 1s)).id;
  const auto b = table->sent(entry("b", 1s)).id;
  table->sent(entry("c", 1s));
  EXPECT_EQ(table->take(b)->payload.name, "b");
  EXPECT_FALSE(table->take(b));
  EXPECT_EQ(table->take_oldest()->id, a);
  EXPECT_EQ(table->take_oldest()->payload.name, "c");
  EXPECT_FALSE(table->take_oldest());
}

TEST_F(RequestTableTest, WhatIsNotAnsweredByItsDeadlineIsGivenUpOnceAndKeepsItsPlace) {
  table->sent(entry("a", 1s));
  table->sent(entry("b", 3s));
  engine.advance(1s);
  EXPECT_EQ(given_up, "a");
  EXPECT_EQ(caught_up, 1) << "the answer might have been there";
  engine.advance(1s);
  EXPECT_EQ(given_up, "a");
  EXPECT_EQ(table->under_way().size(), 2U);
  EXPECT_FALSE(table->under_way().front().payload.done);
  EXPECT_EQ(unresponsive, 0);
}

TEST_F(RequestTableTest, AnAnswerThatHadArrivedIsNoLongerOverdue) {
  when_catching_up = [this] { (void)table->take_oldest(); };
  table->sent(entry("a", 1s));
  engine.sleep_through(1h);
  EXPECT_EQ(given_up, "");
}

TEST_F(RequestTableTest, WhatWaitsForTheConnectionIsGivenUpAndGone) {
  table->wait(entry("a", 1s));
  table->wait(entry("b", 2s));
  engine.advance(1s);
  EXPECT_EQ(given_up, "a");
  EXPECT_EQ(table->waiting().size(), 1U);
  EXPECT_EQ(sent_given_up, 0U);
  EXPECT_EQ(caught_up, 0) << "nothing was asked";
}

TEST_F(RequestTableTest, ALaterDeadlineDoesNotHideAnEarlierOne) {
  table->sent(entry("a", 3s));
  table->sent(entry("b", 1s));
  table->wait(entry("c", 2s));
  engine.advance(1s);
  EXPECT_EQ(given_up, "b");
  engine.advance(1s);
  EXPECT_EQ(given_up, "bc");
  engine.advance(1s);
  EXPECT_EQ(given_up, "bca");
}

TEST_F(RequestTableTest, TheOldestRequestsPatienceIsTheConnections) {
  table->sent(entry("a", 1h, 2s));
  table->sent(entry("b", 1h, 3s));
  engine.advance(1999ms);
  EXPECT_EQ(unresponsive, 0);
  engine.advance(1ms);
  EXPECT_EQ(unresponsive, 1);
}

TEST_F(RequestTableTest, AConnectionThatIsKeptAllTheSameIsJudgedAgainThen) {
  const TimePoint kept_until = engine.now() + 10s;
  when_unresponsive = [&] { return engine.now() < kept_until ? kept_until : TimePoint::max(); };
  table->sent(entry("a", 1h, 2s));
  engine.advance(2s);
  EXPECT_EQ(unresponsive, 1);
  engine.advance(7s);
  EXPECT_EQ(unresponsive, 1);
  engine.advance(1s);
  EXPECT_EQ(unresponsive, 2);
}

TEST_F(RequestTableTest, NobodyHearsOfWhatIsNotWantedAnyMore) {
  const auto waiting = entry("a", 1s);
  const auto id = waiting.id;
  table->wait(waiting);
  const auto sent = table->sent(entry("b", 1s)).id;
  EXPECT_TRUE(table->withdraw(id)) << "it was not sent";
  EXPECT_FALSE(table->withdraw(sent));
  EXPECT_FALSE(table->withdraw(12345));
  engine.advance(1h);
  EXPECT_EQ(given_up, "");
  EXPECT_EQ(table->under_way().size(), 1U);
}

TEST_F(RequestTableTest, WhatIsForgottenIsNotGivenUp) {
  table->wait(entry("a", 1s));
  table->sent(entry("b", 1s, 1s));
  table->clear();
  engine.advance(1h);
  EXPECT_EQ(given_up, "");
  EXPECT_EQ(unresponsive, 0);
  table->wait(entry("c", 1s));
  engine.advance(1s);
  EXPECT_EQ(given_up, "c") << "it can be used again";
}

TEST_F(RequestTableTest, WhoeverIsToldMayEndIt) {
  for (int what = 0; what < 3; ++what) {
    table.emplace(engine, *this);
    when_catching_up = [&, what] {
      if (what == 0) table.reset();
    };
    when_unresponsive = [&, what] {
      if (what == 1) table.reset();
      return TimePoint::max();
    };
    table->sent({.id = table->next_id(),
                 .deadline = engine.now() + 1s,
                 .patience = engine.now() + 1s,
                 .payload = {"a", [&, what] {
                               if (what == 2) table.reset();
                             }}});
    engine.advance(1h);
    EXPECT_FALSE(table);
  }
}

}  // namespace

}  // namespace dlock::common
