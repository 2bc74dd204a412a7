// What goes out together and what comes back, with a batch that the test asks directly.
#include "backends/postgres/row_batch.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rows_fixture.hpp"

namespace dlock::postgres {

namespace {

using Kind = RowRequest::Kind;
using Status = RowAnswer::Status;
using Words = std::vector<std::string>;

class BatchTest : public RowsTest {
 protected:
  explicit BatchTest(Strategy which)
      : RowsTest(which),
        line(engine, server, row_options(which)),
        statements(which == Strategy::optimistic ? optimistic_statements("dlock", Durability::sync)
                                                 : table_statements("dlock", Durability::sync)),
        batch(std::in_place, *line.commands, statements, which == Strategy::optimistic, rows.channel) {}

  // Owners are numbers; so are requests, in the order of asking.
  std::size_t ask(Kind kind, const std::string& name, std::uint64_t owner,
                  std::chrono::nanoseconds within = response_timeout, bool may_be_held = false) {
    const std::size_t number = answers.size();
    answers.emplace_back();
    when.emplace_back();
    RowRequest request{.kind = kind,
                       .name = name,
                       .owner = OwnerId(0, owner),
                       .deadline = engine.now() + within,
                       .holder = "host:1:test",
                       .may_be_held = may_be_held,
                       .lease = 30s};
    batch->ask(std::move(request), [this, number](const RowAnswer& answer) {
      EXPECT_FALSE(answers[number]) << "answered twice: " << number;
      answers[number] = answer;
      when[number] = engine.now();
      order.push_back(number);
      if (when_answered) when_answered(number);
    });
    EXPECT_FALSE(answers[number]) << "answered inside the call";
    return number;
  }
  std::size_t acquire(const std::string& name, std::uint64_t owner,
                      std::chrono::nanoseconds within = response_timeout) {
    return ask(Kind::acquire, name, owner, within);
  }
  // "yes", "no", "again", the error's number as a word; "" while there is none.
  [[nodiscard]] std::string result(std::size_t number) const {
    const auto& answer = answers.at(number);
    if (!answer) return "";
    switch (answer->status) {
      case Status::yes:
        return "yes";
      case Status::no:
        return "no";
      case Status::again:
        return "again";
      case Status::failed:
        break;
    }
    return answer->failure.code.message();
  }
  [[nodiscard]] static std::string name_of(errc code) { return std::error_code(code).message(); }
  [[nodiscard]] static std::string owner(std::uint64_t number) { return OwnerId(0, number).to_string(); }

  CommandLine line;
  const RowStatements statements;
  std::vector<std::optional<RowAnswer>> answers;
  std::vector<TimePoint> when;
  std::vector<std::size_t> order;
  std::function<void(std::size_t)> when_answered;
  std::optional<RowBatch> batch;
};

class PostgresTableBatch : public BatchTest {
 protected:
  PostgresTableBatch() : BatchTest(Strategy::table) {}
};
class PostgresOptimisticBatch : public BatchTest {
 protected:
  PostgresOptimisticBatch() : BatchTest(Strategy::optimistic) {}
};

// --- What goes out ---------------------------------------------------------------------------------------------------

TEST_F(PostgresTableBatch, ALoneRequestIsOneStatement) {
  const auto granted = acquire("x", 1);
  engine.run();
  EXPECT_EQ(result(granted), "yes");
  EXPECT_EQ(answers[granted]->token.value(), static_cast<std::uint64_t>(rows.rows["x"].token));
  const auto released = ask(Kind::release, "x", 1);
  engine.run();
  EXPECT_EQ(result(released), "yes");
  EXPECT_EQ(said(), (Words{"acquire", "release"}));
  EXPECT_EQ(server.queries[0].commands[0].params, (std::vector<Parameter>{"x", owner(1), "host:1:test", "30000"}));
  EXPECT_EQ(server.queries[1].commands[0].params, (std::vector<Parameter>{"x", owner(1), rows.channel}));
}

TEST_F(PostgresTableBatch, WhatIsAskedInOneTurnIsOneQuery) {
  for (std::uint64_t i = 0; i < 64; ++i) (void)acquire("x" + std::to_string(i), i + 1);
  engine.run();
  EXPECT_EQ(said(), Words{"acquire_many"});
  for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(result(i), "yes");
  EXPECT_EQ(rows.rows["x63"].owner, owner(64));
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
  EXPECT_EQ(said(), Words{"release renew_many acquire"});
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
  EXPECT_EQ(said(), (Words{"acquire", "acquire", "acquire_many"}));
  EXPECT_EQ(result(3), "yes");
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
  EXPECT_EQ(said(), (Words{"acquire_many", "acquire_many", "acquire_many"}));
  for (std::size_t i = 0; i < 1200; ++i) ASSERT_EQ(result(i), "yes");
}

TEST_F(PostgresTableBatch, NamesAreTakenAsTheyAre) {
  const Words names = {"a,b", "\"", "\\", "{}", "NULL", "' OR '1'='1", "\xc3\xa4", " "};
  for (const std::string& name : names) (void)acquire(name, 1 + answers.size());
  engine.run();
  EXPECT_EQ(said(), Words{"acquire_many"});
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
  EXPECT_EQ(server.queries.at(0).param(3), "1");
  EXPECT_EQ(server.queries.at(1).param(3), "21");
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
  const auto take = [&](const std::string& name, std::uint64_t by, Sighting sighting) {
    batch->ask({.kind = Kind::acquire,
                .name = name,
                .owner = OwnerId(0, by),
                .deadline = engine.now() + 4s,
                .stood_still = std::move(sighting),
                .lease = 30s},
               [&results, name](const RowAnswer& a) { results[name] = a.status; });
  };
  take("x", 1, {owner(8), rows.rows["x"].version});
  take("y", 2, {owner(9), rows.rows["y"].version - 1});
  take("z", 3, {});
  engine.run();
  EXPECT_EQ(said(), Words{"acquire_many"});
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
  EXPECT_EQ(result(renewed), "again");
  EXPECT_EQ(result(released), "again");
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
  EXPECT_EQ(said().back(), "release_many renew_many");
  EXPECT_EQ(result(late), "no");
  EXPECT_EQ(result(ours), "yes");
  EXPECT_EQ(result(old), "no");
}

// --- Followers -------------------------------------------------------------------------------------------------------

TEST_F(PostgresTableBatch, ANameIsAskedForByOneOfAll) {
  for (std::uint64_t i = 1; i <= 10; ++i) (void)acquire("x", i);
  (void)acquire("y", 11);
  engine.run();
  EXPECT_EQ(said(), Words{"acquire_many"});
  EXPECT_EQ(elements_of(server.queries[0].param(0)), (Words{"x", "y"}));
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

TEST_F(PostgresTableBatch, FollowersShareAFailureButAreNotInDoubt) {
  reply_to("acquire", FakeReply::lost());
  (void)acquire("x", 1);
  (void)acquire("x", 2);
  engine.run();
  EXPECT_EQ(result(0), name_of(errc::ambiguous));
  EXPECT_EQ(result(1), name_of(errc::unavailable));
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
  EXPECT_EQ(said(), (Words{"acquire", "acquire"}));
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

TEST_F(PostgresTableBatch, FollowersHaveDeadlinesOfTheirOwn) {
  (void)acquire("a", 1);
  engine.run();
  reply_to("acquire", FakeReply::held());
  const auto first = acquire("x", 2, 3s);
  const auto impatient = acquire("x", 3, 100ms);
  const auto patient = acquire("x", 4, 3s);
  const TimePoint start = engine.now();
  engine.advance(1s);
  EXPECT_EQ(result(impatient), name_of(errc::unavailable)) << "it was never asked";
  EXPECT_EQ(when[impatient], start + 100ms);
  EXPECT_EQ(result(first), "");
  heal();
  server.release();
  engine.run();
  EXPECT_EQ(result(first), "yes");
  EXPECT_EQ(result(patient), "no");
}

// --- Errors ----------------------------------------------------------------------------------------------------------

// In the fake database's encoding there are no characters for the names that begin with "bad".
class Untranslatable {
 public:
  explicit Untranslatable(const FakeLockTable& rows) : rows_(rows) {}
  std::optional<FakeReply> operator()(const FakeQuery& query) const {
    for (std::size_t i = 0; i < query.commands.size(); ++i) {
      const std::string names = query.commands[i].params.at(0).value_or("");
      if (names.find("bad") != std::string::npos) return FakeReply::refused("22P05", i);
    }
    return std::nullopt;
  }

 private:
  const FakeLockTable& rows_;
};

TEST_F(PostgresTableBatch, ANameThatCannotBeFailsAlone) {
  for (std::uint64_t i = 0; i < 64; ++i) (void)acquire("x" + std::to_string(i), i + 1);
  const auto bad = acquire("bad", 100);
  for (std::uint64_t i = 64; i < 128; ++i) (void)acquire("x" + std::to_string(i), i + 1);
  next_reply = Untranslatable(rows);
  engine.run();
  for (std::size_t i = 0; i < answers.size(); ++i) {
    EXPECT_EQ(result(i), i == bad ? name_of(errc::invalid_argument) : "yes") << i;
  }
  EXPECT_LE(server.queries.size(), 2U * 8U) << "it is searched for, not everybody asked for one by one";
}

TEST_F(PostgresTableBatch, RenewalsDoNotSufferFromANameThatCannotBe) {
  for (std::uint64_t i = 0; i < 64; ++i) (void)acquire("x" + std::to_string(i), i + 1);
  engine.run();
  server.queries.clear();
  next_reply = Untranslatable(rows);
  answers.clear();
  when.clear();
  for (std::uint64_t i = 0; i < 63; ++i) (void)ask(Kind::renew, "x" + std::to_string(i), i + 1);
  const auto released = ask(Kind::release, "x63", 64);
  const auto bad = acquire("bad", 100);
  engine.run();
  for (std::size_t i = 0; i < 63; ++i) EXPECT_EQ(result(i), "yes");
  EXPECT_EQ(result(released), "yes");
  EXPECT_EQ(result(bad), name_of(errc::invalid_argument));
  EXPECT_EQ(said(), (Words{"release renew_many acquire", "release renew_many"}));
}

TEST_F(PostgresTableBatch, SeveralNamesThatCannotBeFailEach) {
  for (std::uint64_t i = 0; i < 40; ++i) {
    (void)acquire((i % 10 == 3 ? "bad" : "x") + std::to_string(i), i + 1);
  }
  const auto follower = acquire("bad3", 100);
  const auto other = acquire("x4", 101);
  next_reply = Untranslatable(rows);
  engine.run();
  for (std::size_t i = 0; i < 40; ++i) {
    EXPECT_EQ(result(i), i % 10 == 3 ? name_of(errc::invalid_argument) : "yes") << i;
  }
  EXPECT_EQ(result(follower), name_of(errc::invalid_argument));
  EXPECT_EQ(result(other), "no");
}

TEST_F(PostgresTableBatch, WhatIsAskedLaterDoesNotSufferFromTheSearch) {
  next_reply = Untranslatable(rows);
  (void)acquire("bad", 1);
  (void)acquire("x", 2);
  when_answered = [this](std::size_t number) {
    if (number == 1) (void)acquire("y", 3);
    if (number == 1) (void)acquire("z", 4);
  };
  engine.run();
  EXPECT_EQ(result(2), "yes");
  EXPECT_EQ(result(3), "yes");
  EXPECT_EQ(count("acquire_many"), 2U);
}

TEST_F(PostgresTableBatch, APermissionThatIsMissingIsReportedToAll) {
  next_reply = [](const FakeQuery&) { return FakeReply::refused("42501"); };
  for (std::uint64_t i = 0; i < 64; ++i) (void)acquire("x" + std::to_string(i), i + 1);
  engine.run();
  for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(result(i), name_of(errc::access_denied));
  EXPECT_LE(server.queries.size(), 128U);
}

TEST_F(PostgresTableBatch, WhatWasRolledBackIsTriedAgainTogether) {
  next_reply = [left = 2](const FakeQuery&) mutable -> std::optional<FakeReply> {
    if (left-- > 0) return FakeReply::refused("40001");
    return std::nullopt;
  };
  (void)acquire("x", 1);
  (void)acquire("y", 2);
  engine.advance(1s);
  EXPECT_EQ(said(), (Words{"acquire_many", "acquire_many", "acquire_many"}));
  EXPECT_EQ(result(0), "yes");
  EXPECT_EQ(result(1), "yes");
}

// Where a lock_timeout is set that we may not change (behind a pooler), somebody's open transaction can end a
// statement. Nothing was carried out, nothing is known, and nobody's wait is over.
TEST_F(PostgresTableBatch, ALockTimeoutOfTheServersIsNoAnswer) {
  next_reply = [](const FakeQuery&) { return FakeReply::refused("55P03"); };
  const auto acquired = acquire("x", 1);
  const auto renewed = ask(Kind::renew, "y", 2);
  const auto released = ask(Kind::release, "z", 3);
  engine.advance(5s);
  for (const auto number : {acquired, renewed, released}) EXPECT_EQ(result(number), name_of(errc::unavailable));
}

TEST_F(PostgresTableBatch, AnAnswerThatIsLostLeavesAllInDoubt) {
  next_reply = [](const FakeQuery&) { return FakeReply::lost(); };
  const auto acquired = acquire("x", 1);
  const auto renewed = ask(Kind::renew, "y", 2);
  const auto released = ask(Kind::release, "z", 3);
  engine.advance(5s);
  for (const auto number : {acquired, renewed, released}) EXPECT_EQ(result(number), name_of(errc::ambiguous));
  heal();
  const auto again = acquire("x", 4);
  engine.advance(1s);
  EXPECT_EQ(result(again), "yes");
}

TEST_F(PostgresTableBatch, WhatNeverWentOutIsNotInDoubt) {
  server.dialling = FakeServer::Dialling::fail;
  const auto acquired = acquire("x", 1);
  const auto released = ask(Kind::release, "z", 3);
  engine.advance(5s);
  EXPECT_EQ(result(acquired), name_of(errc::unavailable));
  EXPECT_EQ(result(released), name_of(errc::unavailable));
}

TEST_F(PostgresTableBatch, APasswordThatIsWrongIsFinal) {
  server.dialling = FakeServer::Dialling::refuse_password;
  (void)acquire("x", 1);
  (void)acquire("y", 2);
  engine.run();
  EXPECT_EQ(result(0), name_of(errc::access_denied));
  EXPECT_EQ(result(1), name_of(errc::access_denied));
  EXPECT_EQ(server.dialled, 1);
}

// --- Time ------------------------------------------------------------------------------------------------------------

TEST_F(PostgresTableBatch, EachIsAnsweredInItsOwnTime) {
  (void)acquire("a", 1);
  engine.run();
  next_reply = [](const FakeQuery&) { return FakeReply::held(); };
  const TimePoint start = engine.now();
  const auto quick = ask(Kind::renew, "a", 1, 5ms);
  const auto slow = acquire("x", 2, 3s);
  engine.run();
  const auto queued = ask(Kind::renew, "a", 1, 50ms);
  engine.advance(1s);
  EXPECT_EQ(result(quick), name_of(errc::ambiguous));
  EXPECT_LE(when[quick], start + 25ms);
  EXPECT_EQ(result(queued), name_of(errc::unavailable)) << "it was never asked";
  EXPECT_EQ(when[queued], start + 50ms);
  EXPECT_EQ(result(slow), "");
  engine.advance(3s);
  EXPECT_EQ(result(slow), name_of(errc::ambiguous));
  EXPECT_EQ(when[slow], start + 3s);
}

TEST_F(PostgresTableBatch, AnAnswerThatIsLateIsNobodysBusiness) {
  (void)acquire("a", 1);
  engine.run();
  next_reply = [](const FakeQuery&) { return FakeReply::held(); };
  const auto late = acquire("x", 2, 100ms);
  const auto follower = acquire("x", 3, 3s);
  const auto other = acquire("y", 4, 3s);
  engine.advance(1s);
  EXPECT_EQ(result(late), name_of(errc::ambiguous));
  EXPECT_EQ(result(other), "");
  heal();
  server.release();
  engine.run();
  EXPECT_EQ(result(follower), "no") << "who was late has it, and will give it back";
  EXPECT_EQ(result(other), "yes");
}

// Nobody waits for it any more, so it must not be carried out.
TEST_F(PostgresTableBatch, WhoseTimeIsOverIsNotAskedForAgain) {
  (void)acquire("a", 1);
  engine.run();
  next_reply = [](const FakeQuery&) { return FakeReply::held(); };
  const auto late = acquire("x", 2, 100ms);
  const auto bad = acquire("bad", 3, 3s);
  engine.advance(1s);
  EXPECT_EQ(result(late), name_of(errc::ambiguous));
  server.queries.clear();
  next_reply = Untranslatable(rows);
  server.release();
  engine.run();
  EXPECT_EQ(result(bad), name_of(errc::invalid_argument));
  EXPECT_FALSE(rows.rows.contains("x"));
}

TEST_F(PostgresTableBatch, WaitsForTheTablesToBeMade) {
  bool made = false;
  next_reply = [&made, this](const FakeQuery& query) -> std::optional<FakeReply> {
    if (query.purpose.word == "setup") {
      made = true;
      return FakeReply::held();
    }
    if (!made) return FakeReply::refused("42P01");
    return std::nullopt;
  };
  (void)acquire("x", 1, 1s);
  engine.run();
  (void)acquire("y", 2, 3s);
  engine.advance(1s);
  EXPECT_EQ(result(0), name_of(errc::unavailable));
  EXPECT_EQ(result(1), "yes");
}

// --- The end ---------------------------------------------------------------------------------------------------------

TEST_F(PostgresTableBatch, WhoeverIsAnsweredMayEndIt) {
  for (const bool fails : {false, true}) {
    answers.clear();
    when.clear();
    order.clear();
    next_reply = [fails](const FakeQuery&) -> std::optional<FakeReply> {
      if (fails) return FakeReply::lost();
      return std::nullopt;
    };
    (void)acquire("x", 1);
    (void)acquire("x", 2);
    (void)acquire("y", 3);
    (void)ask(Kind::renew, "z", 4);
    when_answered = [this](std::size_t) { batch.reset(); };
    engine.advance(5s);
    EXPECT_EQ(order.size(), 1U);
    batch.emplace(*line.commands, statements, false, rows.channel);
  }
}

TEST_F(PostgresTableBatch, WhoseTimeIsOverMayEndIt) {
  next_reply = [](const FakeQuery&) { return FakeReply::held(); };
  (void)acquire("x", 1, 100ms);
  (void)acquire("y", 2, 100ms);
  (void)acquire("z", 3, 4s);
  when_answered = [this](std::size_t) { batch.reset(); };
  engine.advance(5s);
  EXPECT_EQ(order.size(), 1U);
}

TEST_F(PostgresTableBatch, NothingIsAnsweredOnceItIsGone) {
  (void)acquire("x", 1);
  batch.reset();
  engine.advance(5s);
  EXPECT_TRUE(server.queries.empty());

  batch.emplace(*line.commands, statements, false, rows.channel);
  (void)acquire("x", 1);
  next_reply = [](const FakeQuery&) { return FakeReply::held(); };
  engine.run();
  (void)acquire("y", 2);
  batch.reset();
  heal();
  server.release();
  engine.advance(5s);
  EXPECT_TRUE(order.empty());
}

}  // namespace

}  // namespace dlock::postgres
