// Waiting in the server's queue and on channels: wake-ups that come, that get lost, and that are for somebody gone.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "backend_fixture.hpp"
#include "backends/redis/timing.hpp"

namespace dlock::redis {

namespace {

class RedisWaitingTest : public BackendTest {
 protected:
  std::size_t asked() const { return server.calls("acquire").size(); }
  std::string channel() const {
    for (const Words& command : server.commands) {
      if (command.front() == "SUBSCRIBE") return command.at(1);
    }
    return "";
  }
  std::ptrdiff_t asked_since(std::size_t before, std::string_view mode) const {
    const auto calls = server.calls("acquire");
    return std::count_if(calls.begin() + static_cast<std::ptrdiff_t>(before), calls.end(),
                         [&](const Words& call) { return mode_in(call) == mode; });
  }
  std::string last_value() const { return value_in(server.calls("acquire").back()); }
};

TEST_F(RedisWaitingTest, AFreeLockCostsOneRequestAndNoSubscription) {
  set({.acquire = granted(7)});
  const auto attempt = contend(true);
  EXPECT_TRUE(attempt->grant);
  EXPECT_EQ(server.commands.size(), 1U);
  EXPECT_EQ(server.dialled, 1);
}

TEST_F(RedisWaitingTest, AWaiterQueuesAtOnceAndAsksAgainWhenItCanHear) {
  set({.acquire = busy()});
  const auto attempt = contend(true);
  ASSERT_EQ(asked(), 2U);
  EXPECT_EQ(mode_in(server.calls("acquire")[0]), "blind");
  EXPECT_EQ(mode_in(server.calls("acquire")[1]), "queue");
  EXPECT_GE(attempt->busy_reports, 1);
  EXPECT_EQ(server.dialled, 2);
}

TEST_F(RedisWaitingTest, OneSubscriptionServesAllWaiters) {
  set({.acquire = busy()});
  std::vector<std::unique_ptr<Attempt>> attempts;
  for (int i = 0; i < 10; ++i) attempts.push_back(contend(true));
  EXPECT_EQ(server.dialled, 2);
  EXPECT_EQ(std::count_if(server.commands.begin(), server.commands.end(),
                          [](const Words& command) { return command.front() == "SUBSCRIBE"; }),
            1);
}

TEST_F(RedisWaitingTest, AWakeUpIsConfirmedBeforeItIsBelieved) {
  set({.acquire = busy()});
  const auto attempt = contend(true);
  const auto before = asked();
  set({.acquire = granted(9)});
  server.publish(channel(), last_value());
  EXPECT_FALSE(attempt->grant);
  engine.run();
  EXPECT_EQ(asked(), before + 1);
  ASSERT_TRUE(attempt->grant);
  EXPECT_EQ(attempt->grant->token, FencingToken(9));
}

TEST_F(RedisWaitingTest, ALostWakeUpIsMadeUpForByAsking) {
  set({.acquire = busy()});
  const auto attempt = contend(true);
  set({.acquire = granted(9)});
  engine.advance(longest_poll);
  EXPECT_TRUE(attempt->grant);
}

// Lockers in other languages tell nobody of their releases.
TEST_F(RedisWaitingTest, WhereTheKeyIsTheNameTheFirstInLineAsksOften) {
  set({.acquire = busy()});
  backend = make("redis://localhost?prefix=");
  const auto attempt = contend(true);
  const auto before = asked();
  engine.advance(2500ms);
  EXPECT_GE(asked(), before + 10);
}

TEST_F(RedisWaitingTest, AWaiterThatIsWokenAsksRarely) {
  set({.acquire = busy()});
  const auto attempts = contend_many(100);
  const auto before = asked();
  engine.advance(10s);
  EXPECT_GE(asked(), before + 200);
  EXPECT_LE(asked(), before + 300);
}

TEST_F(RedisWaitingTest, AWaiterThatIsToldToWatchAsksWhenTheHoldersTimeEndsAndNotBefore) {
  set({.acquire = busy(30'000, 7)});
  const auto attempt = contend(true);
  const auto before = asked();
  server.publish(channel(), last_value() + " 1000");
  engine.advance(1s);
  EXPECT_EQ(asked(), before);
  set({.acquire = granted(9)});
  engine.advance(10ms);
  EXPECT_EQ(asked(), before + 1);
  EXPECT_TRUE(attempt->grant);
}

// A wake-up may arrive after the waiter found out by asking: the lock it is about is held by then.
TEST_F(RedisWaitingTest, AWakeUpThatComesLateDoesNotReleaseWhatIsHeld) {
  set({.acquire = busy()});
  const auto attempt = contend(true);
  set({.acquire = granted(9)});
  engine.advance(longest_poll);
  ASSERT_TRUE(attempt->grant);
  attempt->contention.reset();
  server.publish(channel(), last_value());
  engine.advance(10s);
  EXPECT_TRUE(server.calls("release").empty());
}

TEST_F(RedisWaitingTest, SenselessMessagesAreIgnored) {
  set({.acquire = busy()});
  const auto attempt = contend(true);
  const auto before = asked();
  for (const std::string text : {"", "hello", ":", "x:00000000000000000000000000000001"}) {
    server.publish(channel(), text);
  }
  for (const std::string rest : {" ", " x", " -1", " 1x", " 99999999999", " 1 2"}) {
    server.publish(channel(), last_value() + rest);
  }
  server.publish("dlock:w:somebody-else", last_value());
  engine.run();
  EXPECT_EQ(asked(), before);
  EXPECT_FALSE(attempt->failure);
}

// H23
TEST_F(RedisWaitingTest, EveryWaiterAsksAfterAResubscription) {
  set({.acquire = busy(30'000, 50)});
  std::vector<std::unique_ptr<Attempt>> attempts;
  for (int i = 0; i < 5; ++i) attempts.push_back(contend(true));
  const auto before = asked();
  server.connections.back()->close({errc::unavailable, "cut"});
  engine.advance(20ms);
  // First that it cannot hear, so that it is not passed over meanwhile; then that it can.
  EXPECT_EQ(asked_since(before, "blind"), 5);
  EXPECT_EQ(asked_since(before, "queue"), 5);
}

// A release takes a client that nobody hears for dead, and its waiters lose their places.
TEST_F(RedisWaitingTest, AWaiterWhoseSubscriptionWasCutClaimsItsPlace) {
  set({.acquire = busy(30'000, 3, false, 1)});  // the first that ever waited
  const auto attempt = contend(true);
  EXPECT_EQ(ticket_in(server.calls("acquire").front()), "0");
  const auto before = asked();
  server.connections.back()->close({errc::unavailable, "cut"});
  engine.advance(20ms);
  ASSERT_EQ(asked(), before + 2);
  EXPECT_EQ(ticket_in(server.calls("acquire")[before]), "1");
  EXPECT_EQ(ticket_in(server.calls("acquire")[before + 1]), "1") << "it is heard again";
  engine.advance(longest_poll);
  ASSERT_GT(asked(), before + 2);
  EXPECT_EQ(ticket_in(server.calls("acquire").back()), "0");
}

// Which was taken from it while nobody heard it, not by somebody who overlooks it.
TEST_F(RedisWaitingTest, AWaiterWhosePlaceIsNotGivenBackAsksRarelyAllTheSame) {
  set({.acquire = busy(30'000, 30, false, 57)});
  const auto attempt = contend(true);
  server.answer = [before = server.answer](FakeWire& wire, const Words& command) {
    const bool claims =
        script_in(command) == &acquire_script() && mode_in(command) == "queue" && ticket_in(command) == "57";
    return claims ? busy(30'000, 30, true, 58) : before(wire, command);
  };
  server.connections.back()->close({errc::unavailable, "cut"});
  engine.advance(1s);
  ASSERT_EQ(mode_in(server.calls("acquire").back()), "queue");
  const auto before = asked();
  engine.advance(2s);
  EXPECT_EQ(asked(), before);
}

TEST_F(RedisWaitingTest, APlaceIsNotClaimedAfterALongSilence) {
  set({.acquire = busy(30'000, 3, false, 57)});
  const auto attempt = contend(true);
  server.dialling = FakeServer::Dialling::refuse;
  server.cut();
  engine.advance(alive_for);
  server.dialling = FakeServer::Dialling::accept;
  const auto before = asked();
  engine.advance(2s);
  ASSERT_GT(asked(), before);
  EXPECT_EQ(ticket_in(server.calls("acquire")[before]), "0");
}

// It is heard, so whoever releases the lock does not tell it, perhaps because that user may not publish.
TEST_F(RedisWaitingTest, AWaiterThatLostItsPlaceThoughItIsHeardPolls) {
  set({.acquire = busy(30'000, 30)});
  const auto attempt = contend(true);
  set({.acquire = busy(30'000, 30, true)});
  engine.advance(longest_poll);
  set({.acquire = busy(30'000, 30)});
  auto before = asked();
  engine.advance(3s);
  EXPECT_GE(asked(), before + 6) << "often enough to notice a grant";
  // Somebody tells it.
  server.publish(channel(), last_value());
  engine.run();
  before = asked();
  engine.advance(3s);
  EXPECT_EQ(asked(), before);
}

TEST_F(RedisWaitingTest, AWaiterThatIsToldToWatchIsNotOverlooked) {
  set({.acquire = busy(30'000, 30)});
  const auto attempt = contend(true);
  set({.acquire = busy(30'000, 30, true)});
  engine.advance(longest_poll);
  set({.acquire = busy(30'000, 30)});
  server.publish(channel(), last_value() + " 30000");
  engine.advance(1s);
  const auto before = asked();
  engine.advance(2s);
  EXPECT_EQ(asked(), before);
}

// The server may have been restarted, and the queue forgotten.
TEST_F(RedisWaitingTest, EveryWaiterAsksWhenTheConnectionIsBack) {
  set({.acquire = busy(30'000, 50)});
  std::vector<std::unique_ptr<Attempt>> attempts;
  for (int i = 0; i < 5; ++i) attempts.push_back(contend(true));
  const auto before = asked();
  server.connections.front()->close({errc::unavailable, "cut"});
  engine.advance(20ms);
  EXPECT_EQ(asked_since(before, "blind"), 5);
  EXPECT_EQ(asked_since(before, "queue"), 5);
}

// A master that was demoted keeps its subscribers, and the new one counts nobody there.
TEST_F(RedisWaitingTest, TheSubscriberFollowsTheCommandsToAnotherServer) {
  set({.acquire = busy()});
  const auto attempt = contend(true);
  ASSERT_EQ(server.connections.size(), 2U);
  set({.acquire = "-READONLY You can't write against a read only replica.\r\n"});
  engine.advance(longest_poll);
  EXPECT_EQ(server.subscribers(), 0) << "it stays with the server that was left";
  set({.acquire = busy()});
  const auto dialled = server.dialled;
  engine.advance(2s);
  EXPECT_EQ(server.subscribers(), 1);
  EXPECT_GE(server.dialled, dialled + 2) << "one connection is an old one";
  EXPECT_EQ(mode_in(server.calls("acquire").back()), "queue");
}

TEST_F(RedisWaitingTest, AWaiterIsHeardOnlyWhereTheServerOfItsCommandsCountsItsSubscriber) {
  bool elsewhere = true;
  server.answer = [&](FakeWire&, const Words& command) -> std::string {
    if (command.front() == "SUBSCRIBE") return subscribed(command[1]);
    if (command.front() == "PUBLISH" && elsewhere) return number(0);
    return script_in(command) != nullptr ? busy() : "";
  };
  const auto attempt = contend(true);
  EXPECT_EQ(mode_in(server.calls("acquire").back()), "blind") << "a release would take it for dead";
  const int dialled = server.dialled;
  elsewhere = false;
  engine.advance(1s);
  EXPECT_GE(server.dialled, dialled + 2) << "one connection still leads elsewhere";
  EXPECT_EQ(mode_in(server.calls("acquire").back()), "queue");
}

TEST_F(RedisWaitingTest, WhereConnectionsNeverLeadToOneServerItPollsAndLeavesThemAlone) {
  server.answer = [&](FakeWire&, const Words& command) -> std::string {
    if (command.front() == "SUBSCRIBE") return subscribed(command[1]);
    if (command.front() == "PUBLISH") return number(0);
    if (command.front() == "PING") return "+PONG\r\n";
    return script_in(command) != nullptr ? busy() : "";
  };
  const auto attempt = contend(true);
  engine.advance(1min);
  const int dialled = server.dialled;
  EXPECT_LE(dialled, 20);
  const auto before = asked();
  engine.advance(1min);
  EXPECT_EQ(server.dialled, dialled);
  EXPECT_GE(asked(), before + 60) << "often enough to notice a grant";
  EXPECT_EQ(mode_in(server.calls("acquire").back()), "blind");
}

TEST_F(RedisWaitingTest, NewConnectionsGetAsManyChecksWhetherAWaiterIsHeardAsTheFirstOnes) {
  int elsewhere = 1000;
  server.answer = [&](FakeWire&, const Words& command) -> std::string {
    if (command.front() == "SUBSCRIBE") return subscribed(command[1]);
    if (command.front() == "PUBLISH" && elsewhere-- > 0) return number(0);
    if (command.front() == "PING") return "+PONG\r\n";
    return script_in(command) != nullptr ? busy() : "";
  };
  const auto attempt = contend(true);
  engine.advance(1min);
  ASSERT_EQ(mode_in(server.calls("acquire").back()), "blind");
  elsewhere = 2;
  server.cut();
  engine.advance(1min);
  EXPECT_EQ(mode_in(server.calls("acquire").back()), "queue");
}

TEST_F(RedisWaitingTest, AWaiterThatLostItsPlaceLooksWhetherItIsHeard) {
  int dialled = 0;
  bool lost_its_place = true;
  set({.acquire = busy()});
  const auto attempt = contend(true);
  ASSERT_EQ(mode_in(server.calls("acquire").back()), "queue");
  dialled = server.dialled;
  server.answer = [&](FakeWire&, const Words& command) -> std::string {
    if (command.front() == "SUBSCRIBE") return subscribed(command[1]);
    if (command.front() == "PING") return "+PONG\r\n";
    if (command.front() == "PUBLISH") return number(server.dialled == dialled ? 0 : 1);
    return script_in(command) != nullptr ? busy(30'000, 0, std::exchange(lost_its_place, false)) : "";
  };
  engine.advance(longest_poll + 1s);
  EXPECT_EQ(server.dialled, dialled + 2);
  EXPECT_EQ(server.subscribers(), 1);
  EXPECT_EQ(mode_in(server.calls("acquire").back()), "queue");
}

TEST_F(RedisWaitingTest, ManyThatLostTheirPlacesAskOnceWhetherTheyAreHeard) {
  set({.acquire = busy(30'000, 50)});
  const auto attempts = contend_many(20);
  std::set<std::string> values;
  for (const Words& call : server.calls("acquire")) values.insert(value_in(call));
  int published = 0;
  server.answer = [&](FakeWire&, const Words& command) -> std::string {
    if (command.front() == "PUBLISH") ++published;
    return script_in(command) != nullptr ? busy(30'000, 50, true) : "";
  };
  for (const std::string& value : values) server.publish(channel(), value);
  const auto before = asked();
  engine.run();
  EXPECT_EQ(asked(), before + 20);
  EXPECT_EQ(published, 1);
}

TEST_F(RedisWaitingTest, HoweverOftenAWaiterWasNotHeardItSoonIsWhereConnectionsLeadToOneServerAgain) {
  int elsewhere = 0;
  server.answer = [&](FakeWire&, const Words& command) -> std::string {
    if (command.front() == "SUBSCRIBE") return subscribed(command[1]);
    if (command.front() == "PUBLISH" && elsewhere-- > 0) return number(0);
    if (command.front() == "PING") return "+PONG\r\n";
    return script_in(command) != nullptr ? busy(30'000, 30) : "";
  };
  const auto attempt = contend(true);
  for (int i = 0; i < 10; ++i) {
    engine.advance(10s);
    elsewhere = 1;
    server.connections.back()->close({errc::unavailable, "cut"});
    engine.advance(200ms);
    EXPECT_EQ(mode_in(server.calls("acquire").back()), "queue") << "time " << i;
  }
}

TEST_F(RedisWaitingTest, AWaiterThatCannotFindOutAnyMoreWhetherItIsHeardCountsOnNobody) {
  bool lost_its_place = true;
  set({.acquire = busy(30'000, 30)});
  const auto attempt = contend(true);
  ASSERT_EQ(mode_in(server.calls("acquire").back()), "queue");
  server.answer = [&](FakeWire&, const Words& command) -> std::string {
    if (command.front() == "PING") return "+PONG\r\n";
    if (command.front() == "PUBLISH") return "-NOPERM this user has no permissions to run the 'publish' command\r\n";
    return script_in(command) != nullptr ? busy(30'000, 30, std::exchange(lost_its_place, false)) : "";
  };
  engine.advance(longest_poll + 1s);
  EXPECT_EQ(mode_in(server.calls("acquire").back()), "blind");
}

TEST_F(RedisWaitingTest, ANewConnectionIsNotLeftForWhereTheLastOneLed) {
  int published = 0;
  bool elsewhere = true;
  server.answer = [&](FakeWire&, const Words& command) -> std::string {
    if (command.front() == "SUBSCRIBE") return subscribed(command[1]);
    if (command.front() == "PUBLISH" && ++published > 0 && elsewhere) return number(0);
    if (command.front() == "PING") return "+PONG\r\n";
    return script_in(command) != nullptr ? busy(30'000, 30) : "";
  };
  const auto attempt = contend(true);
  for (int i = 0; i < 1000 && published < 5; ++i) engine.advance(1ms);
  ASSERT_EQ(published, 5) << "and the next pause is a long one";
  elsewhere = false;
  server.cut();
  engine.advance(100ms);
  EXPECT_EQ(mode_in(server.calls("acquire").back()), "queue");
  const int dialled = server.dialled;
  engine.advance(5s);
  EXPECT_EQ(server.dialled, dialled);
}

TEST_F(RedisWaitingTest, AWaiterIsHeardWhenAServerThatLoadedForLongHasDone) {
  bool loading = false;
  server.answer = [&](FakeWire&, const Words& command) -> std::string {
    if (command.front() == "SUBSCRIBE") return subscribed(command[1]);
    if (command.front() == "PING") return "+PONG\r\n";
    if (command.front() != "PUBLISH" && script_in(command) == nullptr) return "";
    if (std::exchange(loading, true)) return "-LOADING Redis is loading the dataset in memory\r\n";
    return busy(30'000, 30);
  };
  const auto attempt = contend(true);
  const int dialled = server.dialled;
  engine.advance(1min);
  EXPECT_EQ(mode_in(server.calls("acquire").back()), "blind");
  EXPECT_EQ(server.dialled, dialled) << "another connection would tell no more";
  set({.acquire = busy(30'000, 30)});
  engine.advance(2s);
  EXPECT_EQ(mode_in(server.calls("acquire").back()), "queue");
}

// H28
TEST_F(RedisWaitingTest, WithoutTheRightToPublishItPolls) {
  int published = 0;
  server.answer = [&](FakeWire&, const Words& command) -> std::string {
    if (command.front() == "SUBSCRIBE") return subscribed(command[1]);
    if (command.front() == "PUBLISH" && ++published > 0) {
      return "-NOPERM this user has no permissions to run the 'publish' command\r\n";
    }
    return script_in(command) != nullptr ? busy(30'000, 30) : "";
  };
  const auto attempt = contend(true);
  const int dialled = server.dialled;
  const auto before = asked();
  engine.advance(3s);
  EXPECT_GE(asked(), before + 6) << "often enough to notice a grant";
  EXPECT_EQ(server.dialled, dialled);
  EXPECT_EQ(published, 1) << "it asks no more who hears it";
}

// H28
TEST_F(RedisWaitingTest, WithoutTheRightToSubscribeItPollsAndSaysSoOnce) {
  server.answer = [](FakeWire&, const Words& command) -> std::string {
    if (command.front() == "SUBSCRIBE")
      return "-NOPERM this user has no permissions to run the 'subscribe' command\r\n";
    return script_in(command) != nullptr ? busy() : "";
  };
  const auto first = contend(true);
  const auto second = contend(true);
  const int dialled = server.dialled;
  const auto before = asked();
  engine.advance(1500ms);
  EXPECT_GE(asked(), before + 8) << "often enough to notice a grant";
  EXPECT_EQ(host.warnings.size(), 1U);
  EXPECT_EQ(server.dialled, dialled);
  EXPECT_EQ(mode_in(server.calls("acquire").back()), "blind");
}

TEST_F(RedisWaitingTest, WithoutTheRightToPublishItSaysSoOnce) {
  set({.acquire = granted(7), .renew = "", .release = "*3\r\n:1\r\n:0\r\n:0\r\n"});
  for (int i = 0; i < 3; ++i) {
    const auto attempt = contend(false);
    backend->release(*attempt->grant, [](const ReleaseOutcome&) {});
    engine.run();
  }
  EXPECT_EQ(host.warnings.size(), 1U);
}

TEST_F(RedisWaitingTest, GivingUpLeavesTheQueueBehindTheLastQuestion) {
  set({.acquire = ""});  // the question is under way
  auto attempt = contend(true);
  attempt.reset();
  engine.run();
  ASSERT_EQ(server.commands.size(), 2U);
  EXPECT_EQ(server.calls("release").at(0).back(), "leave");
  EXPECT_EQ(server.calls("release").at(0).at(6), last_value());
}

TEST_F(RedisWaitingTest, WhatAnOutageRefusesIsNotAnsweredOnceTheBackendIsGone) {
  set({.acquire = "-LOADING Redis is loading the dataset in memory\r\n"});
  const auto first = contend(true);
  ASSERT_EQ(first->unreachable_reports.size(), 1U) << "the outage begins";
  Attempt second;
  second.request = {.name = "lock", .owner = host.new_owner_id(), .holder = "h", .lease = 30s, .wait = true};
  second.contention = backend->contend(second.request, second);  // may not ask, and is told so soon
  second.contention.reset();
  first->contention.reset();
  backend.reset();
  engine.run();
}

// A server that hangs carries it out when it goes on.
TEST_F(RedisWaitingTest, WhatIsNotConfirmedIsSaidOnceMoreAtTheEnd) {
  set({.acquire = busy(), .renew = "", .release = ""});
  auto attempt = contend(true);
  attempt.reset();
  engine.run();
  ASSERT_EQ(server.calls("release").size(), 1U);
  backend.reset();
  const auto calls = server.calls("release");
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_EQ(calls[1].back(), "leave");
}

TEST_F(RedisWaitingTest, GivingUpBeforeAnythingWasSentSendsNothing) {
  server.dialling = FakeServer::Dialling::silence;
  auto attempt = contend(true);
  attempt.reset();
  server.dialling = FakeServer::Dialling::accept;
  engine.advance(1min);
  EXPECT_TRUE(server.commands.empty());
}

// The release went ahead of the script's second sending; that would take the lock for nobody.
TEST_F(RedisWaitingTest, AForgottenScriptIsNotRepeatedForAWaiterThatGaveUp) {
  set({.acquire = granted(7)});
  (void)contend(false);  // from now on the script is known by its hash
  server.answer = nullptr;
  auto attempt = contend(true);
  ASSERT_EQ(asked(), 2U);
  attempt.reset();
  engine.run();
  server.connections.front()->reply("-NOSCRIPT No matching script. Please use EVAL.\r\n" + nobodys());
  engine.advance(100ms);
  EXPECT_EQ(asked(), 2U);
}

TEST_F(RedisWaitingTest, AGrantToSomebodyWhoGaveUpIsHandedOn) {
  set({.acquire = busy(), .renew = "", .release = ""});
  auto attempt = contend(true);
  const std::string value = last_value();
  attempt.reset();
  engine.run();
  EXPECT_EQ(server.calls("release").size(), 1U);
  set({.acquire = "", .renew = "", .release = nobodys()});
  server.cut();  // so a straggler is possible
  engine.advance(100ms);
  const auto before = server.calls("release").size();
  server.publish(channel(), value);
  engine.run();
  EXPECT_EQ(server.calls("release").size(), before + 1);
}

TEST_F(RedisWaitingTest, ABroadcastWakesTheWatchers) {
  set({.acquire = busy(30'000, -1)});
  backend = make("redis://localhost?strategy=broadcast");
  const auto first = contend(true);
  const auto second = contend(true);
  EXPECT_EQ(channel(), "dlock:w:lock:dlock:lock");
  const auto before = asked();
  server.publish(channel(), "");
  engine.run();
  EXPECT_EQ(asked(), before + 2);
  EXPECT_EQ(mode_in(server.calls("acquire").back()), "try");
}

// What was published before that went to nobody.
TEST_F(RedisWaitingTest, AWatcherAsksOnceMoreWhenItCanHear) {
  server.answer = [](FakeWire&, const Words& command) -> std::string {
    return script_in(command) == &acquire_script() ? busy(30'000, -1) : "";
  };
  backend = make("redis://localhost?strategy=broadcast");
  const auto attempt = contend(true);
  const auto before = asked();
  server.connections.back()->reply(subscribed(channel()));
  engine.run();
  EXPECT_EQ(asked(), before + 1);
}

TEST_F(RedisWaitingTest, TheLastWatcherEndsTheSubscription) {
  set({.acquire = busy(30'000, -1)});
  backend = make("redis://localhost?strategy=broadcast");
  auto first = contend(true);
  auto second = contend(true);
  first.reset();
  engine.run();
  const auto unsubscribed = [&] {
    return std::any_of(server.commands.begin(), server.commands.end(),
                       [](const Words& command) { return command.front() == "UNSUBSCRIBE"; });
  };
  EXPECT_FALSE(unsubscribed());
  second.reset();
  engine.run();
  EXPECT_TRUE(unsubscribed());
}

TEST_F(RedisWaitingTest, PollingNeedsNoSubscription) {
  set({.acquire = busy(30'000, -1)});
  backend = make("redis://localhost?strategy=poll");
  const auto attempt = contend(true);
  engine.advance(1s);
  EXPECT_GE(asked(), 6U);
  EXPECT_EQ(server.dialled, 1);
}

}  // namespace

}  // namespace dlock::redis
