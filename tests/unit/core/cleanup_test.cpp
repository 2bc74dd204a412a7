// Giving back, and cleaning up after owners who gave up, over a service that the test plays: every request is answered
// by hand, or never.
#include <dlock/spi/cleanup.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/manual_engine.hpp"

namespace dlock::detail {

namespace {

using namespace std::chrono_literals;
using Status = ReleaseOutcome::Status;
using Reason = Cleanup::Reason;

struct Asked {
  std::string name;
  OwnerId owner;
  Reason reason;
  TimePoint deadline;
  TimePoint when;
  Cleanup::Answer answer;
};

constexpr OwnerId a{1, 1};
constexpr OwnerId b{2, 2};

class CleanupTest : public testing::Test {
 protected:
  CleanupTest() { start(); }
  void start(std::chrono::nanoseconds patience = 0s) {
    cleanup.emplace(engine, 4s, patience,
                    [this](const Cleanup::Claim& claim, Reason reason, TimePoint deadline, Cleanup::Answer answer) {
                      asked.push_back({claim.name, claim.owner, reason, deadline, engine.now(), std::move(answer)});
                      if (answer_at_once) reply(*answer_at_once);
                    });
  }
  [[nodiscard]] Grant grant(std::chrono::nanoseconds lease = 30s) {
    return {"x", a, FencingToken(7), lease_valid_until(engine.now(), lease), lease};
  }
  void release(const Grant& what) {
    cleanup->release(what, [this](const ReleaseOutcome& outcome) { outcomes.push_back(outcome); });
  }
  // To the newest request, or an earlier one.
  void reply(const Result<bool>& answer) { reply(asked.size() - 1, answer); }
  void reply(std::size_t request, const Result<bool>& answer) {
    const auto done = std::exchange(asked.at(request).answer, nullptr);
    ASSERT_TRUE(done) << "answered before";
    done(answer);
  }
  void finish() {
    cleanup->finish([this] {
      EXPECT_FALSE(finished) << "finished twice";
      finished = true;
    });
  }

  const Failure unavailable{errc::unavailable, "not asked"};
  const Failure ambiguous{errc::ambiguous, "no answer"};
  const Failure denied{errc::access_denied, "denied"};

  test::ManualEngine engine;
  std::vector<Asked> asked;
  std::optional<Result<bool>> answer_at_once;
  std::vector<ReleaseOutcome> outcomes;
  bool finished = false;
  std::optional<Cleanup> cleanup;
};

// --- Locks that are held ---------------------------------------------------------------------------------------------

// If a lock is gone before its lease ended, an unanswered attempt released it: no other owner can have had it.
TEST_F(CleanupTest, Release_IsRepeatedUntilItIsAnswered) {
  struct Row {
    const char* name;
    std::vector<Result<bool>> answers;
    Status status;
    std::error_code code;
    bool goes_on;  // until it is confirmed
  };
  const std::vector<Row> rows = {
      {"released", {true}, Status::released, {}, false},
      {"not ours", {false}, Status::not_owner, {}, false},
      {"unanswered, then released", {ambiguous, true}, Status::released, {}, false},
      {"unanswered, then gone", {ambiguous, false}, Status::released, {}, false},
      {"not sent", {unavailable}, Status::failed, errc::unavailable, true},
      {"unanswered each time", std::vector<Result<bool>>(8, ambiguous), Status::failed, errc::ambiguous, true}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    asked.clear();
    outcomes.clear();
    start();
    release(grant());
    const TimePoint deadline = engine.now() + 4s;
    for (const auto& answer : row.answers) {
      EXPECT_TRUE(outcomes.empty());
      EXPECT_EQ(asked.back().name, "x");
      EXPECT_EQ(asked.back().owner, a);
      EXPECT_EQ(asked.back().reason, Reason::release);
      EXPECT_EQ(asked.back().deadline, deadline) << "within the time that the caller was promised";
      engine.advance(100ms);
      reply(answer);
    }
    ASSERT_EQ(outcomes.size(), 1U);
    EXPECT_EQ(outcomes[0].status, row.status);
    EXPECT_EQ(outcomes[0].failure.code, row.code);
    EXPECT_EQ(asked.size(), row.answers.size() + (row.goes_on ? 1 : 0));
    if (row.goes_on) {
      EXPECT_EQ(asked.back().reason, Reason::give_up);
      reply(unavailable);
      EXPECT_EQ(asked.size(), row.answers.size() + 1) << "not at once";
      engine.advance(20ms);
      ASSERT_EQ(asked.size(), row.answers.size() + 2);
      reply(true);
      engine.advance(1s);
    }
    const std::size_t so_far = asked.size();
    if (asked.back().answer) reply(true);
    engine.advance(1h);
    EXPECT_EQ(asked.size(), so_far);
  }
}

TEST_F(CleanupTest, LockThatIsGoneAfterItsLease_WasReleasedOrExpired) {
  const Grant short_lived = grant(1s);
  release(short_lived);
  engine.advance(short_lived.valid_until - engine.now());
  reply(ambiguous);
  reply(false);
  EXPECT_EQ(outcomes.at(0).status, Status::failed);
  EXPECT_EQ(outcomes.at(0).failure.code, errc::ambiguous);
  EXPECT_EQ(asked.size(), 2U) << "the service has nothing of it any more";
  release(grant());
  engine.advance(4s);
  reply(ambiguous);
  EXPECT_EQ(outcomes.at(1).status, Status::failed) << "the caller is answered at the deadline";
}

TEST_F(CleanupTest, AnswerInsideTheCall_CompletesTheRelease) {
  answer_at_once = true;
  release(grant());
  EXPECT_EQ(outcomes.at(0).status, Status::released);
  answer_at_once = Result<bool>(ambiguous);
  release(grant());
  EXPECT_EQ(outcomes.at(1).status, Status::failed);
  answer_at_once = true;
  finish();
  engine.advance(5s);
  EXPECT_TRUE(finished);
  EXPECT_EQ(engine.pending_timers(), 0U);
}

// --- Owners that gave up ---------------------------------------------------------------------------------------------

TEST_F(CleanupTest, AbandonedOwner_IsRemovedTwiceIfARequestMayBeLate) {
  for (const bool may_arrive : {false, true}) {
    asked.clear();
    cleanup->abandon({LockKind::lock, "x", a}, 30s, may_arrive);
    cleanup->abandon({LockKind::lock, "x", a}, 30s, may_arrive);  // is one cleaning
    ASSERT_EQ(asked.size(), 1U);
    EXPECT_EQ(asked[0].reason, Reason::give_up);
    EXPECT_EQ(asked[0].deadline, engine.now() + 4s);
    reply(false);
    engine.advance(999ms);
    EXPECT_EQ(asked.size(), 1U);
    engine.advance(1ms);
    ASSERT_EQ(asked.size(), may_arrive ? 2U : 1U);
    if (may_arrive) reply(true);
    engine.advance(1h);
    EXPECT_EQ(asked.size(), may_arrive ? 2U : 1U);
  }
  asked.clear();
  cleanup->abandon({LockKind::lock, "x", a}, 30s, false);
  reply(ambiguous);
  engine.advance(20ms);
  ASSERT_EQ(asked.size(), 2U);
  reply(true);
  engine.advance(1s);
  EXPECT_EQ(asked.size(), 3U) << "a request without an answer may arrive late, too";
}

TEST_F(CleanupTest, Retries_BackOffUntilNothingCanBeLeft) {
  for (const std::chrono::nanoseconds patience : {0s, 600s}) {
    for (const Failure& failure : {unavailable, denied}) {
      asked.clear();
      start(patience);
      answer_at_once = Result<bool>(failure);
      const TimePoint begin = engine.now();
      cleanup->abandon({LockKind::lock, "x", a}, 30s, false);
      engine.advance(1h);
      EXPECT_GT(asked.size(), 30U);
      EXPECT_LT(asked.size(), patience == 0s ? 80U : 900U);
      EXPECT_EQ(asked.back().when, begin + 30s + patience);
      EXPECT_EQ(engine.pending_timers(), 0U);
    }
  }
}

TEST_F(CleanupTest, Pauses_EndWhenTheServiceIsReachableAgain) {
  const OwnerId c(3, 3);
  cleanup->abandon({LockKind::lock, "x", a}, 30s, false);
  for (int i = 0; i < 5; ++i) {
    reply(unavailable);
    engine.advance(1s);
  }
  reply(unavailable);                                     // a pauses, for long
  cleanup->abandon({LockKind::lock, "x", b}, 30s, true);  // b is confirmed, and asked for once more in a second
  reply(false);
  cleanup->abandon({LockKind::lock, "x", c}, 30s, false);  // c is not answered yet
  asked.clear();
  cleanup->retry_now();
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(asked[0].owner, a);
  cleanup->retry_now();
  EXPECT_EQ(asked.size(), 1U);
  reply(unavailable);
  engine.advance(20ms);
  EXPECT_EQ(asked.size(), 2U) << "pauses begin anew";
  answer_at_once = true;
  reply(unavailable);
  cleanup->retry_now();
  EXPECT_EQ(asked.size(), 3U);
  engine.advance(900ms);
  EXPECT_EQ(asked.size(), 3U);
}

TEST_F(CleanupTest, LateGrant_IsTakenBackAtOnce) {
  cleanup->abandon({LockKind::lock, "x", a}, 30s, true);
  reply(false);
  cleanup->granted_late(a);
  ASSERT_EQ(asked.size(), 2U);
  reply(true);
  cleanup->granted_late(b);
  EXPECT_EQ(asked.size(), 2U) << "never abandoned";
}

// --- The end ---------------------------------------------------------------------------------------------------------

TEST_F(CleanupTest, Finish_EndsWithTheLastConfirmation) {
  finish();
  EXPECT_TRUE(std::exchange(finished, false));
  start();
  cleanup->abandon({LockKind::lock, "x", a}, 30s, false);
  cleanup->abandon({LockKind::lock, "y", b}, 30s, true);
  finish();
  reply(1, false);
  EXPECT_FALSE(finished);
  reply(0, unavailable);
  engine.advance(20ms);
  EXPECT_FALSE(finished);
  ASSERT_EQ(asked.size(), 3U);
  reply(true);
  EXPECT_TRUE(finished) << "a client that closes does not wait for stragglers";
}

}  // namespace

}  // namespace dlock::detail
