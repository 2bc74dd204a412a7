// Giving back, and cleaning up after owners who gave up, over a service that the test plays: every request is answered
// by hand, or never.
#include <dlock/spi/cleanup.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
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
                      if (const auto f = std::exchange(when_asked, nullptr)) f();
                      if (answer_at_once) reply(*answer_at_once);
                    });
  }
  [[nodiscard]] Grant grant(std::chrono::nanoseconds lease = 30s, const OwnerId& owner = a) {
    return {"x", owner, FencingToken(7), lease_valid_until(engine.now(), lease), lease};
  }
  void release(const Grant& what) {
    cleanup->release(what, [this](const ReleaseOutcome& outcome) {
      outcomes.push_back(outcome);
      if (when_released) when_released();
    });
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
  std::function<void()> when_released;
  std::function<void()> when_asked;  // once
  bool finished = false;
  std::optional<Cleanup> cleanup;
};

// --- Locks that are held ---------------------------------------------------------------------------------------------

// If a lock is gone before its lease ended, an unanswered attempt released it: no other owner can have had it.
// Shows: hole lost-release-answer
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

// Shows: hole lost-release-answer
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

TEST_F(CleanupTest, TwoReleases_AreIndependent) {
  release(grant(30s, a));
  release(grant(30s, b));
  reply(0, ambiguous);
  reply(1, false);
  reply(2, false);
  ASSERT_EQ(outcomes.size(), 2U);
  EXPECT_EQ(outcomes[0].status, Status::not_owner);
  EXPECT_EQ(outcomes[1].status, Status::released);
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

TEST_F(CleanupTest, RetryNowInsideRetryNow_RepeatsNone) {
  for (const bool answered : {false, true}) {
    start();
    for (const OwnerId& owner : {a, b}) {
      cleanup->abandon({LockKind::lock, "x", owner}, 30s, false);
      reply(unavailable);
    }
    asked.clear();
    when_asked = [&] {
      if (answered) answer_at_once = false;
      cleanup->retry_now();
      answer_at_once.reset();
    };
    cleanup->retry_now();
    EXPECT_EQ(asked.size(), 2U) << answered;
  }
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

TEST_F(CleanupTest, AnswerAboutARemovedOwner_IsIgnored) {
  cleanup->abandon({LockKind::lock, "x", a}, 30s, true);
  reply(false);
  cleanup->granted_late(a);
  cleanup->granted_late(a);
  ASSERT_EQ(asked.size(), 3U);
  reply(1, true);
  reply(2, false);
  finish();
  EXPECT_TRUE(finished);
}

TEST_F(CleanupTest, OwnerInDoubt_IsRemovedAfterItsReleaseForSomeTime) {
  for (const bool in_time : {true, false}) {
    asked.clear();
    outcomes.clear();
    start();
    EXPECT_FALSE(cleanup->is_in_doubt(a));
    cleanup->in_doubt(a, 15s);
    EXPECT_TRUE(cleanup->is_in_doubt(a));
    engine.advance(in_time ? 14s : 15s);
    cleanup->in_doubt(b, 15s);  // forgets those whose time is over
    release(grant());
    reply(true);
    ASSERT_EQ(outcomes.size(), 1U);
    EXPECT_EQ(outcomes[0].status, Status::released);
    ASSERT_EQ(asked.size(), in_time ? 2U : 1U);
    if (!in_time) continue;
    EXPECT_EQ(asked.back().reason, Reason::give_up);
    reply(false);
    engine.advance(1s);
    EXPECT_EQ(asked.size(), 3U) << "its late request may have come since";
    EXPECT_FALSE(cleanup->is_in_doubt(a)) << "the clean-up takes care of it";
  }
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

TEST_F(CleanupTest, Finish_EndsWhenNothingCanBeLeft) {
  answer_at_once = Result<bool>(unavailable);
  cleanup->abandon({LockKind::lock, "x", a}, 5s, false);
  finish();
  engine.advance(4900ms);
  EXPECT_FALSE(finished);
  engine.advance(100ms);
  EXPECT_TRUE(finished);
}

// In each of its calls; nothing is asked afterwards.
TEST_F(CleanupTest, Callee_MayDestroyIt) {
  const auto end = [this] { cleanup.reset(); };
  const auto abandon = [this](const OwnerId& owner, const Result<bool>& answer) {
    cleanup->abandon({LockKind::lock, "x", owner}, 30s, true);
    reply(answer);
  };
  const std::vector<std::pair<const char*, std::function<void()>>> ways = {
      {"released",
       [&] {
         when_released = end;
         release(grant());
         reply(true);
       }},
      {"not released",
       [&] {
         when_released = end;
         release(grant());
         reply(unavailable);
       }},
      {"finished",
       [&] {
         cleanup->abandon({LockKind::lock, "x", a}, 30s, true);
         cleanup->finish(end);
         reply(true);
       }},
      {"finished while it retries",
       [&] {
         abandon(a, unavailable);
         abandon(b, unavailable);
         cleanup->finish(end);
         answer_at_once = true;
         cleanup->retry_now();
       }},
      {"in between", [&] {
         abandon(a, unavailable);
         end();
       }}};
  for (const auto& [name, run] : ways) {
    SCOPED_TRACE(name);
    start();
    run();
    EXPECT_FALSE(cleanup);
    const std::size_t so_far = asked.size();
    engine.advance(1h);
    EXPECT_EQ(asked.size(), so_far);
    EXPECT_EQ(engine.pending_timers(), 0U);
    answer_at_once.reset();
  }
}

}  // namespace

}  // namespace dlock::detail
