// Locks in rows: what goes out together, what comes back, and in what time.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend_rows_fixture.hpp"

namespace dlock::postgres {

namespace {

class BackendRows : public BackendRowsTest {};
INSTANTIATE_TEST_SUITE_P(, BackendRows, testing::ValuesIn(row_strategies), name_of_strategy);

TEST_P(BackendRows, RequestsOfOneTask_ShareAQuery) {
  const Attempts attempts = contend_for(64);
  EXPECT_EQ(take_sent(), Words{"acquire"});
  for (const auto& each : attempts) give_back(*each);
  engine.run();
  EXPECT_EQ(take_sent(), Words{"release"});
  EXPECT_EQ(std::count_if(answers.begin(), answers.end(), [](const auto& each) { return each.ends_with("released"); }),
            64);
  spoil(".acquire", Fate::hold, 1);
  const auto a = acquire("a");
  const auto b = acquire("b");
  const auto c = acquire("c", true);
  EXPECT_EQ(take_sent(), Words{"acquire"});
  heal();
  engine.run();
  EXPECT_EQ(take_sent(), Words{"acquire"});
  EXPECT_TRUE(a->grant && b->grant && c->grant);
  engine.advance(5min);
  EXPECT_EQ(take_sent(), Words{});
  EXPECT_EQ(server.wire().dialled, 1) << "nobody listens where nobody waits";
}

TEST_P(BackendRows, Query_HasUpTo500Requests) {
  const Attempts attempts = contend_for(1200);
  EXPECT_EQ(sizes("acquire"), (std::vector<std::size_t>{500, 500, 200}));
  for (const auto& each : attempts) ASSERT_TRUE(each->grant);
}

// Else the server could have carried out a part of it while the rest is not sent yet, and keep rows locked meanwhile.
// Hazard: a client that stops in the middle of a query keeps rows locked
TEST_P(BackendRows, QueryOfSeveralCommands_IsSentAtOnce) {
  static constexpr std::size_t one_piece = 8192;
  const auto ask_for_many = [this](std::size_t length, int each) {
    const std::string name = std::string(length, 'x') + std::to_string(each) + "/";
    Attempts held = contend_for(2 * each, name);
    (void)take_sent();
    for (int i = 0; i < 2 * each; i += 2) {
      give_back(*held[static_cast<std::size_t>(i)]);
      held.push_back(ours->contend(name + "y" + std::to_string(i), false));
      renew(*held[static_cast<std::size_t>(i + 1)]);
    }
    engine.run();
    for (const FakeQuery* query : queries()) {
      std::size_t bytes = 0;
      for (const Command& command : query->commands) {
        for (const Parameter& parameter : command.params) bytes += parameter->size();
      }
      EXPECT_LT(query->commands.size() == 1 ? 0 : bytes, one_piece) << length << " " << each;
    }
    for (const auto& attempt : held) EXPECT_TRUE(attempt->grant);
    return take_sent();
  };
  const Words apart = {"release", "acquire", "renew"};
  EXPECT_EQ(ask_for_many(1, 10), Words{"release renew acquire"});
  EXPECT_EQ(ask_for_many(44, 64), apart) << "one kind now, the others in their order";
  for (int each = 16; each <= 40; each += 4) (void)ask_for_many(1, each);
  server.wire().info.pooled = true;
  restart();
  EXPECT_EQ(ask_for_many(1, 1), apart) << "a pooler's statements are not prepared";
}

// They wake up one after the other, and ask again soon.
TEST_P(BackendRows, CallersShortlyAfterEachOther_ShareAQuery) {
  struct Caller {
    std::unique_ptr<Attempt> attempt;
    std::chrono::nanoseconds wakes;
  };
  std::vector<Caller> callers(4);
  server.latency = 400us;
  const std::function<void(Caller&)> ask = [&](Caller& caller) {
    const auto then = [&](const std::function<void()>& step) {
      (void)engine.schedule(engine.now() + caller.wakes, step);
    };
    caller.attempt = ours->contend("x" + std::to_string(caller.wakes.count()), false);
    caller.attempt->when_granted = [&, then] {
      then([&, then] {
        ours->backend->release(*caller.attempt->grant,
                               [&, then](const ReleaseOutcome&) { then([&] { ask(caller); }); });
      });
    };
  };
  for (std::size_t i = 0; i < callers.size(); ++i) {
    callers[i].wakes = 10us * static_cast<int>(i + 1);
    ask(callers[i]);
    engine.advance(100us);
  }
  engine.advance(20ms);
  (void)take_sent();
  engine.advance(10ms);
  EXPECT_GE(queries().size(), 20U);
  for (const FakeQuery* query : queries()) {
    std::size_t requests = 0;
    for (const Command& command : query->commands) requests += FakeLockTable::columns_of(command).at(0).size();
    EXPECT_EQ(requests, 4U);
  }
}

TEST_P(BackendRows, SuspectedNames_AreSentAloneForAWhile) {
  const auto r = acquire("r");
  const auto s = acquire("s");
  refuse(".acquire", "22P05");
  refuses = [](const Command& command) { return command.params.front()->find("bad") != std::string::npos; };
  (void)take_sent();
  const auto ask_for = [this](const Words& names) {
    Attempts attempts;
    for (const std::string& name : names) attempts.push_back(ours->contend(name, false));
    engine.run();
    for (const auto& each : attempts) {
      if (!each->grant) {
        EXPECT_EQ(said(*each), "invalid");
        EXPECT_TRUE(each->request.name == "bad");
      } else {
        give_back(*each);
      }
    }
    const Words words = take_sent();
    engine.run();
    (void)take_sent();
    return words;
  };
  renew(*r);
  renew(*s);
  EXPECT_EQ(ask_for({"bad", "x"}), (Words{"renew acquire", "renew", "acquire", "acquire"})) << "of the command alone";
  EXPECT_EQ(take_answers(), (Words{"r renewed", "s renewed", "x released"}));
  EXPECT_EQ(ask_for({"bad", "x", "y"}), (Words{"acquire", "acquire"})) << "alone x was no reason";
  engine.advance(10s);
  EXPECT_EQ(ask_for({"bad", "x"}), (Words{"acquire", "acquire", "acquire"}));
  refuses = [](const Command&) { return false; };
  EXPECT_EQ(ask_for({"bad", "x"}), (Words{"acquire", "acquire"}));
  EXPECT_EQ(ask_for({"bad", "x"}), (Words{"acquire"}));
}

// Hazard: a stuck listener makes `NOTIFY` fail
TEST_P(BackendRows, NotificationQueueFull_ReleaseSucceeds) {
  Attempts held;
  for (const char* const name : {"a", "b", "c", "d"}) held.push_back(acquire(name));
  (void)take_sent();
  refuse_notifications(".release");
  give_back(*held[0]);
  give_back(*held[1]);
  engine.run();
  EXPECT_EQ(take_sent(), (Words{"release", "release"}));
  give_back(*held[2]);
  engine.run();
  EXPECT_EQ(take_sent(), Words{"release"}) << "for a while they are not refused first";
  heal();
  engine.advance(1s);
  give_back(*held[3]);
  engine.run();
  EXPECT_EQ(queries("release").at(0)->param(3), channel);
  EXPECT_EQ(take_answers(), (Words{"a released", "b released", "c released", "d released"}));
}

TEST_P(BackendRows, EachRequest_EndsByItsDeadline) {
  const auto a = ours->contend("a", false, 2s);
  const auto b = ours->contend("b", false, 10s);
  const auto c = ours->contend("c", false, 400ms);
  engine.run();
  spoil("renew", Fate::hold, 2);
  renew(*a);
  renew(*b);
  engine.run();
  renew(*c);
  engine.advance(100ms);
  EXPECT_EQ(take_answers(), Words{"c unavailable"}) << "nobody was asked";
  engine.advance(399ms);
  EXPECT_EQ(take_answers(), Words{});
  engine.advance(21ms);
  EXPECT_EQ(take_answers(), Words{"a unknown"});
  server.release_held();
  engine.run();
  EXPECT_EQ(take_answers(), Words{"b renewed"});
  EXPECT_EQ(count("renew"), 1U);
  renew(*b);
  engine.advance(2500ms);
  EXPECT_EQ(take_answers(), Words{"b unknown"}) << "after a quarter of its lease";
  heal();
  engine.advance(5s);
  EXPECT_EQ(take_answers(), Words{});
}

TEST_P(BackendRows, DeadlineOver_IsNotSentAgain) {
  const auto a = ours->contend("a", false, 400ms);
  engine.run();
  (void)take_sent();
  server.delay = [] { return 1s; };
  spoil(".renew", Fate::late, 1);
  refuse(".acquire", "22P05", 1);
  renew(*a);
  const auto x = ours->contend("x", false);
  engine.advance(2s);
  EXPECT_EQ(take_answers(), Words{"a unknown"});
  EXPECT_EQ(take_sent(), (Words{"renew acquire", "acquire"}));
  EXPECT_EQ(said(*x), "granted");
}

// Waiters mark it, for example.
TEST_P(BackendRows, RowLockedBriefly_IsTriedAgain) {
  const auto x = ours->contend("x", false, 1min);
  const auto y = acquire("y");
  for (const auto moment : {0ms, 2ms, 30ms}) {
    row("x").locked = true;
    renew(*x);
    renew(*y);
    engine.advance(moment);
    EXPECT_EQ(take_answers(), Words{"y renewed"}) << "no other lock is delayed";
    row("x").locked = false;
    engine.advance(50ms);
    EXPECT_EQ(take_answers(), Words{"x renewed"}) << moment.count();
  }
  row("x").locked = true;
  (void)take_sent();
  renew(*x);
  engine.advance(50ms);
  EXPECT_EQ(take_answers(), Words{});
  engine.advance(105ms);
  EXPECT_EQ(take_answers(), Words{"x unavailable"});
  EXPECT_EQ(take_sent(), Words(6, "renew")) << "with growing pauses";
  give_back(*x);
  engine.advance(200ms);
  EXPECT_EQ(take_answers(), Words{"x unavailable"});
  row("x").locked = false;
  engine.advance(1s);
  EXPECT_EQ(owners("x"), 0U) << "it goes on by itself";
  const auto brief = ours->contend("brief", false, 40ms);
  engine.run();
  row("brief").locked = true;
  renew(*brief);
  engine.advance(10ms);
  EXPECT_EQ(take_answers(), Words{"brief unavailable"}) << "not past its deadline";
}

// Its own transaction may be the one that is changing the row: not finished yet, or looked at by somebody.
TEST_P(BackendRows, RowBeingChanged_OutcomeStaysUnknown) {
  spoil(".acquire", Fate::lose_answer, 1);
  auto attempt = acquire("x", true);
  row("x").locked = true;
  engine.advance(2s);
  EXPECT_EQ(said(*attempt), "nothing") << "it may be its own";
  LockRequest request = attempt->request;
  attempt.reset();
  engine.advance(100ms);
  EXPECT_EQ(owners("x"), 1U);
  Attempt again;
  request.wait = false;
  again.contention = ours->backend->contend(request, again);
  engine.run();
  EXPECT_EQ(said(again), "busy") << "nothing is known of this owner any more";
  row("x").locked = false;
  engine.advance(3s);
  EXPECT_EQ(owners("x"), 0U);
}

}  // namespace

}  // namespace dlock::postgres
