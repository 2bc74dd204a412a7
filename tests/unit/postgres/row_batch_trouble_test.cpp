// Errors, lost answers and time, with a batch of the row strategies.
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "backends/postgres/sql/identifier.hpp"
#include "row_batch_fixture.hpp"

namespace dlock::postgres {

namespace {

using Kind = RowRequest::Kind;
using Status = RowAnswer::Status;
using Words = std::vector<std::string>;

class PostgresBatchTrouble : public RowBatchTest {
 protected:
  PostgresBatchTrouble() : RowBatchTest(Strategy::table) {}
};

// --- Errors ----------------------------------------------------------------------------------------------------------

// In the fake database's encoding there are no characters for the names that begin with "bad".
struct Untranslatable {
  std::optional<FakeReply> operator()(const FakeQuery& query) const {
    for (std::size_t i = 0; i < query.commands.size(); ++i) {
      const std::string names = query.commands[i].params.at(0).value_or("");
      if (names.find("bad") != std::string::npos) return FakeReply::refused("22P05", i);
    }
    return std::nullopt;
  }
};

TEST_F(PostgresBatchTrouble, SeveralNamesThatCannotBeFailEach) {
  for (std::uint64_t i = 0; i < 40; ++i) {
    (void)acquire((i % 10 == 3 ? "bad" : "x") + std::to_string(i), i + 1);
  }
  const auto follower = acquire("bad3", 100);
  const auto other = acquire("x4", 101);
  next_reply = Untranslatable();
  engine.run();
  for (std::size_t i = 0; i < 40; ++i) {
    EXPECT_EQ(result(i), i % 10 == 3 ? name_of(errc::invalid_argument) : "yes") << i;
  }
  EXPECT_EQ(result(follower), name_of(errc::invalid_argument));
  EXPECT_EQ(result(other), "no");
}

// A queue of notifications that is full refuses the commit of whatever notifies.
struct NobodyCanBeNotified {
  std::optional<FakeReply> operator()(const FakeQuery& query) const {
    for (const Command& command : query.commands) {
      if (command.params.back() == channel_of("dlock")) return FakeReply::refused("54000", query.commands.size());
    }
    return std::nullopt;
  }
};

TEST_F(PostgresBatchTrouble, WhereNobodyCanBeNotifiedLocksAreReleasedAllTheSame) {
  for (std::uint64_t i = 0; i < 4; ++i) (void)acquire("x" + std::to_string(i), i + 1);
  engine.run();
  server.queries.clear();
  next_reply = NobodyCanBeNotified();
  const auto renewed = ask(Kind::renew, "x0", 1);
  const auto released = ask(Kind::release, "x1", 2);
  const auto other = ask(Kind::release, "x2", 3);
  const auto acquired = acquire("y", 9);
  engine.run();
  for (const auto number : {renewed, released, other, acquired}) EXPECT_EQ(result(number), "yes") << number;
  EXPECT_EQ(server.queries.size(), 2U);
  // For a while they are not refused first.
  const auto later = ask(Kind::release, "x3", 4);
  engine.run();
  EXPECT_EQ(result(later), "yes");
  EXPECT_EQ(server.queries.size(), 3U);
}

// And then everything is as it was.
TEST_F(PostgresBatchTrouble, NotificationsAreTriedAgainAfterAWhile) {
  (void)acquire("x", 1);
  (void)acquire("y", 2);
  engine.run();
  next_reply = NobodyCanBeNotified();
  (void)ask(Kind::release, "x", 1);
  engine.run();
  next_reply = nullptr;
  engine.advance(1s);
  server.queries.clear();
  (void)ask(Kind::release, "y", 2);
  engine.run();
  ASSERT_EQ(server.queries.size(), 1U);
  EXPECT_NE(server.queries.front().commands.front().params.back(), "");
}

// The commit says nothing about which of the commands it is.
TEST_F(PostgresBatchTrouble, ARefusedCommitBlamesNoCommand) {
  for (std::uint64_t i = 0; i < 8; ++i) (void)acquire("x" + std::to_string(i), i + 1);
  engine.run();
  server.queries.clear();
  answers.clear();
  when.clear();
  next_reply = [](const FakeQuery& query) -> std::optional<FakeReply> {
    const std::string renewed = query.commands.front().params.at(0).value_or("");
    if (renewed.find("x3") == std::string::npos) return std::nullopt;
    return FakeReply::refused("23514", query.commands.size());
  };
  for (std::uint64_t i = 0; i < 8; ++i) (void)ask(Kind::renew, "x" + std::to_string(i), i + 1);
  const auto acquired = acquire("y", 100);
  engine.run();
  EXPECT_EQ(result(acquired), "yes");
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(result(i), i == 3 ? name_of(errc::protocol) : "yes") << i;
}

// --- Time ------------------------------------------------------------------------------------------------------------

TEST_F(PostgresBatchTrouble, EachIsAnsweredInItsOwnTime) {
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

TEST_F(PostgresBatchTrouble, AnAnswerThatIsLateIsNobodysBusiness) {
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
TEST_F(PostgresBatchTrouble, WhoseTimeIsOverIsNotAskedForAgain) {
  (void)acquire("a", 1);
  engine.run();
  next_reply = [](const FakeQuery&) { return FakeReply::held(); };
  const auto late = acquire("x", 2, 100ms);
  const auto bad = acquire("bad", 3, 3s);
  engine.advance(1s);
  EXPECT_EQ(result(late), name_of(errc::ambiguous));
  server.queries.clear();
  next_reply = Untranslatable();
  server.release();
  engine.run();
  EXPECT_EQ(result(bad), name_of(errc::invalid_argument));
  EXPECT_FALSE(rows.rows.contains("x"));
}

TEST_F(PostgresBatchTrouble, WhoFollowedOneWhoseTimeIsOverAsksForHimself) {
  (void)acquire("a", 1);
  engine.run();
  next_reply = [](const FakeQuery&) { return FakeReply::held(); };
  const auto late = acquire("x", 2, 100ms);
  (void)acquire("bad", 3, 3s);
  const auto follower = acquire("x", 4, 3s);
  engine.advance(1s);
  EXPECT_EQ(result(late), name_of(errc::ambiguous));
  EXPECT_EQ(result(follower), "");
  next_reply = Untranslatable();
  server.release();
  engine.run();
  EXPECT_EQ(result(follower), "yes");
}

}  // namespace

}  // namespace dlock::postgres
