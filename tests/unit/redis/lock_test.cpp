// Acquiring, renewing, releasing: what is sent, what is believed, and what is cleaned up. The simulation spoils each
// request of these; here are times, codes and limits.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "backend_fixture.hpp"
#include "tests/unit/support/reports.hpp"

namespace dlock::redis {

namespace {

using RedisLockTest = ModelBackendTest;
using ReleaseStatus = ReleaseOutcome::Status;
using RenewStatus = RenewOutcome::Status;
using test::failed;

// H8: from before the request of the attempt that was answered, not from the call, nor from the answer.
TEST_F(RedisLockTest, ALeaseCountsFromWhenItsRequestWasSent) {
  server.dialling = FakeServer::Dialling::refuse;
  const auto attempt = contend(true, 10s);
  engine.advance(3s);
  server.dialling = FakeServer::Dialling::accept;
  TimePoint sent;
  server.answer = [&](FakeStream& wire, const Words& command) -> std::string {
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
  hold();
  serve([this](const Words& command) -> std::optional<std::string> {
    if (script_in(command) == nullptr) return std::nullopt;
    (void)model.run(command);
    return "";
  });
  const auto first = contend(true);
  const auto second = contend(true);
  engine.advance(10s);
  EXPECT_GT(asked(), 4U) << "each question is carried out, none is answered";
  EXPECT_EQ(queue().size(), 2U);
}

// H13: the broken connection may deliver an acquire after the release, to nobody's use.
TEST_F(RedisLockTest, AnAcquireThatArrivesAfterItsReleaseIsTakenBack) {
  for (const char* strategy : {"queue", "broadcast", "poll"}) {
    SCOPED_TRACE(strategy);
    backend = make(std::string("redis://localhost?strategy=") + strategy);
    Words late;
    serve([&](const Words& command) -> std::optional<std::string> {
      if (script_in(command) == nullptr) return std::nullopt;
      late = command;
      return "";
    });
    const auto attempt = contend(true);
    serve();
    server.cut();
    engine.advance(2s);
    ASSERT_TRUE(attempt->grant);
    attempt->contention.reset();
    release(*attempt);
    engine.run();
    EXPECT_EQ(release_status(), ReleaseStatus::released);
    (void)model.run(late);
    EXPECT_NE(holder(), "");
    engine.advance(2s);
    EXPECT_EQ(holder(), "");
  }
}

// H5
TEST_F(RedisLockTest, LeasesAreSentInWholeMillisecondsRoundedUp) {
  const auto attempt = contend(false, 20ms + 1ns);
  EXPECT_EQ(model.run({"PTTL", "dlock:lock"}).integer, 21);
}

TEST_F(RedisLockTest, AnAnswerThatMakesNoSenseIsFinalAndTakenBack) {
  for (const bool wait : {false, true}) {
    serve([this](const Words& command) -> std::optional<std::string> {
      if (script_in(command) != &acquire_script()) return std::nullopt;
      (void)model.run(command);
      return "+OK\r\n";
    });
    auto attempt = contend(wait);
    ASSERT_TRUE(failed(*attempt, errc::protocol));
    attempt.reset();
    engine.run();
    EXPECT_EQ(holder(), "");
  }
}

TEST_F(RedisLockTest, ARenewalCountsFromWhenItWasSent) {
  const auto attempt = contend(false);
  engine.advance(10s);
  renew(*attempt);
  const TimePoint sent = engine.now();
  engine.run();
  EXPECT_EQ(renew_status(), RenewStatus::renewed);
  EXPECT_EQ(renewed->valid_until, lease_valid_until(sent, 30s));
}

// H4
TEST_F(RedisLockTest, ARenewalOfWhatIsNotOursIsALoss) {
  const auto attempt = contend(false);
  hold();
  renew(*attempt);
  engine.run();
  EXPECT_EQ(renew_status(), RenewStatus::lost);
}

// H18: its time limit is its own; others go on using the connection.
TEST_F(RedisLockTest, ARenewalEndsInAQuarterOfTheLeaseAndItsLateAnswerIsNobodyElses) {
  const auto attempt = contend(false, 2s);
  server.answer = nullptr;
  renew(*attempt);
  engine.advance(500ms);
  EXPECT_EQ(renew_status(), RenewStatus::failed);
  const auto next = contend(false);
  server.connections.front()->reply(number(1) + granted(8));
  engine.run();
  ASSERT_TRUE(next->grant);
  EXPECT_EQ(next->grant->token, FencingToken(8));
  EXPECT_EQ(server.dialled, 1);
}

TEST_F(RedisLockTest, AReleaseSaysWhoseTheLockWas) {
  const auto ours = contend(false);
  const auto outcome = [&] {
    release(*ours);
    engine.run();
    return release_status();
  };
  EXPECT_EQ(outcome(), ReleaseStatus::released);
  EXPECT_EQ(outcome(), ReleaseStatus::not_owner);
  hold();
  EXPECT_EQ(outcome(), ReleaseStatus::not_owner);
}

// A crowd of dead waiters is more than one call removes.
TEST_F(RedisLockTest, AReleaseAndATryGoOnUntilNoDeadWaiterIsInTheWay) {
  const auto queue_dead_ones = [this] {
    for (int i = 0; i < 300; ++i) {
      const std::string value = "dead" + std::to_string(i) + ":1";
      queue_another(value);
      (void)model.run({"ZADD", "{dlock:lock}:dla", std::to_string(2 * model.now_ms()), value});
    }
  };
  for (const char* url : {"redis://localhost", "redis://localhost?strategy=poll"}) {
    SCOPED_TRACE(url);
    backend = make(url);
    queue_dead_ones();
    auto before = asked();
    const auto attempt = contend(false);
    ASSERT_TRUE(attempt->grant);
    EXPECT_EQ(attempt->busy_reports, 0) << "nobody has the lock";
    EXPECT_GT(asked(), before + 1);
    queue_dead_ones();
    before = server.calls("release").size();
    release(*attempt);
    engine.run();
    EXPECT_EQ(release_status(), ReleaseStatus::released);
    EXPECT_GT(server.calls("release").size(), before + 1);
    EXPECT_TRUE(queue().empty());
  }
}

TEST_F(RedisLockTest, ARequestThatIsNeverDoneEndsInTimeWithWhatIsKnown) {
  const auto attempt = contend(false);
  server.answer = [&](FakeStream& wire, const Words& command) -> std::string {
    const Script* const script = script_in(command);
    if (script == nullptr) return "";
    const std::string more = script == &release_script() ? released(true) : busy(-2, -1);
    (void)engine.schedule(engine.now() + 100ms, [&wire, more] { wire.reply(more); });
    return "";
  };
  release(*attempt);
  const auto other = contend(false);
  engine.advance(2s);
  EXPECT_EQ(release_status(), ReleaseStatus::released);
  EXPECT_TRUE(other->reported());
  const auto before = asked();
  engine.advance(10s);
  EXPECT_EQ(asked(), before);
}

TEST_F(RedisLockTest, AReleaseThatIsCutOffWhileItGoesOnIsARelease) {
  const auto attempt = contend(false);
  serve([calls = 0](const Words& command) mutable -> std::optional<std::string> {
    if (script_in(command) != &release_script()) return std::nullopt;
    return ++calls == 1 ? released(true) : "";
  });
  release(*attempt);
  engine.run();
  server.cut();
  engine.run();
  EXPECT_EQ(release_status(), ReleaseStatus::released);
}

TEST_F(RedisLockTest, AReleaseThatWaitsForItsConnectionIsSentAtTheEnd) {
  const auto attempt = contend(false);
  serve([this](const Words& command) -> std::optional<std::string> {
    // It introduces itself, and ends before it is answered.
    if (command.front() == "CLIENT") engine.post([this] { backend.reset(); });
    if (command.front() == "CLIENT" || server.calls("release").size() == 1) return "";
    return std::nullopt;
  });
  server.cut();
  release(*attempt);
  engine.advance(1s);
  ASSERT_FALSE(backend);
  EXPECT_EQ(holder(), "") << "it was not carried out on the connection that broke, but at the end";
}

// --- Replicas --------------------------------------------------------------------------------------------------------

// H19. The lock may be held by nobody who knows where it could not be taken back. The answer to WAIT may be lost with
// the connection, which is ambiguous, until the lock is taken back.
TEST_F(RedisLockTest, TooFewReplicasTakeTheLockBackBeforeTheyAreReported) {
  backend = make("redis://localhost?replicas_ack=2");
  const auto try_it = [&](bool loses_answer, bool releases) {
    serve([=, this](const Words& command) -> std::optional<std::string> {
      if (script_in(command) == &release_script() && !releases) return "";
      if (command.front() != "WAIT") return std::nullopt;
      if (loses_answer) engine.post([this] { server.cut(); });
      return loses_answer ? "" : number(1);
    });
    auto attempt = contend(false);
    EXPECT_TRUE(releases || !attempt->failure) << "while it is being taken back";
    engine.advance(2s);
    EXPECT_EQ(holder().empty(), releases);
    return attempt;
  };
  EXPECT_TRUE(failed(*try_it(false, true), errc::unavailable, "1 of 2"));
  EXPECT_TRUE(failed(*try_it(true, true), errc::unavailable));
  EXPECT_TRUE(failed(*try_it(false, false), errc::ambiguous, "1 of 2"));
}

// H18: WAIT blocks its connection, so nothing else goes over it.
TEST_F(RedisLockTest, WaitingForReplicasHoldsUpNoReleaseAndNoQuestion) {
  FakeStream* waiting = nullptr;
  server.answer = [&](FakeStream& wire, const Words& command) -> std::string {
    if (command.front() == "WAIT") waiting = &wire;
    if (script_in(command) == &acquire_script()) return granted(7);
    return script_in(command) == &release_script() && &wire != waiting ? released() : "";
  };
  backend = make("redis://localhost?replicas_ack=1");
  const auto attempt = contend(false);
  ASSERT_NE(waiting, nullptr);
  attempt->grant = Grant{"lock", attempt->request.owner, FencingToken(7), {}, 30s};
  release(*attempt);
  engine.run();
  EXPECT_EQ(release_status(), ReleaseStatus::released);
}

// Renewals that count only when replicas have them. The test decides when WAIT is answered, and with what; until then
// the server answers nothing that comes after it on the connection.
class AcknowledgedRenewalsTest : public BackendTest {
 protected:
  using Status = RenewOutcome::Status;

  AcknowledgedRenewalsTest() {
    server.answer = [this](FakeStream& wire, const Words& command) -> std::string {
      if (command.front() == "WAIT") {
        ++waits;
        waiting = &wire;
        return "";
      }
      const std::string reply = script_in(command) == &renew_script() ? number(1) : "";
      if (waiting == nullptr) return reply;
      blocked += reply;
      return "";
    };
    backend = make("redis://localhost?replicas_ack=1");
  }
  void renew(int count = 1, std::chrono::nanoseconds lease = 8s) {
    for (int i = 0; i < count; ++i) send(lease);
    engine.run();
  }
  void send(std::chrono::nanoseconds lease) {
    backend->renew({"lock", {1, 1}, FencingToken(7), {}, lease},
                   [this](RenewOutcome outcome) { outcomes.push_back(std::move(outcome)); });
  }
  void acknowledge(std::int64_t replicas) {
    ASSERT_NE(waiting, nullptr);
    std::exchange(waiting, nullptr)->reply(number(replicas) + std::exchange(blocked, ""));
    engine.run();
  }
  [[nodiscard]] std::vector<Status> statuses() const {
    std::vector<Status> out;
    for (const RenewOutcome& each : outcomes) out.push_back(each.status);
    return out;
  }

  FakeStream* waiting = nullptr;
  std::string blocked;  // replies behind that of WAIT
  int waits = 0;
  std::vector<RenewOutcome> outcomes;
};

TEST_F(AcknowledgedRenewalsTest, AreAnsweredWithTheNumberOfReplicasAndCountFromWhenTheyWereSent) {
  const TimePoint sent = engine.now();
  renew();
  engine.advance(500ms);
  EXPECT_TRUE(outcomes.empty()) << "no replica has acknowledged";
  acknowledge(1);
  ASSERT_EQ(statuses(), std::vector{Status::renewed});
  EXPECT_EQ(outcomes[0].valid_until, lease_valid_until(sent, 8s));
  renew();
  acknowledge(0);
  ASSERT_EQ(statuses(), (std::vector{Status::renewed, Status::failed}));
  EXPECT_NE(outcomes[1].failure.detail.find("0 of 1"), std::string::npos) << outcomes[1].failure.detail;
}

TEST_F(AcknowledgedRenewalsTest, ShareAWait) {
  renew();
  renew(50);
  EXPECT_EQ(waits, 1);
  acknowledge(1);
  EXPECT_EQ(waits, 2) << "for all that were answered together";
  acknowledge(1);
  EXPECT_EQ(statuses(), std::vector(51, Status::renewed));
}

TEST_F(AcknowledgedRenewalsTest, OfLongLeasesWaitOnWhenTheShortOnesHaveFailed) {
  send(1s);
  send(30s);
  engine.run();
  EXPECT_EQ(waits, 1);
  acknowledge(0);
  EXPECT_EQ(statuses(), std::vector{Status::failed});
  EXPECT_EQ(waits, 2);
  acknowledge(1);
  EXPECT_EQ(statuses(), (std::vector{Status::failed, Status::renewed}));
}

// An undone acquire must not wait for the replicas that the next write waits for.
TEST_F(AcknowledgedRenewalsTest, AreAskedForAgainOnlyAfterTheAcquireThatFailedIsUndone) {
  std::vector<std::string> sent;
  server.answer = [&, others = server.answer](FakeStream& stream, const Words& command) -> std::string {
    const Script* const script = script_in(command);
    if (script != nullptr || command.front() == "WAIT") sent.emplace_back(script ? script->name : "WAIT");
    if (script == &acquire_script()) return granted(7);
    return script == &release_script() ? released() : others(stream, command);
  };
  const auto attempt = contend(false);
  renew(1, 30s);
  acknowledge(0);
  EXPECT_TRUE(attempt->failure);
  EXPECT_EQ(sent, (std::vector<std::string>{"acquire", "WAIT", "renew", "release", "WAIT"}));
}

TEST_F(AcknowledgedRenewalsTest, EndInTheirOwnTimeIfReplicasDoNotAcknowledge) {
  renew(1, 6s);   // has 1.5 s
  renew(1, 30s);  // has the response timeout of 2 s
  engine.advance(1500ms);
  EXPECT_EQ(statuses(), std::vector{Status::failed});
  engine.advance(500ms);
  EXPECT_EQ(statuses(), (std::vector{Status::failed, Status::failed}));
}

// A WAIT on a new connection counts all replicas, for it knows of no write.
TEST_F(AcknowledgedRenewalsTest, OfABrokenConnectionDoNotCountOnANewOne) {
  renew();
  renew(2);
  acknowledge(1);
  EXPECT_EQ(waits, 2) << "for the second renewal; the third was answered after that";
  waiting = nullptr;
  server.cut();
  engine.advance(1s);
  EXPECT_EQ(statuses(), (std::vector{Status::renewed, Status::failed, Status::failed}));
  EXPECT_EQ(waits, 2);
  renew();
  acknowledge(1);
  EXPECT_EQ(outcomes.back().status, Status::renewed);
}

}  // namespace

}  // namespace dlock::redis
