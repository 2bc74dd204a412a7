// The requests of one connection, and the bytes that wait to be sent.
#include "backends/common/request_table.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "backends/common/send_buffer.hpp"
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
            .payload = {name, [this, name] {
                          given_up += name;
                          if (when_given_up) when_given_up();
                        }}};
  }

  test::ManualEngine engine;
  std::optional<Table> table{std::in_place, engine, *this};
  std::string given_up;
  std::size_t sent_given_up = 0;
  int caught_up = 0;
  int unresponsive = 0;
  std::function<void()> when_given_up;
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

TEST_F(RequestTableTest, Requests_AreSentInOrderAndAnsweredInOrderOrById) {
  for (const char* name : {"a", "b", "c"}) table->wait(entry(name, 1s));
  std::string names;
  for (const auto& each : table->take_waiting()) names += each.payload.name;
  EXPECT_EQ(names, "abc");
  EXPECT_TRUE(table->waiting().empty());
  const auto a = table->sent(entry("a", 1s)).id;
  const auto b = table->sent(entry("b", 1s)).id;
  table->sent(entry("c", 1s));
  EXPECT_EQ(table->take(b)->payload.name, "b");
  EXPECT_FALSE(table->take(b));
  EXPECT_EQ(table->take_oldest()->id, a);
  EXPECT_EQ(table->take_oldest()->payload.name, "c");
  EXPECT_FALSE(table->take_oldest());
}

TEST_F(RequestTableTest, Deadline_EndsEachRequestOnce) {
  table->sent(entry("a", 3s));
  table->sent(entry("b", 1s));
  table->wait(entry("c", 2s));
  engine.advance(1s);
  EXPECT_EQ(given_up, "b");
  EXPECT_EQ(caught_up, 1) << "the answer might have been there";
  EXPECT_EQ(table->under_way().size(), 2U) << "its answer may still come";
  engine.advance(1s);
  EXPECT_EQ(given_up, "bc");
  EXPECT_TRUE(table->waiting().empty());
  EXPECT_EQ(sent_given_up, 1U);
  engine.advance(1s);
  EXPECT_EQ(given_up, "bca");
  EXPECT_FALSE(table->under_way().front().payload.done);
  engine.advance(1h);
  EXPECT_EQ(given_up, "bca");
  EXPECT_EQ(unresponsive, 0);
}

TEST_F(RequestTableTest, DeadlineOfARequestThatWaits_ReadsNoAnswers) {
  table->wait(entry("a", 1s));
  table->wait(entry("b", 2s));
  engine.advance(1s);
  EXPECT_EQ(given_up, "a");
  EXPECT_EQ(table->waiting().size(), 1U);
  EXPECT_EQ(caught_up, 0);
}

TEST_F(RequestTableTest, AnswerThatArrivedDuringASuspension_Counts) {
  when_catching_up = [this] { (void)table->take_oldest(); };
  table->sent(entry("a", 1s));
  engine.sleep_through(1h);
  EXPECT_EQ(given_up, "");
}

TEST_F(RequestTableTest, PatienceOfTheOldestRequest_IsTheConnections) {
  const TimePoint kept_until = engine.now() + 10s;
  when_unresponsive = [&] { return engine.now() < kept_until ? kept_until : TimePoint::max(); };
  table->sent(entry("a", 1h, 2s));
  table->sent(entry("b", 1h, 3s));
  engine.advance(1999ms);
  EXPECT_EQ(unresponsive, 0);
  engine.advance(1ms);
  EXPECT_EQ(unresponsive, 1);
  engine.advance(7s);
  EXPECT_EQ(unresponsive, 1) << "it is kept all the same";
  engine.advance(1s);
  EXPECT_EQ(unresponsive, 2);
}

TEST_F(RequestTableTest, WithdrawnAndClearedRequests_AreNotGivenUp) {
  const auto waiting = entry("a", 1s);
  const auto id = waiting.id;
  table->wait(waiting);
  const auto sent = table->sent(entry("b", 1s)).id;
  EXPECT_TRUE(table->withdraw(id)) << "it was not sent";
  EXPECT_FALSE(table->withdraw(sent));
  EXPECT_FALSE(table->withdraw(12345));
  engine.advance(1h);
  EXPECT_EQ(table->under_way().size(), 1U);
  table->wait(entry("c", 1s));
  table->sent(entry("d", 1s, 1s));
  table->clear();
  engine.advance(1h);
  EXPECT_EQ(given_up, "");
  EXPECT_EQ(unresponsive, 0);
  table->wait(entry("e", 1s));
  engine.advance(1s);
  EXPECT_EQ(given_up, "e") << "it can be used again";
}

TEST_F(RequestTableTest, Callee_MayDestroyTheTable) {
  for (int what = 0; what < 3; ++what) {
    table.emplace(engine, *this);
    const auto end_if = [&, what](int number) {
      if (what == number) table.reset();
    };
    when_catching_up = [=] { end_if(0); };
    when_unresponsive = [=] {
      end_if(1);
      return TimePoint::max();
    };
    when_given_up = [=] { end_if(2); };
    table->sent(entry("a", 1s, 1s));
    engine.advance(1h);
    EXPECT_FALSE(table);
  }
}

// --- Bytes that wait to be sent --------------------------------------------------------------------------------------

constexpr std::size_t much = std::size_t{1} << 20;

TEST(SendBuffer, Bytes_LeaveInOrder) {
  SendBuffer buffer;
  std::string taken;
  std::string all;
  for (int i = 0; i < 100; ++i) {
    all += std::to_string(i);
    buffer.end() += std::to_string(i);
    const std::size_t count = buffer.size() / 2;
    taken += buffer.bytes().substr(0, count);
    buffer.remove(count);
  }
  taken += buffer.bytes();
  EXPECT_EQ(taken, all);
}

TEST(SendBuffer, Memory_FollowsTheBacklog) {
  SendBuffer buffer;
  buffer.end() += std::string(much / 16, 'x');
  for (int i = 0; i < 1000; ++i) {
    buffer.end() += std::string(much / 64, 'x');
    buffer.remove(much / 64);
    ASSERT_LE(buffer.capacity(), much) << "after " << i << " rounds";
  }
  EXPECT_EQ(buffer.size(), much / 16);
  for (const std::size_t left : {1U, 0U}) {
    buffer.end() += std::string(much, 'x');
    buffer.remove(buffer.size() - left);
    EXPECT_LE(buffer.capacity(), most_kept_bytes);
  }
  SendBuffer small;
  small.end() += std::string(1000, 'x');
  small.remove(1000);
  EXPECT_GE(small.capacity(), 1000U) << "kept for the next request";
}

}  // namespace
}  // namespace dlock::common
