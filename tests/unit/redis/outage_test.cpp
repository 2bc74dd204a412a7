// A server that refuses, or that breaks each connection: how often it is asked and dialled, and how soon all goes on
// when it works again.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "backend_fixture.hpp"

namespace dlock::redis {

namespace {

constexpr auto readonly = "-READONLY You can't write against a read only replica.\r\n";

constexpr std::size_t crowd = 60;

class OutageTest : public BackendTest {
 protected:
  static std::size_t grants(const std::vector<std::unique_ptr<Attempt>>& attempts) {
    return static_cast<std::size_t>(std::count_if(attempts.begin(), attempts.end(),
                                                  [](const auto& attempt) { return attempt->grant.has_value(); }));
  }
  std::size_t subscriptions() const {
    return static_cast<std::size_t>(std::count_if(server.commands.begin(), server.commands.end(),
                                                  [](const Words& command) { return command.front() == "SUBSCRIBE"; }));
  }
};

// By the strategy and the error that the server answers with.
class RefusingServerTest : public OutageTest, public testing::WithParamInterface<std::tuple<const char*, const char*>> {
 protected:
  [[nodiscard]] std::string url() const { return std::string("redis://localhost?strategy=") + std::get<0>(GetParam()); }
  [[nodiscard]] std::string refusal() const { return std::get<1>(GetParam()); }
};

// Each waiter asks twice a second when it backs off by itself: a crowd would ask 4,500 times in a minute.
TEST_P(RefusingServerTest, IsAskedByOneWaiterInPlaceOfAllAndServesEverybodySoonOnceItWorksAgain) {
  set({.acquire = busy(30'000, 50)});
  backend = make(url());
  const auto attempts = contend_many(crowd);
  engine.advance(1s);
  set({.acquire = refusal()});
  const auto asked_and_dialled_in = [this](std::chrono::nanoseconds time) {
    const std::pair before(server.commands.size(), server.dialled);
    engine.advance(time);
    return std::pair(server.commands.size() - before.first, server.dialled - before.second);
  };
  const auto [asked_first, dialled_first] = asked_and_dialled_in(10s);
  EXPECT_LE(asked_first, 150U) << "no storm when it begins";
  EXPECT_LE(dialled_first, 100);
  const auto [asked, dialled] = asked_and_dialled_in(1min);
  EXPECT_LE(asked, 300U);
  EXPECT_LE(dialled, 300);
  EXPECT_GE(asked, 60U) << "nobody looks whether it is over";
  EXPECT_GT(attempts.front()->unreachable_reports.size(), 0U);
  set({.acquire = granted(7)});
  engine.advance(1500ms);
  EXPECT_EQ(grants(attempts), crowd);
}

TEST_P(RefusingServerTest, KeepsALoneWaiterNoLongerThanItsOwnBackOff) {
  set({.acquire = busy()});
  backend = make(url());
  const auto attempt = contend(true);
  engine.advance(1s);
  set({.acquire = refusal()});
  engine.advance(1min);
  set({.acquire = granted(7)});
  engine.advance(1s);
  EXPECT_TRUE(attempt->grant);
}

INSTANTIATE_TEST_SUITE_P(
    , RefusingServerTest,
    testing::Combine(testing::Values("queue", "broadcast", "poll"),
                     // Of those that break the connection, and of those that do not.
                     testing::Values(readonly, "-LOADING Redis is loading the dataset in memory\r\n",
                                     "-OOM command not allowed when used memory > 'maxmemory'.\r\n")),
    [](const auto& combination) {
      const std::string error = std::get<1>(combination.param);
      return std::string(std::get<0>(combination.param)) + "_" + error.substr(1, error.find(' ') - 1);
    });

TEST_F(OutageTest, AServerThatClosesEachConnectionIsDialledLessAndLess) {
  set({.acquire = busy(30'000, 50)});
  const auto attempts = contend_many(crowd);
  engine.advance(1s);
  server.answer = [](FakeStream& wire, const Words& command) -> std::string {
    if (script_in(command) != nullptr) wire.close({errc::unavailable, "closed"});
    return "";
  };
  const auto before = server.commands.size();
  const int dialled = server.dialled;
  engine.advance(1min);
  EXPECT_LE(server.commands.size() - before, 500U);
  EXPECT_LE(server.dialled - dialled, 300);
}

TEST_F(OutageTest, AServerThatRefusesSubscriptionsIsAskedForThemLessAndLess) {
  server.answer = [](FakeStream&, const Words& command) -> std::string {
    if (command.front() == "SUBSCRIBE") return "-ERR not here\r\n";
    return script_in(command) != nullptr ? busy() : "";
  };
  const auto attempt = contend(true);
  engine.advance(1min);
  EXPECT_LE(subscriptions(), 150U);
  EXPECT_GE(subscriptions(), 30U);
  EXPECT_LE(server.dialled, 150);
}

TEST_F(OutageTest, AServerThatBreaksEachSubscriptionIsDialledLessAndLess) {
  server.answer = [](FakeStream& wire, const Words& command) -> std::string {
    if (command.front() == "SUBSCRIBE") {
      wire.reply(subscribed(command[1]));
      wire.close({errc::unavailable, "closed"});
    }
    return script_in(command) != nullptr ? busy() : "";
  };
  const auto attempt = contend(true);
  engine.advance(1min);
  EXPECT_LE(server.dialled, 150);
}

TEST_F(OutageTest, WhoWatchesLooksAsSoonAsABrokenConnectionIsBack) {
  set({.acquire = busy(30'000, -1)});
  backend = make("redis://localhost?strategy=broadcast");
  const auto attempt = contend(true);
  engine.advance(5s);
  set({.acquire = granted(7)});
  server.cut();
  engine.advance(20ms);
  EXPECT_TRUE(attempt->grant);
}

// Contract: a holder's renewals are retried quickly, whatever waiters do.
TEST_F(OutageTest, AHolderGoesOnTryingToRenewWhereWaitersBackOff) {
  set({.acquire = granted(7)});
  const auto holder = contend(false, 10s);
  ASSERT_TRUE(holder->grant);
  set({.acquire = readonly, .renew = readonly});
  const auto attempts = contend_many(crowd);
  engine.advance(10s);
  for (int i = 0; i < 5; ++i) {
    const auto before = server.calls("renew").size();
    renew(*holder);
    engine.advance(60ms);
    EXPECT_EQ(server.calls("renew").size(), before + 1) << "it was not sent";
    EXPECT_TRUE(renewed);
  }
  set({.acquire = readonly, .renew = number(1)});
  renew(*holder);
  engine.advance(60ms);
  ASSERT_TRUE(renewed);
  EXPECT_EQ(renewed->status, RenewOutcome::Status::renewed);
}

TEST_F(OutageTest, AServerThatIsAwayForAShortTimeCostsNobodyMuch) {
  set({.acquire = busy(30'000, 50)});
  const auto attempts = contend_many(crowd);
  engine.advance(1min);
  server.dialling = FakeServer::Dialling::refuse;
  server.cut();
  engine.advance(300ms);
  server.dialling = FakeServer::Dialling::accept;
  set({.acquire = granted(7)});
  engine.advance(300ms);
  EXPECT_EQ(grants(attempts), crowd);
}

TEST_F(OutageTest, WhoGaveUpIsCleanedUpAfterOneByOneAndThenAtOnce) {
  set({.acquire = busy(30'000, 50), .renew = "", .release = readonly});
  auto attempts = contend_many(crowd);
  set({.acquire = readonly, .renew = "", .release = readonly});
  attempts.clear();
  engine.advance(10s);
  const auto before = server.commands.size();
  engine.advance(10s);
  EXPECT_LE(server.commands.size() - before, 60U);
  set({.acquire = readonly, .renew = "", .release = nobodys()});
  close();
  engine.advance(3s);
  EXPECT_TRUE(closed);
}

TEST_F(OutageTest, ATryIsMadeWhateverWaitersKnow) {
  set({.acquire = "-LOADING Redis is loading the dataset in memory\r\n"});
  const auto waiting = contend(true);
  engine.advance(1min);
  set({.acquire = granted(7)});
  const auto attempt = contend(false);
  EXPECT_TRUE(attempt->grant);
  EXPECT_TRUE(waiting->grant) << "its success is news for those who wait";
}

}  // namespace

}  // namespace dlock::redis
