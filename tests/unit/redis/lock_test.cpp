// Acquiring, renewing, releasing: what is sent, what is believed, and what is cleaned up.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "backend_fixture.hpp"
#include "tests/unit/support/reports.hpp"

namespace dlock::redis {

namespace {

using RedisLockTest = BackendTest;
using ReleaseStatus = ReleaseOutcome::Status;
using RenewStatus = RenewOutcome::Status;

// H8: from before the request of the attempt that was answered, not from the call, nor from the answer.
TEST_F(RedisLockTest, ALeaseCountsFromWhenItsRequestWasSent) {
  server.dialling = FakeServer::Dialling::refuse;
  const auto attempt = contend(true, 10s);
  engine.advance(3s);
  server.dialling = FakeServer::Dialling::accept;
  TimePoint sent;
  server.answer = [&](FakeWire& wire, const Words& command) -> std::string {
    if (script_in(command) == nullptr) return "";
    sent = engine.now();
    (void)engine.schedule(engine.now() + 1500ms, [&wire] { wire.reply(granted(7)); });
    return "";
  };
  engine.advance(3s);
  ASSERT_TRUE(attempt->grant);
  EXPECT_EQ(attempt->grant->valid_until, lease_valid_until(sent, 10s));
  EXPECT_EQ(attempt->grant->token, FencingToken(7));
}

// H3
TEST_F(RedisLockTest, EveryAcquireHasAValueOfItsOwnAndARetryKeepsIt) {
  const auto first = contend(true);
  const auto second = contend(true);
  engine.advance(10s);  // unanswered, so asked again and again
  std::set<std::string> values;
  for (const Words& call : server.calls("acquire")) values.insert(value_in(call));
  EXPECT_GT(server.calls("acquire").size(), 4U);
  EXPECT_EQ(values.size(), 2U);
}

// H5
TEST_F(RedisLockTest, LeasesAreSentInWholeMillisecondsRoundedUp) {
  set({.acquire = granted(7)});
  (void)contend(false, 20ms + 1ns);
  EXPECT_EQ(server.calls("acquire").at(0).at(8), "21");
}

// H13
TEST_F(RedisLockTest, ATryWhoseAnswerNeverCameIsTakenBackOnTheNextConnection) {
  const auto attempt = contend(false);
  set({.acquire = "", .renew = "", .release = nobodys()});
  server.cut();
  engine.advance(100ms);
  ASSERT_TRUE(failed(*attempt, errc::ambiguous));
  attempt->contention.reset();
  engine.run();
  const auto releases = server.calls("release");
  ASSERT_EQ(releases.size(), 1U);
  EXPECT_EQ(releases[0].at(6), value_in(server.calls("acquire").at(0)));
  // Once more, for what the broken connection may deliver late, and then no more.
  engine.advance(1h);
  EXPECT_EQ(server.calls("release").size(), 2U);
}

// H13: the broken connection may deliver the acquire after the release, to nobody's use.
TEST_F(RedisLockTest, AReleaseAfterAnUnansweredAcquireIsFollowedByAnotherOneLater) {
  for (const char* strategy : {"queue", "broadcast", "poll"}) {
    SCOPED_TRACE(strategy);
    server.answer = nullptr;
    backend = make(std::string("redis://localhost?strategy=") + strategy);
    server.commands.clear();
    const auto attempt = contend(true);
    set({.acquire = granted(7)});
    server.cut();
    engine.advance(2s);
    ASSERT_TRUE(attempt->grant);
    attempt->contention.reset();
    release(*attempt);
    engine.advance(1h);
    EXPECT_EQ(release_status(), ReleaseStatus::released);
    const auto releases = server.calls("release");
    ASSERT_EQ(releases.size(), 3U) << "at once, as one that gives up, and a second later";
    EXPECT_EQ(releases[0].back(), "stay");
    EXPECT_EQ(releases[1].back(), "leave");
    EXPECT_EQ(releases[2].back(), "leave");
  }
}

TEST_F(RedisLockTest, WhatCannotBeTakenBackIsTriedUntilItMustHaveRunOut) {
  auto attempt = contend(false, 30s);
  server.dialling = FakeServer::Dialling::refuse;
  server.cut();
  engine.run();
  attempt.reset();
  close();
  engine.advance(40s);
  EXPECT_FALSE(closed);
  engine.advance(10s);
  EXPECT_TRUE(closed);
}

TEST_F(RedisLockTest, AnAnswerThatMakesNoSenseIsFinalAndTakenBack) {
  set({.acquire = "+OK\r\n"});
  for (const bool wait : {false, true}) {
    backend = make();
    server.commands.clear();
    auto attempt = contend(wait);
    ASSERT_TRUE(failed(*attempt, errc::protocol));
    attempt.reset();
    engine.run();
    EXPECT_EQ(server.calls("release").size(), 1U);
  }
}

TEST_F(RedisLockTest, ARenewalCountsFromWhenItWasSent) {
  set({.acquire = granted(7), .renew = number(1)});
  const auto attempt = contend(false);
  engine.advance(10s);
  renew(*attempt);
  const TimePoint sent = engine.now();
  engine.run();
  ASSERT_TRUE(renewed);
  EXPECT_EQ(renewed->status, RenewStatus::renewed);
  EXPECT_EQ(renewed->valid_until, lease_valid_until(sent, 30s));
  const Words words = server.calls("renew").at(0);
  EXPECT_EQ(words.at(words.size() - 2), value_in(server.calls("acquire").at(0))) << "of this very lease";
}

// H4
TEST_F(RedisLockTest, ARenewalOfWhatIsNotOursIsALoss) {
  set({.acquire = granted(7), .renew = number(0)});
  const auto attempt = contend(false);
  renew(*attempt);
  engine.run();
  ASSERT_TRUE(renewed);
  EXPECT_EQ(renewed->status, RenewStatus::lost);
}

// H18: its time limit is its own; others go on using the connection.
TEST_F(RedisLockTest, ARenewalEndsInAQuarterOfTheLeaseAndItsLateAnswerIsNobodyElses) {
  set({.acquire = granted(7)});
  const auto attempt = contend(false, 2s);
  renew(*attempt);
  engine.advance(500ms);
  ASSERT_TRUE(renewed);
  EXPECT_EQ(renewed->status, RenewStatus::failed);
  EXPECT_EQ(server.dialled, 1);

  set({});
  const auto next = contend(false);
  server.connections.front()->reply(number(1) + granted(8));
  engine.run();
  ASSERT_TRUE(next->grant);
  EXPECT_EQ(next->grant->token, FencingToken(8));
  EXPECT_EQ(server.dialled, 1);
}

TEST_F(RedisLockTest, AReleaseSaysWhoseTheLockWas) {
  const std::pair<std::string, ReleaseStatus> cases[] = {{released(), ReleaseStatus::released},
                                                         {nobodys(), ReleaseStatus::not_owner},
                                                         {somebody_elses(), ReleaseStatus::not_owner}};
  for (const auto& [reply, expected] : cases) {
    set({.acquire = granted(7), .renew = "", .release = reply});
    backend = make();
    const auto attempt = contend(false);
    release(*attempt);
    engine.run();
    EXPECT_EQ(release_status(), expected);
  }
}

// A crowd of dead waiters is more than one call removes.
TEST_F(RedisLockTest, AReleaseGoesOnUntilALivingWaiterHasTheLock) {
  set({.acquire = granted(7)});
  const auto attempt = contend(false);
  int calls = 0;
  server.answer = [&](FakeWire&, const Words& command) -> std::string {
    if (script_in(command) != &release_script()) return "";
    return ++calls == 1 ? released(true) : nobodys(calls < 20);
  };
  release(*attempt);
  engine.run();
  EXPECT_EQ(release_status(), ReleaseStatus::released);
  EXPECT_EQ(calls, 20);
}

TEST_F(RedisLockTest, AReleaseThatIsNeverDoneEndsInTimeWithWhatIsKnown) {
  set({.acquire = granted(7)});
  const auto attempt = contend(false);
  server.answer = [&](FakeWire& wire, const Words& command) -> std::string {
    if (script_in(command) != &release_script()) return "";
    (void)engine.schedule(engine.now() + 100ms, [&wire] { wire.reply(released(true)); });
    return "";
  };
  release(*attempt);
  engine.advance(2s);
  EXPECT_EQ(release_status(), ReleaseStatus::released);
  const auto before = server.calls("release").size();
  engine.advance(10s);
  EXPECT_EQ(server.calls("release").size(), before);
}

TEST_F(RedisLockTest, AReleaseThatIsCutOffWhileItGoesOnIsARelease) {
  set({.acquire = granted(7), .renew = "", .release = released(true)});
  const auto attempt = contend(false);
  int calls = 0;
  server.answer = [&](FakeWire&, const Words& command) -> std::string {
    if (script_in(command) != &release_script()) return "";
    return ++calls == 1 ? released(true) : "";
  };
  release(*attempt);
  engine.run();
  server.cut();
  engine.run();
  EXPECT_EQ(release_status(), ReleaseStatus::released);
}

TEST_F(RedisLockTest, ATryGoesOnUntilNoDeadWaiterIsBeforeIt) {
  int calls = 0;
  server.answer = [&](FakeWire&, const Words& command) -> std::string {
    if (script_in(command) != &acquire_script()) return "";
    return ++calls < 20 ? busy(-2, -1) : granted(7);
  };
  for (const char* url : {"redis://localhost", "redis://localhost?strategy=poll"}) {
    calls = 0;
    backend = make(url);
    const auto attempt = contend(false);
    EXPECT_TRUE(attempt->grant);
    EXPECT_EQ(attempt->busy_reports, 0) << "nobody has the lock";
  }
}

TEST_F(RedisLockTest, ATryThatIsNeverDoneEndsInTime) {
  server.answer = [&](FakeWire& wire, const Words& command) -> std::string {
    if (script_in(command) != &acquire_script()) return "";
    (void)engine.schedule(engine.now() + 100ms, [&wire] { wire.reply(busy(-2, -1)); });
    return "";
  };
  const auto attempt = contend(false);
  engine.advance(2s);
  EXPECT_TRUE(attempt->reported());
  const auto before = server.calls("acquire").size();
  engine.advance(10s);
  EXPECT_EQ(server.calls("acquire").size(), before);
}

// H14
TEST_F(RedisLockTest, AReleaseWhoseAnswerWasLostIsRepeatedAndCounts) {
  set({.acquire = granted(7), .renew = "", .release = ""});
  const auto attempt = contend(false);
  release(*attempt);
  engine.run();
  set({.acquire = "", .renew = "", .release = nobodys()});
  server.cut();
  engine.advance(100ms);
  EXPECT_EQ(release_status(), ReleaseStatus::released);
  EXPECT_EQ(server.calls("release").size(), 2U);
}

TEST_F(RedisLockTest, AReleaseThatIsNotConfirmedGoesOnInTheBackground) {
  set({.acquire = granted(7)});
  const auto attempt = contend(false);
  server.dialling = FakeServer::Dialling::refuse;
  server.cut();
  engine.run();
  release(*attempt);
  engine.advance(100ms);
  ASSERT_TRUE(release_answer);
  EXPECT_EQ(release_answer->status, ReleaseStatus::failed);
  EXPECT_EQ(release_answer->failure.code, errc::unavailable);
  close();
  EXPECT_FALSE(closed);
  server.dialling = FakeServer::Dialling::accept;
  engine.advance(2s);
  EXPECT_EQ(server.calls("release").size(), 1U);
  EXPECT_TRUE(closed);
}

TEST_F(RedisLockTest, AReleaseThatWaitsForItsConnectionIsSentAtTheEnd) {
  set({.acquire = granted(7)});
  const auto attempt = contend(false);
  server.answer = [this](FakeWire&, const Words& command) -> std::string {
    // It introduces itself, and ends before it is answered.
    if (command.front() == "CLIENT") engine.post([this] { backend.reset(); });
    return "";
  };
  server.cut();
  release(*attempt);
  engine.advance(1s);
  ASSERT_FALSE(backend);
  EXPECT_EQ(server.calls("release").size(), 2U) << "on the connection that broke, and at the end";
}

// H19: one connection for what waits, another for everything else.
TEST_F(RedisLockTest, TooFewReplicasTakeTheLockBackBeforeTheyAreReported) {
  server.answer = [](FakeWire&, const Words& command) -> std::string {
    if (command.front() == "WAIT") return number(1);
    if (script_in(command) == &acquire_script()) return granted(7);
    return script_in(command) == &release_script() ? released() : "";
  };
  backend = make("redis://localhost?replicas_ack=2");
  const auto attempt = contend(false);
  ASSERT_TRUE(failed(*attempt, errc::unavailable, "1 of 2"));
  EXPECT_EQ(server.calls("release").size(), 1U);
  EXPECT_EQ(server.commands.at(1).at(0), "WAIT");
}

TEST_F(RedisLockTest, ABusyLockIsNoneThatReplicasHaveToHave) {
  set({.acquire = busy()});
  backend = make("redis://localhost?replicas_ack=1");
  const auto attempt = contend(false);
  EXPECT_EQ(attempt->busy_reports, 1);
  EXPECT_EQ(server.commands.size(), 1U);
}

TEST_F(RedisLockTest, WaitingForReplicasDoesNotMakeALeaseLonger) {
  FakeWire* waits = nullptr;
  server.answer = [&](FakeWire& wire, const Words& command) -> std::string {
    if (command.front() == "WAIT") waits = &wire;
    return script_in(command) == &acquire_script() ? granted(7) : "";
  };
  backend = make("redis://localhost?replicas_ack=1");
  const auto attempt = contend(false);
  const TimePoint sent = engine.now();
  ASSERT_NE(waits, nullptr);
  engine.advance(500ms);
  waits->reply(number(1));
  engine.run();
  ASSERT_TRUE(attempt->grant);
  EXPECT_EQ(attempt->grant->valid_until, lease_valid_until(sent, 30s));
}

// It may be held by nobody who knows: the server has the lock, and the replicas may get it yet.
TEST_F(RedisLockTest, WhatCouldNotBeTakenBackIsAmbiguous) {
  server.answer = [](FakeWire&, const Words& command) -> std::string {
    if (command.front() == "WAIT") return number(1);
    return script_in(command) == &acquire_script() ? granted(7) : "";
  };
  backend = make("redis://localhost?replicas_ack=2");
  const auto attempt = contend(false);
  EXPECT_FALSE(attempt->failure) << "while it is being taken back";
  engine.advance(2s);
  ASSERT_TRUE(failed(*attempt, errc::ambiguous, "1 of 2"));
}

// The answer to WAIT was lost with a connection, which is ambiguous; then the lock is taken back, so that it is not.
TEST_F(RedisLockTest, WhatWasTakenBackAfterALostAnswerIsUnavailable) {
  server.answer = [this](FakeWire&, const Words& command) -> std::string {
    if (command.front() == "WAIT") engine.post([this] { server.cut(); });
    if (script_in(command) == &acquire_script()) return granted(7);
    return script_in(command) == &release_script() ? released() : "";
  };
  backend = make("redis://localhost?replicas_ack=2");
  const auto attempt = contend(false);
  engine.advance(1s);
  ASSERT_TRUE(failed(*attempt, errc::unavailable));
  EXPECT_GE(server.calls("release").size(), 1U);
}

TEST_F(RedisLockTest, WaitingForReplicasHoldsUpNoRenewal) {
  FakeWire* waiting = nullptr;
  FakeWire* renewing = nullptr;
  server.answer = [&](FakeWire& wire, const Words& command) -> std::string {
    if (command.front() == "WAIT" && waiting == nullptr) waiting = &wire;
    if (script_in(command) == &acquire_script()) return granted(7);
    if (script_in(command) == &renew_script()) renewing = &wire;
    return "";
  };
  backend = make("redis://localhost?replicas_ack=1");
  const auto attempt = contend(false);
  backend->renew({"lock", attempt->request.owner, FencingToken(7), {}, 30s}, [](const RenewOutcome&) {});
  engine.run();
  ASSERT_TRUE(waiting != nullptr && renewing != nullptr);
  EXPECT_NE(waiting, renewing);
}

// Renewals that count only when replicas have them. What WAIT says is the test's to decide, and when.
class AcknowledgedRenewalsTest : public RedisLockTest {
 protected:
  using Status = RenewOutcome::Status;

  void start(const std::string& replicas = "2") {
    server.answer = [this](FakeWire& wire, const Words& command) -> std::string {
      if (command.front() == "WAIT") return waits.push_back(&wire), "";
      return script_in(command) == &renew_script() ? renewed : "";
    };
    backend = make("redis://localhost?replicas_ack=" + replicas);
  }
  void renew(int count = 1, std::chrono::nanoseconds lease = 8s) {
    for (int i = 0; i < count; ++i) {
      backend->renew({"lock " + std::to_string(i), {1, 1}, FencingToken(7), {}, lease},
                     [this](RenewOutcome outcome) { outcomes.push_back(std::move(outcome)); });
    }
    engine.run();
  }
  // One batch, of a lease that has a second for its renewal and of one that has two. To both the server says that.
  void renew_a_short_and_a_long_one(const std::string& answer) {
    renew();
    renewed = answer;
    renew(1, 4s);  // the two wait for the first one's end
    renew(1, 30s);
    waits.at(0)->reply(number(2));
    engine.run();
    ASSERT_EQ(waits.size(), 2U);
    outcomes.clear();
  }

  std::string renewed = number(1);
  std::vector<FakeWire*> waits;
  std::vector<RenewOutcome> outcomes;
};

TEST_F(AcknowledgedRenewalsTest, AreAnsweredWithWhatTheReplicasSayAndCountFromWhenTheyWereSent) {
  start();
  const TimePoint sent = engine.now();
  renew();
  engine.advance(500ms);
  EXPECT_TRUE(outcomes.empty()) << "the replicas have said nothing yet";
  waits.at(0)->reply(number(2));
  engine.run();
  ASSERT_EQ(outcomes.size(), 1U);
  EXPECT_EQ(outcomes[0].status, Status::renewed);
  EXPECT_EQ(outcomes[0].valid_until, lease_valid_until(sent, 8s));
}

TEST_F(AcknowledgedRenewalsTest, AreThoseAlreadyWhereOneReplicaIsEnough) {
  start("1");
  renew();
  ASSERT_EQ(waits.size(), 1U);
  EXPECT_TRUE(outcomes.empty());
  waits.at(0)->reply(number(1));
  engine.run();
  ASSERT_EQ(outcomes.size(), 1U);
  EXPECT_EQ(outcomes[0].status, Status::renewed);
}

TEST_F(AcknowledgedRenewalsTest, WithTooFewReplicasFail) {
  start();
  renew();
  waits.at(0)->reply(number(1));
  engine.run();
  ASSERT_EQ(outcomes.size(), 1U);
  EXPECT_EQ(outcomes[0].status, Status::failed);
  EXPECT_NE(outcomes[0].failure.detail.find("1 of 2"), std::string::npos) << outcomes[0].failure.detail;
}

TEST_F(AcknowledgedRenewalsTest, ALockThatIsSomebodyElsesIsLostWithoutAskingTheReplicas) {
  renewed = number(0);
  start();
  renew();
  ASSERT_EQ(outcomes.size(), 1U);
  EXPECT_EQ(outcomes[0].status, Status::lost);
}

TEST_F(AcknowledgedRenewalsTest, GoInBatchesWithOneWaitEach) {
  start();
  renew();
  renew(50);
  EXPECT_EQ(waits.size(), 1U) << "one batch at a time";
  EXPECT_EQ(server.calls("renew").size(), 1U);
  waits.at(0)->reply(number(2));
  engine.run();
  EXPECT_EQ(waits.size(), 2U);
  EXPECT_EQ(server.calls("renew").size(), 51U);
  waits.at(1)->reply(number(2));
  engine.run();
  EXPECT_EQ(outcomes.size(), 51U);
  renew();
  EXPECT_EQ(waits.size(), 3U) << "none is under way that it had to wait for";
}

// The shortest of a batch is the one that its WAIT is for; the others have longer for their own answer.
TEST_F(AcknowledgedRenewalsTest, OfABatchEachHasItsOwnTime) {
  start();
  renew_a_short_and_a_long_one("");
  engine.advance(1s);
  EXPECT_EQ(outcomes.size(), 1U);
  engine.advance(1s);
  EXPECT_EQ(outcomes.size(), 2U);
}

TEST_F(AcknowledgedRenewalsTest, OfABatchNoneWaitsForTheReplicasLongerThanTheShortestMay) {
  start();
  renew_a_short_and_a_long_one(number(1));
  EXPECT_TRUE(outcomes.empty());
  engine.advance(1s);
  ASSERT_EQ(outcomes.size(), 2U);
  for (const RenewOutcome& outcome : outcomes) EXPECT_EQ(outcome.status, Status::failed);
}

TEST_F(AcknowledgedRenewalsTest, OfABatchWhatIsAnsweredAfterThatIsNotLeftWithoutAWord) {
  start();
  renew_a_short_and_a_long_one("");
  engine.advance(1s);
  ASSERT_EQ(outcomes.size(), 1U);
  waits.at(1)->reply(number(1) + number(1));
  engine.run();
  ASSERT_EQ(outcomes.size(), 2U);
  EXPECT_EQ(outcomes[1].failure.code, errc::ambiguous);
}

TEST_F(AcknowledgedRenewalsTest, AreEachAnsweredInTimeWhateverComesWhen) {
  renewed = "";
  start();
  renew();
  engine.advance(1s);
  renew(3);
  engine.advance(1s);  // a quarter of the first one's lease
  EXPECT_EQ(outcomes.size(), 1U);
  // The answer to the script comes after the time of the one to WAIT.
  for (FakeWire* wire : server.connections) wire->reply(number(1));
  engine.advance(2s);
  ASSERT_EQ(outcomes.size(), 4U);
  for (const RenewOutcome& outcome : outcomes) EXPECT_EQ(outcome.status, Status::failed);
}

}  // namespace

}  // namespace dlock::redis
