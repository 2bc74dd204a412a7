// What goes out together and what comes back.
#include "backends/postgres/rows/row_batch.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "row_batch_fixture.hpp"
#include "tests/simulation/postgres/array_elements.hpp"

namespace dlock::postgres {

namespace {

using Kind = RowRequest::Kind;
using Status = RowAnswer::Status;
using Words = std::vector<std::string>;

class PostgresTableBatch : public RowBatchTest {
 protected:
  PostgresTableBatch() : RowBatchTest(Strategy::table) {}
};
class PostgresOptimisticBatch : public RowBatchTest {
 protected:
  PostgresOptimisticBatch() : RowBatchTest(Strategy::optimistic) {}
};

// --- What goes out ---------------------------------------------------------------------------------------------------

std::string array(const std::string& element) {
  return text_array({element});
}

TEST_F(PostgresTableBatch, ALoneRequestIsOneStatement) {
  const auto granted = acquire("x", 1);
  engine.run();
  EXPECT_EQ(result(granted), "yes");
  EXPECT_EQ(answers[granted]->token.value(), static_cast<std::uint64_t>(rows.rows["x"].token));
  const auto released = ask(Kind::release, "x", 1);
  engine.run();
  EXPECT_EQ(result(released), "yes");
  EXPECT_EQ(said(), (Words{"acquire", "release"}));
  EXPECT_EQ(server.queries[0].commands[0].params,
            (std::vector<Parameter>{array("x"), array(owner(1)), array("host:1:test"), "{30000}", array(""), "{0}",
                                    "{0}", ""}));
  EXPECT_EQ(server.queries[1].commands[0].params,
            (std::vector<Parameter>{array("x"), array(owner(1)), "{0}", rows.channel}));
}

TEST_F(PostgresTableBatch, WhatIsAskedInOneTurnIsOneQuery) {
  for (std::uint64_t i = 0; i < 64; ++i) (void)acquire("x" + std::to_string(i), i + 1);
  engine.run();
  EXPECT_EQ(said(), Words{"acquire"});
  for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(result(i), "yes");
  EXPECT_EQ(rows.rows["x63"].owner, owner(64));
}

constexpr std::size_t one_piece = 8192;

std::size_t bytes_of(const FakeQuery& query) {
  std::size_t bytes = 0;
  for (const Command& command : query.commands) {
    for (const Parameter& parameter : command.params) bytes += parameter->size();
  }
  return bytes;
}

// 64 requests of each of two kinds for such names do not fit into one piece.
std::string long_name(std::uint64_t number) {
  return std::string(40, 'x') + std::to_string(number);
}

// Else the server could have carried out a part of it while the rest is not sent yet, and keep rows locked meanwhile.
TEST_F(PostgresTableBatch, AQueryOfSeveralCommandsIsSentInOnePiece) {
  for (std::uint64_t i = 0; i < 64; ++i) (void)acquire(long_name(i), i + 1);
  engine.run();
  server.queries.clear();
  for (std::uint64_t i = 0; i < 64; ++i) {
    (void)ask(i % 2 == 0 ? Kind::release : Kind::renew, long_name(i), i + 1);
    (void)acquire("y" + long_name(i), 100 + i);
  }
  engine.run();
  EXPECT_EQ(said(), (Words{"release", "acquire", "renew"})) << "one kind now, the others in their order";
  for (std::size_t i = 0; i < answers.size(); ++i) EXPECT_EQ(result(i), "yes") << i;

  server.queries.clear();
  for (std::uint64_t i = 0; i < 20; ++i) {
    (void)ask(Kind::release, "y" + long_name(i), 100 + i);
    (void)acquire("z" + long_name(i), 200 + i);
  }
  engine.run();
  ASSERT_EQ(server.queries.size(), 1U);
  EXPECT_LT(bytes_of(server.queries[0]), one_piece);
}

TEST_F(PostgresTableBatch, AQueryOfSeveralCommandsForShortNamesIsSentInOnePiece) {
  std::uint64_t owner = 0;
  for (int each = 40; each <= 150; each += 10) {
    server.queries.clear();
    for (int i = 0; i < each; ++i) {
      (void)ask(Kind::release, std::to_string(i), ++owner);
      (void)ask(Kind::renew, std::to_string(i), ++owner);
    }
    engine.run();
    if (each == 40) {
      EXPECT_EQ(server.queries.size(), 1U);
    }
    for (const FakeQuery& query : server.queries) {
      if (query.commands.size() == 1) continue;
      EXPECT_LT(bytes_of(query), one_piece) << each;
    }
  }
}

TEST_F(PostgresTableBatch, OfKindsThatNobodyAsksForThereIsNoQuery) {
  for (std::uint64_t i = 0; i < 64; ++i) (void)acquire(long_name(i), i + 1);
  engine.run();
  server.queries.clear();
  for (std::uint64_t i = 0; i < 64; ++i) {
    (void)ask(Kind::release, long_name(i), i + 1);
    (void)acquire("y" + long_name(i), 100 + i);
  }
  engine.run();
  EXPECT_EQ(said(), (Words{"release", "acquire"}));
}

TEST_F(PostgresTableBatch, WhereAllHaveGivenUpThereIsNoQuery) {
  reply_to("acquire", FakeReply::held());
  (void)acquire("a", 1);
  engine.run();
  (void)acquire("b", 2, 10ms);
  engine.advance(100ms);
  EXPECT_EQ(result(1), name_of(errc::unavailable));
  heal();
  server.release();
  engine.run();
  EXPECT_EQ(server.queries.size(), 1U);
}

TEST_F(PostgresTableBatch, ReleasesGoBeforeRenewalsAndRenewalsBeforeAcquires) {
  (void)acquire("x", 1);
  (void)acquire("y", 2);
  engine.run();
  server.queries.clear();
  const auto next = acquire("x", 3);
  const auto renewed = ask(Kind::renew, "y", 2);
  const auto released = ask(Kind::release, "x", 1);
  engine.run();
  EXPECT_EQ(said(), Words{"release renew acquire"});
  EXPECT_EQ(result(released), "yes");
  EXPECT_EQ(result(renewed), "yes");
  EXPECT_EQ(result(next), "yes") << "it is free by then";
}

TEST_F(PostgresTableBatch, WhatIsAskedWhileAQueryIsUnderWayGoesIntoTheNext) {
  (void)acquire("a", 1);
  engine.run();
  reply_to("acquire", FakeReply::held());
  (void)acquire("b", 2);
  engine.run();
  (void)acquire("c", 3);
  engine.run();
  (void)acquire("d", 4);
  engine.run();
  EXPECT_EQ(count("acquire"), 2U);
  heal();
  server.release();
  engine.run();
  EXPECT_EQ(said(), (Words{"acquire", "acquire", "acquire"}));
  EXPECT_EQ(result(3), "yes");
}

// Threads: each wakes up after its answer, one after the other, and asks again. A round trip takes 400 us.
class PostgresBatchOfThreads : public PostgresTableBatch {
 protected:
  PostgresBatchOfThreads() {
    next_reply = [this](const FakeQuery& query) -> std::optional<FakeReply> {
      if (!holding_ || query.purpose.word != "commands") return std::nullopt;
      return FakeReply::held();
    };
    when_answered = [this](std::size_t number) {
      ASSERT_EQ(result(number), "yes");
      const std::uint64_t caller = caller_of_.at(number);
      if (caller > callers) return;
      (void)engine.schedule(engine.now() + std::chrono::microseconds(10 * caller), [this, caller] { go_on(caller); });
    };
    for (std::uint64_t caller = 1; caller <= callers; ++caller) {
      go_on(caller);
      engine.run();
    }
  }
  // How many answers it has brought.
  std::size_t round_trip(std::chrono::nanoseconds takes = 400us) {
    const auto before = order.size();
    engine.advance(takes);
    holding_ = false;
    server.release();
    holding_ = true;
    engine.run();
    return order.size() - before;
  }

  std::uint64_t callers = 4;  // those beyond ask no more

 private:
  void go_on(std::uint64_t caller) {
    const bool held = std::exchange(holds_[caller], !holds_[caller]);
    caller_of_[ask(held ? Kind::release : Kind::acquire, "x" + std::to_string(caller), caller)] = caller;
  }

  bool holding_ = true;
  std::map<std::uint64_t, bool> holds_;
  std::map<std::size_t, std::uint64_t> caller_of_;
};

TEST_F(PostgresBatchOfThreads, ThoseWhoAskSoonAfterEachOtherGoOutTogether) {
  for (int i = 0; i < 20; ++i) (void)round_trip();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(round_trip(), 4U);
}

TEST_F(PostgresBatchOfThreads, WhoDoesNotComeBackHoldsNobodyUpForLong) {
  for (int i = 0; i < 20; ++i) (void)round_trip();
  callers = 2;
  (void)round_trip();
  server.queries.clear();
  engine.advance(100us);
  EXPECT_TRUE(server.queries.empty()) << "the others are waited for";
  engine.advance(100us);
  EXPECT_EQ(server.queries.size(), 1U) << "for half a round trip";
  EXPECT_EQ(round_trip(), 2U);
}

TEST_F(PostgresTableBatch, AskingFromAnAnswerWorks) {
  when_answered = [this](std::size_t number) {
    if (number < 4) (void)acquire("x" + std::to_string(number), 10 + number);
  };
  (void)acquire("x", 1);
  engine.run();
  EXPECT_EQ(answers.size(), 5U);
  EXPECT_EQ(result(4), "yes");
}

TEST_F(PostgresTableBatch, VeryManyAreSeveralQueries) {
  for (std::uint64_t i = 0; i < 1200; ++i) (void)acquire("x" + std::to_string(i), i + 1);
  engine.run();
  EXPECT_EQ(said(), (Words{"acquire", "acquire", "acquire"}));
  for (std::size_t i = 0; i < 1200; ++i) ASSERT_EQ(result(i), "yes");
}

TEST_F(PostgresTableBatch, NamesAreTakenAsTheyAre) {
  const Words names = {"a,b", "\"", "\\", "{}", "NULL", "' OR '1'='1", "\xc3\xa4", " "};
  for (const std::string& name : names) (void)acquire(name, 1 + answers.size());
  engine.run();
  EXPECT_EQ(said(), Words{"acquire"});
  for (const std::string& name : names) EXPECT_TRUE(rows.held(name)) << name;
  EXPECT_EQ(rows.rows.size(), names.size());
}

TEST_F(PostgresTableBatch, LeasesAreRoundedUpToMilliseconds) {
  for (const auto lease : {std::chrono::nanoseconds(1), 20ms + 1ns}) {
    batch->ask({.kind = Kind::acquire,
                .name = "x" + std::to_string(lease.count()),
                .owner = OwnerId(0, 1),
                .deadline = engine.now() + 4s,
                .lease = lease},
               [](const RowAnswer&) {});
    engine.run();
  }
  EXPECT_EQ(server.queries.at(0).param(3), "{1}");
  EXPECT_EQ(server.queries.at(1).param(3), "{21}");
}

TEST_F(PostgresOptimisticBatch, SaysWhatStoodStill) {
  rows.give_to("x", owner(9), 30s);
  const std::int64_t version = rows.rows["x"].version;
  const auto busy = acquire("x", 1);
  engine.run();
  EXPECT_EQ(result(busy), "no");
  EXPECT_EQ(answers[busy]->seen.owner, owner(9));
  EXPECT_EQ(answers[busy]->seen.version, version);
  EXPECT_EQ(answers[busy]->lease, 30s) << "how long it is, not how long it lasts";
  std::optional<RowAnswer> answer;
  batch->ask({.kind = Kind::acquire,
              .name = "x",
              .owner = OwnerId(0, 2),
              .deadline = engine.now() + 4s,
              .stood_still = answers[busy]->seen,
              .lease = 30s},
             [&](const RowAnswer& a) { answer = a; });
  engine.run();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, Status::yes);
}

TEST_F(PostgresOptimisticBatch, SaysOfManyWhatStoodStillOfEach) {
  rows.give_to("x", owner(8), 30s);
  rows.give_to("y", owner(9), 30s);
  std::map<std::string, Status> results;
  const auto take = [&](const std::string& name, std::uint64_t by, ObservedVersion seen) {
    batch->ask({.kind = Kind::acquire,
                .name = name,
                .owner = OwnerId(0, by),
                .deadline = engine.now() + 4s,
                .stood_still = std::move(seen),
                .lease = 30s},
               [&results, name](const RowAnswer& a) { results[name] = a.status; });
  };
  take("x", 1, {owner(8), rows.rows["x"].version});
  take("y", 2, {owner(9), rows.rows["y"].version - 1});
  take("z", 3, {});
  engine.run();
  EXPECT_EQ(said(), Words{"acquire"});
  EXPECT_EQ(results["x"], Status::yes);
  EXPECT_EQ(results["y"], Status::no) << "it has moved";
  EXPECT_EQ(results["z"], Status::yes);
}

// --- What comes back -------------------------------------------------------------------------------------------------

TEST_F(PostgresTableBatch, AnAnswerTellsWhenItsQueryWasSent) {
  server.dialling = FakeServer::Dialling::fail;
  (void)acquire("x", 1, 1h);
  engine.run();
  EXPECT_EQ(result(0), name_of(errc::unavailable));
  server.dialling = FakeServer::Dialling::accept;
  engine.advance(2s);
  reply_to("acquire", FakeReply::held());
  (void)acquire("x", 2);
  const TimePoint sent = engine.now();
  engine.advance(3s);
  heal();
  server.release();
  engine.run();
  EXPECT_EQ(result(1), "yes");
  EXPECT_EQ(answers[1]->sent, sent);
}

TEST_F(PostgresTableBatch, BusyTellsForHowLong) {
  rows.give_to("x", owner(9), 12s);
  (void)acquire("x", 1);
  engine.run();
  EXPECT_EQ(result(0), "no");
  EXPECT_EQ(answers[0]->lease, 12s);
  EXPECT_TRUE(answers[0]->seen.owner.empty());
}

TEST_F(PostgresTableBatch, ARowThatIsBeingChangedIsBusyOrToBeAskedForAgain) {
  (void)acquire("x", 1);
  (void)acquire("y", 2);
  engine.run();
  rows.rows["x"].locked = true;
  const auto renewed = ask(Kind::renew, "x", 1);
  const auto released = ask(Kind::release, "x", 1);
  const auto other = ask(Kind::renew, "y", 2);
  engine.run();
  EXPECT_EQ(result(renewed), "") << "it is asked again";
  EXPECT_EQ(result(released), "");
  EXPECT_EQ(result(other), "yes");
  rows.free("x");
  const auto acquired = acquire("x", 3);
  engine.run();
  EXPECT_EQ(result(acquired), "no");
  EXPECT_FALSE(answers[acquired]->lease) << "nobody knows";
}

TEST_F(PostgresTableBatch, WhatIsNotOursIsNot) {
  (void)acquire("x", 1);
  engine.run();
  const auto renewed = ask(Kind::renew, "x", 2);
  const auto never = ask(Kind::release, "nothing", 3);
  const auto released = ask(Kind::release, "x", 2);
  engine.run();
  EXPECT_EQ(result(renewed), "no");
  EXPECT_EQ(result(never), "no");
  EXPECT_EQ(result(released), "no");
  EXPECT_EQ(rows.rows["x"].owner, owner(1));
}

TEST_F(PostgresTableBatch, OwnersOfTheSameLockAreToldApart) {
  (void)acquire("x", 1);
  engine.run();
  const auto late = ask(Kind::release, "x", 7);
  const auto ours = ask(Kind::release, "x", 1);
  const auto old = ask(Kind::renew, "x", 7);
  engine.run();
  EXPECT_EQ(said().back(), "release renew");
  EXPECT_EQ(result(late), "no");
  EXPECT_EQ(result(ours), "yes");
  EXPECT_EQ(result(old), "no");
}

// --- Followers -------------------------------------------------------------------------------------------------------

TEST_F(PostgresTableBatch, ANameIsAskedForByOneOfAll) {
  for (std::uint64_t i = 1; i <= 10; ++i) (void)acquire("x", i);
  (void)acquire("y", 11);
  engine.run();
  EXPECT_EQ(said(), Words{"acquire"});
  EXPECT_EQ(result(0), "yes") << "the first";
  for (std::size_t i = 1; i < 10; ++i) {
    EXPECT_EQ(result(i), "no");
    EXPECT_EQ(answers[i]->lease, 30s);
    EXPECT_EQ(answers[i]->token.value(), 0U);
  }
  EXPECT_EQ(result(10), "yes");
}

TEST_F(PostgresOptimisticBatch, FollowersSeeWhatTheirNameWasSeenLike) {
  rows.give_to("x", owner(9), 12s);
  (void)acquire("x", 1);
  (void)acquire("x", 2);
  engine.run();
  EXPECT_EQ(result(1), "no");
  EXPECT_EQ(answers[1]->seen.owner, owner(9));
  EXPECT_EQ(answers[1]->lease, 12s);
}

TEST_F(PostgresTableBatch, FollowersShareAFailure) {
  reply_to("acquire", FakeReply::lost());
  (void)acquire("x", 1);
  (void)acquire("x", 2);
  engine.run();
  EXPECT_EQ(result(0), name_of(errc::ambiguous));
  EXPECT_EQ(result(1), name_of(errc::ambiguous));
  reply_to("acquire", FakeReply::refused("42501"));
  (void)acquire("x", 3);
  (void)acquire("x", 4);
  engine.advance(1s);
  EXPECT_EQ(result(2), name_of(errc::access_denied));
  EXPECT_EQ(result(3), name_of(errc::access_denied));
  EXPECT_EQ(count("acquire"), 2U);
}

// It may have the lock, so "busy, somebody else of us has it" would be wrong.
TEST_F(PostgresTableBatch, WhoeverMayHoldALockAsksForHimself) {
  rows.give_to("x", owner(2), 30s);
  const auto other = acquire("x", 1);
  const auto holder = ask(Kind::acquire, "x", 2, response_timeout, true);
  const auto last = acquire("x", 3);
  engine.run();
  EXPECT_EQ(said(), Words{"acquire"});
  EXPECT_EQ(result(other), "no");
  EXPECT_EQ(result(last), "no");
  EXPECT_EQ(result(holder), "yes");
}

TEST_F(PostgresTableBatch, OthersMayFollowWhoeverMayHoldALock) {
  rows.give_to("x", owner(2), 30s);
  const std::int64_t token = rows.rows["x"].token;
  const auto holder = ask(Kind::acquire, "x", 2, response_timeout, true);
  const auto other = acquire("x", 1);
  engine.run();
  EXPECT_EQ(said(), Words{"acquire"});
  EXPECT_EQ(result(holder), "yes");
  EXPECT_EQ(answers[holder]->token.value(), static_cast<std::uint64_t>(token));
  EXPECT_EQ(result(other), "no");
}

TEST_F(PostgresTableBatch, WhoeverFollowedSomebodyWhoseTimeIsOverAsksForHimself) {
  (void)acquire("a", 1);
  engine.run();
  reply_to("acquire", FakeReply::held(), 1);
  (void)acquire("b", 2, 4s);
  engine.run();
  const auto first = acquire("x", 3, 100ms);
  const auto second = acquire("x", 4, 4s);
  engine.advance(200ms);
  EXPECT_EQ(result(first), name_of(errc::unavailable)) << "it was never asked";
  EXPECT_EQ(result(second), "");
  heal();
  server.release();
  engine.run();
  EXPECT_EQ(result(second), "yes");
  EXPECT_EQ(rows.rows["x"].owner, owner(4));
}

}  // namespace

}  // namespace dlock::postgres
