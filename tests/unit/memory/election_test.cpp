// Elections as a program uses them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>

#include <dlock/dlock.hpp>

#include "tests/support/simple_backend.hpp"
#include "torture/rig/hang_guard.hpp"
#include "util/event.hpp"

namespace dlock {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

static_assert(!std::is_copy_constructible_v<Election> && std::is_nothrow_move_constructible_v<Election>);
static_assert(!std::is_copy_constructible_v<Observation> && std::is_nothrow_move_constructible_v<Observation>);
template <class C>
concept GivesElections = requires(C client) { static_cast<C>(client).make_election("x"); };
static_assert(GivesElections<const Client&> && !GivesElections<Client&&>);

class ElectionTest : public testing::Test {
 protected:
  const Client client_ = connect("memory://elections");
  Election election_ = client_.make_election("a");
};

TEST_F(ElectionTest, ACampaignHasTheFormsOfAnAcquire) {
  std::optional<Lease> leading = election_.try_campaign({.value = "one"});
  ASSERT_TRUE(leading);
  EXPECT_EQ(leading->name(), "a");
  Election other = client_.make_election("a");
  EXPECT_FALSE(other.try_campaign());
  EXPECT_FALSE(other.try_campaign_for(1ms));
  std::error_code ec;
  EXPECT_FALSE(other.try_campaign({}, ec));
  EXPECT_FALSE(ec);
  EXPECT_FALSE(other.campaign({.wait = 1ms}, ec).has_value());
  EXPECT_EQ(ec, errc::timed_out);
  try {
    (void)other.campaign({.wait = 0ms});
    ADD_FAILURE() << "another leads";
  } catch (const Error& busy) {
    EXPECT_THAT(busy.what(), HasSubstr("election \"a\" is already held"));
  }
  std::promise<Lease> led;
  other.async_campaign({.value = "two"}, [&](std::error_code, Lease lease) { led.set_value(std::move(lease)); });
  leading.reset();
  const Lease next = led.get_future().get();
  EXPECT_TRUE(next.held());
  ASSERT_TRUE(election_.leader(ec));
  EXPECT_EQ(election_.leader(ec)->value, "two");
  EXPECT_FALSE(ec);
}

TEST_F(ElectionTest, TheNameAndTheValueAreChecked) {
  EXPECT_THROW((void)client_.make_election(""), Error);
  try {
    (void)election_.campaign({.value = std::string(1025, 'x')});
    ADD_FAILURE() << "the value is too long";
  } catch (const Error& refused) {
    EXPECT_EQ(refused.code(), errc::invalid_argument);
    EXPECT_THAT(refused.what(), HasSubstr("value is 1025 bytes long; at most 1024 are allowed"));
  }
  std::promise<std::error_code> ended;
  election_.async_campaign({.value = "\xff"}, [&](std::error_code ec, const Lease&) { ended.set_value(ec); });
  EXPECT_EQ(ended.get_future().get(), errc::invalid_argument);
}

TEST_F(ElectionTest, ABackendWithoutElectionsSaysSo) {
  const auto service = std::make_shared<test::SimpleService>();
  const Client client = connect("simple://", {}, service->factory());
  try {
    (void)client.make_election("a");
    ADD_FAILURE() << "there are none";
  } catch (const Error& refused) {
    EXPECT_EQ(refused.code(), errc::unsupported);
    EXPECT_THAT(refused.what(), HasSubstr("has no elections"));
  }
}

// --- run() -----------------------------------------------------------------------------------------------------------

TEST_F(ElectionTest, RunLeadsAgainAndAgainUntilItIsStopped) {
  std::stop_source stop;
  int terms = 0;
  election_.run(stop.get_token(), {.value = "me"}, [&](const Lease& lease, const std::stop_token&) {
    EXPECT_TRUE(lease.held());
    EXPECT_EQ(election_.leader()->value, "me");
    if (++terms == 3) stop.request_stop();
  });
  EXPECT_EQ(terms, 3);
  EXPECT_EQ(election_.leader(), std::nullopt);
  election_.run(stop.get_token(), [&](const Lease&, const std::stop_token&) { ++terms; });
  EXPECT_EQ(terms, 3) << "it was stopped before";
}

TEST_F(ElectionTest, AStopEndsTheWaitOfRun) {
  const Lease leading = election_.campaign();
  std::stop_source stop;
  std::jthread candidate(
      [&] { client_.make_election("a").run(stop.get_token(), [](const Lease&, const std::stop_token&) { FAIL(); }); });
  while (client_.inspect("a", LockKind::election).waiters != 1U) std::this_thread::yield();
  stop.request_stop();
  candidate.join();
  EXPECT_TRUE(leading.held());
}

TEST_F(ElectionTest, WhatTheLeaderThrowsComesAfterItsResignation) {
  const std::stop_source never;
  EXPECT_THROW(
      election_.run(never.get_token(), [](const Lease&, const std::stop_token&) { throw std::runtime_error("no"); }),
      std::runtime_error);
  EXPECT_EQ(election_.leader(), std::nullopt);
}

TEST_F(ElectionTest, ACampaignThatNothingHelpsEndsRun) {
  const std::stop_source never;
  try {
    election_.run(never.get_token(), {.value = "a\nb"}, [](const Lease&, const std::stop_token&) { FAIL(); });
    ADD_FAILURE() << "the value is no good";
  } catch (const Error& refused) {
    EXPECT_EQ(refused.code(), errc::invalid_argument);
  }
}

TEST_F(ElectionTest, TheTokenOfRunFiresWhenTheLeadIsLostAndWhenRunIsStopped) {
  std::stop_source stop;
  int ends = 0;
  election_.run(stop.get_token(), [&](const Lease& lease, const std::stop_token& over) {
    EXPECT_FALSE(over.stop_requested());
    util::Event ended;
    const std::stop_callback on_end(over, [&] { ended.set(); });
    if (++ends == 1) {
      client_.break_lock("a", LockKind::election);
      EXPECT_TRUE(ended.wait(rig::hang_guard)) << "after a loss";
    } else {
      EXPECT_TRUE(lease.held());
      stop.request_stop();
      EXPECT_TRUE(ended.is_set()) << "after a stop";
    }
  });
  EXPECT_EQ(ends, 2);
}

// --- Observers -------------------------------------------------------------------------------------------------------

TEST_F(ElectionTest, TheEndOfAnObservationWaitsForTheHandler) {
  util::Event called;
  util::Event go_on;
  std::atomic<bool> returned{false};
  std::optional<Observation> observation(election_.observe([&](const std::optional<Leader>&) {
    called.set();
    go_on.wait();
    returned = true;
  }));
  called.wait();
  std::jthread ends([&] {
    observation.reset();
    EXPECT_TRUE(returned);
  });
  go_on.set();
}

TEST_F(ElectionTest, AnObservationThatIsMovedGoesOnAndOneThatIsReplacedEnds) {
  std::atomic<int> first{0};
  std::promise<void> seen;
  Observation observation = election_.observe([&](const std::optional<Leader>&) { ++first; });
  Observation replaced = election_.observe([](const std::optional<Leader>&) {});
  replaced = std::move(observation);
  while (first < 1) std::this_thread::yield();
  replaced = election_.observe([&](const std::optional<Leader>& leader) {
    if (leader) seen.set_value();
  });
  const Lease leading = election_.campaign();
  seen.get_future().get();
  EXPECT_EQ(first, 1);
}

TEST_F(ElectionTest, AnObservationMayOutliveItsClient) {
  Observation observation;
  {
    const Client client = connect("memory://elections");
    util::Event called;
    observation = client.make_election("a").observe([&](const std::optional<Leader>&) { called.set(); });
    called.wait();
  }
}

TEST_F(ElectionTest, AskingOnTheEngineThreadIsAnErrorAndNoDeadlock) {
  std::promise<std::error_code> asked;
  std::atomic<bool> once{false};
  const Observation observation = election_.observe([&](const std::optional<Leader>&) {
    if (once.exchange(true)) return;
    std::error_code ec;
    (void)election_.leader(ec);
    asked.set_value(ec);
  });
  const std::error_code ec = asked.get_future().get();
  EXPECT_EQ(ec, std::errc::resource_deadlock_would_occur);
}

}  // namespace
}  // namespace dlock
