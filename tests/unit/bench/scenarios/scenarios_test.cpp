#include "bench/scenarios/scenario.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <utility>

#include "bench/report/figures.hpp"
#include "tests/support/fake_backend.hpp"
#include "tests/unit/bench/scenarios/test_target.hpp"

namespace dlock::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

// Each scenario once, against a store in this process: what comes out, not how fast it was.
class ScenariosTest : public testing::Test {
 protected:
  [[nodiscard]] static std::vector<Measurement> run(const std::vector<Step>& steps) {
    std::vector<Measurement> all;
    for (const Step& step : steps) {
      for (Measurement& each : step.run({})) {
        EXPECT_EQ(each.scenario, step.scenario);
        EXPECT_EQ(each.service, "the service");
        all.push_back(std::move(each));
      }
    }
    return all;
  }
  static std::vector<std::string> names(const std::vector<Step>& steps) {
    std::vector<std::string> result;
    for (const Step& step : steps) result.push_back(step.what);
    return result;
  }
  static std::vector<std::string> figures(const Measurement& measurement) {
    std::vector<std::string> result;
    for (const Figure& figure : measurement.figures) result.push_back(figure.name);
    return result;
  }
  static std::vector<Who> who_did(const std::vector<Measurement>& measured) {
    std::vector<Who> result;
    for (const Measurement& each : measured) result.push_back(each.who);
    return result;
  }
  // Every figure has one value a repeat, and percentiles are in order.
  static void expect_sound(const Measurement& measurement, std::size_t repeats) {
    for (const Figure& figure : measurement.figures) EXPECT_EQ(figure.repeats.size(), repeats) << figure.name;
    const Figure* p50 = measurement.figure(figure::p50);
    const Figure* p99 = measurement.figure(figure::p99);
    if (p50 == nullptr || p99 == nullptr) return;
    for (std::size_t i = 0; i < repeats; ++i) {
      EXPECT_GT(p50->repeats[i], 0);
      EXPECT_GE(p99->repeats[i], p50->repeats[i]);
    }
  }
  static std::stop_token stopped() {
    std::stop_source stop;
    stop.request_stop();
    return stop.get_token();
  }

  TestTarget target_;
  Plan plan_ = tiny_plan();
};

// --- Latency ---------------------------------------------------------------------------------------------------------

TEST_F(ScenariosTest, LatencyIsOfDlockAndOfTheFloor) {
  const auto measured = run(latency_steps(target_, plan_));
  EXPECT_THAT(who_did(measured), ElementsAre(Who::dlock, Who::by_hand));
  for (const Measurement& each : measured) {
    EXPECT_TRUE(each.parameters.empty());
    EXPECT_THAT(figures(each),
                UnorderedElementsAre("p50", "p90", "p99", "p99.9", "max", "samples", "context switches"));
    EXPECT_EQ(each.figures.front().repeats.size(), 3U);
    ASSERT_FALSE(each.cdf.empty());
    EXPECT_DOUBLE_EQ(each.cdf.back().share, 1);
  }
  expect_sound(measured[0], 3);
  EXPECT_THAT(target_.floor_names(), ElementsAre("dlock-bench/latency/floor"));
}

TEST_F(ScenariosTest, LatencyWithoutAFloorIsOfDlockAlone) {
  const auto with_floor = latency_steps(target_, plan_).front().expected;
  target_.has_floor_ = false;
  const auto steps = latency_steps(target_, plan_);
  EXPECT_EQ(steps.front().expected, with_floor / 2);
  const auto measured = run(steps);
  ASSERT_EQ(measured.size(), 1U);
  EXPECT_EQ(measured[0].who, Who::dlock);
}

TEST_F(ScenariosTest, LatencyInAnOpenLoopHasARate) {
  plan_.rate = 5000;
  const auto measured = run(latency_steps(target_, plan_));
  ASSERT_EQ(measured.size(), 2U);
  EXPECT_THAT(measured[0].parameters, ElementsAre(testing::Pair("rate", 5000)));
  EXPECT_EQ(measured[0].figure(figure::context_switches), nullptr) << "waiting for the next arrival would count";
  expect_sound(measured[0], 3);
}

// The floor holds up its caller until many more calls are due.
TEST_F(ScenariosTest, InAnOpenLoopCallsThatNeverBeganCount) {
  plan_.rate = 100'000;
  plan_.repeats = 1;
  std::atomic<int> calls = 0;
  target_.on_floor_acquire = [&] {
    if (++calls > 3) std::this_thread::sleep_for(milliseconds(5));
  };
  const auto measured = run(latency_steps(target_, plan_));
  ASSERT_EQ(measured.size(), 2U);
  EXPECT_GT(measured[1].figure(figure::samples)->repeats[0], 50 + 2 * calls) << "more than were made";
}

TEST_F(ScenariosTest, AFloorThatFailsEndsTheStepWithItsError) {
  target_.on_floor_acquire = [] { throw std::runtime_error("connection refused"); };
  const auto steps = latency_steps(target_, plan_);
  EXPECT_THROW((void)steps.front().run({}), std::runtime_error);
}

TEST_F(ScenariosTest, OnlyWholeRepeatsAreKeptWhenItIsStopped) {
  std::stop_source stop;
  target_.on_floor_acquire = [&] { stop.request_stop(); };
  EXPECT_TRUE(latency_steps(target_, plan_).front().run(stop.get_token()).empty());
}

// --- Throughput ------------------------------------------------------------------------------------------------------

TEST_F(ScenariosTest, ThroughputIsOfSoManyCallersAndOfSoManyCalls) {
  const auto steps = throughput_steps(target_, plan_);
  EXPECT_THAT(names(steps), ElementsAre("throughput, 1 caller", "throughput, 4 callers",
                                        "throughput, 4 acquires under way", "throughput, 20 acquires under way"));
  const auto measured = run(steps);
  EXPECT_THAT(who_did(measured),
              ElementsAre(Who::dlock, Who::by_hand, Who::dlock, Who::by_hand, Who::dlock, Who::dlock));
  for (const Measurement& each : measured) {
    std::vector<std::string> expected = {"throughput", "p50", "p99", "client processor time", "context switches"};
    if (each.who == Who::dlock) expected.emplace_back("operations");
    EXPECT_THAT(figures(each), testing::UnorderedElementsAreArray(expected));
    for (const double value : each.figure(figure::throughput)->repeats) EXPECT_GT(value, 0);
  }
  for (const std::size_t dlocks : {0U, 2U, 4U, 5U}) expect_sound(measured[dlocks], 3);
  for (const std::size_t one : {0U, 1U}) EXPECT_EQ(measured[one].parameters, (Parameters{{"callers", 1}}));
  for (const std::size_t four : {2U, 3U}) EXPECT_EQ(measured[four].parameters, (Parameters{{"callers", 4}}));
  EXPECT_EQ(measured[4].parameters, (Parameters{{"outstanding", 4}}));
  EXPECT_EQ(measured[5].parameters, (Parameters{{"outstanding", 20}}));
  EXPECT_THAT(target_.clients(), ElementsAre(1, 1, 1, 4, 4, 4, 4, 20));
}

TEST_F(ScenariosTest, EveryCallerOfTheFloorHasANameOfItsOwn) {
  plan_.callers = {3};
  plan_.outstanding = {};
  EXPECT_EQ(run(throughput_steps(target_, plan_)).size(), 2U);
  EXPECT_THAT(target_.floor_names(), ElementsAre("dlock-bench/throughput/floor/0", "dlock-bench/throughput/floor/1",
                                                 "dlock-bench/throughput/floor/2"));
}

TEST_F(ScenariosTest, ThroughputKeepsToWhatTheServiceHasConnectionsFor) {
  target_.most_locks_ = 3;
  target_.most_floors_ = 0;
  plan_.callers = {1, 3, 4};
  EXPECT_THAT(names(throughput_steps(target_, plan_)),
              ElementsAre("throughput, 1 caller", "throughput, 3 callers", "throughput, 3 acquires under way"))
      << "nothing twice";
  target_.most_floors_ = 1;
  const auto measured = run(throughput_steps(target_, plan_));
  EXPECT_THAT(who_did(measured), ElementsAre(Who::dlock, Who::by_hand, Who::dlock, Who::dlock));
  EXPECT_EQ(measured[2].parameters, (Parameters{{"callers", 3}}));
  EXPECT_EQ(measured[3].parameters, (Parameters{{"outstanding", 3}}));
}

TEST_F(ScenariosTest, WhatAServiceDoesNotCountIsLeftOut) {
  target_.counts = false;
  for (const Measurement& each : run(throughput_steps(target_, plan_))) {
    EXPECT_EQ(each.figure(figure::operations), nullptr);
  }
}

// --- Contention ------------------------------------------------------------------------------------------------------

TEST_F(ScenariosTest, ContentionIsOfSoManyWaiters) {
  const auto steps = contention_steps(target_, plan_);
  EXPECT_THAT(names(steps), ElementsAre("contention, 2 waiters", "contention, 5 waiters"));
  const auto measured = run(steps);
  ASSERT_EQ(measured.size(), 2U);
  EXPECT_EQ(measured[0].parameters, (Parameters{{"waiters", 2}}));
  EXPECT_EQ(measured[1].parameters, (Parameters{{"waiters", 5}}));
  for (const Measurement& each : measured) {
    EXPECT_EQ(each.who, Who::dlock);
    EXPECT_THAT(figures(each), UnorderedElementsAre("hand-offs", "p50", "p90", "p99", "max", "fairness", "longest wait",
                                                    "operations", "wake-ups"));
    expect_sound(each, 3);
    ASSERT_FALSE(each.cdf.empty());
    for (const double value : each.figure(figure::fairness)->repeats) {
      EXPECT_GT(value, 0);
      EXPECT_LE(value, 1);
    }
  }
  EXPECT_THAT(target_.clients(), ElementsAre(2, 2, 2, 2, 2, 2, 2)) << "two clients for three, five for six contenders";
}

// The store of memory:// is a queue: with turns for all of them, everybody has as many as anybody else, or one less.
TEST_F(ScenariosTest, NoContenderIsMissing) {
  plan_.waiters = {5};
  plan_.round = milliseconds(60);
  plan_.warm_up = milliseconds(20);
  plan_.repeats = 1;
  const auto measured = run(contention_steps(target_, plan_));
  ASSERT_EQ(measured.size(), 1U);
  EXPECT_GT(measured[0].figure(figure::fairness)->repeats[0], 0.9);
}

TEST_F(ScenariosTest, ContendersAreSpreadOverEightClients) {
  plan_.waiters = {20};
  EXPECT_EQ(run(contention_steps(target_, plan_)).size(), 1U);
  EXPECT_THAT(target_.clients(), ElementsAre(3, 3, 3, 3, 3, 3, 3, 3));
}

TEST_F(ScenariosTest, ContentionKeepsToWhatTheServiceHasConnectionsFor) {
  target_.most_locks_ = 5;
  EXPECT_THAT(names(contention_steps(target_, plan_)), ElementsAre("contention, 2 waiters"));
}

TEST_F(ScenariosTest, ContentionThatIsStoppedHasNothingToSay) {
  plan_.round = seconds(3600);
  plan_.warm_up = seconds(3600);
  for (const Step& step : contention_steps(target_, plan_)) EXPECT_TRUE(step.run(stopped()).empty());
}

// --- Holding ---------------------------------------------------------------------------------------------------------

TEST_F(ScenariosTest, HoldingKeepsSoManyLeases) {
  plan_.repeats = 1;
  const auto steps = holding_steps(target_, plan_);
  EXPECT_THAT(names(steps), ElementsAre("holding 10 leases"));
  const auto measured = run(steps);
  ASSERT_EQ(measured.size(), 1U);
  EXPECT_EQ(measured[0].parameters, (Parameters{{"leases", 10}, {"lease_ms", 2000}}));
  EXPECT_THAT(figures(measured[0]), UnorderedElementsAre("client processor time", "operations", "memory"));
  EXPECT_EQ(measured[0].figure(figure::client_cpu)->unit, "%");
  expect_sound(measured[0], 1);
}

TEST_F(ScenariosTest, HoldingKeepsToWhatTheServiceHasConnectionsFor) {
  target_.most_locks_ = 4;
  EXPECT_THAT(names(holding_steps(target_, plan_)), ElementsAre("holding 4 leases"));
}

TEST_F(ScenariosTest, HoldingThatIsStoppedHasNothingToSay) {
  for (const Step& step : holding_steps(target_, plan_)) EXPECT_TRUE(step.run(stopped()).empty());
}

// --- Distance --------------------------------------------------------------------------------------------------------

TEST_F(ScenariosTest, DistanceIsOfLatencyAndContentionAtEachRoundTrip) {
  const auto steps = distance_steps(target_, plan_);
  EXPECT_THAT(names(steps),
              ElementsAre("latency at 0 ms", "contention at 0 ms", "latency at 3 ms", "contention at 3 ms"));
  const auto measured = run(steps);
  ASSERT_EQ(measured.size(), 6U);
  const Parameters far{{"round_trip_ms", 3}};
  EXPECT_EQ(measured[0].parameters, (Parameters{{"round_trip_ms", 0}}));
  EXPECT_EQ(measured[1].who, Who::by_hand);
  EXPECT_EQ(measured[2].parameters, (Parameters{{"round_trip_ms", 0}, {"waiters", 8}}));
  EXPECT_EQ(measured[3].parameters, far);
  EXPECT_EQ(measured[4].parameters, far);
  EXPECT_EQ(measured[5].parameters, (Parameters{{"round_trip_ms", 3}, {"waiters", 8}}));
  EXPECT_NE(measured[5].figure(figure::hand_offs), nullptr);
  // Whether there is a way at all is asked for first.
  EXPECT_THAT(target_.distances(), ElementsAre(milliseconds(1), milliseconds(3), milliseconds(3)));
}

TEST_F(ScenariosTest, WhatIsNotReachedOverTcpHasNoDistance) {
  target_.reachable = false;
  EXPECT_TRUE(distance_steps(target_, plan_).empty());
}

// --- Mix -------------------------------------------------------------------------------------------------------------

TEST_F(ScenariosTest, AMixIsOfManyNames) {
  const auto steps = mix_steps(target_, plan_);
  EXPECT_THAT(names(steps), ElementsAre("mix, 64 callers, 1000 names"));
  const auto measured = run(steps);
  ASSERT_EQ(measured.size(), 1U);
  EXPECT_EQ(measured[0].parameters, (Parameters{{"callers", 64}, {"names", 1000}, {"hold_us", 1000}}));
  EXPECT_THAT(figures(measured[0]), UnorderedElementsAre("throughput", "p50", "p99", "max", "fairness"));
  expect_sound(measured[0], 3);
  EXPECT_FALSE(measured[0].cdf.empty());
  EXPECT_THAT(target_.clients(), ElementsAre(64));
}

TEST_F(ScenariosTest, AMixKeepsToWhatTheServiceHasConnectionsFor) {
  target_.most_locks_ = 7;
  EXPECT_THAT(names(mix_steps(target_, plan_)), ElementsAre("mix, 7 callers, 1000 names"));
}

// --- Sharing ---------------------------------------------------------------------------------------------------------

TEST_F(ScenariosTest, SharingIsOfReadersAndWritersOfOneWriterAndOfPermits) {
  const auto steps = sharing_steps(target_, plan_);
  EXPECT_THAT(names(steps), ElementsAre("sharing, 95 % reads, 8 callers", "sharing, 95 % reads, 64 callers",
                                        "sharing, 50 % reads, 8 callers", "sharing, 50 % reads, 64 callers",
                                        "sharing, a writer among 8 readers", "sharing, 4 permits, 64 callers"));
  const auto measured = run(steps);
  ASSERT_EQ(measured.size(), 6U);
  EXPECT_EQ(measured[1].parameters, (Parameters{{"callers", 64}, {"reads", 95}}));
  EXPECT_EQ(measured[2].parameters, (Parameters{{"callers", 8}, {"reads", 50}}));
  EXPECT_EQ(measured[4].parameters, (Parameters{{"readers", 8}}));
  EXPECT_EQ(measured[5].parameters, (Parameters{{"callers", 64}, {"permits", 4}}));
  for (const Measurement& each : measured) {
    const bool waits = each.parameters.contains(parameter::readers);
    EXPECT_EQ(figures(each), waits ? std::vector<std::string>({"p50", "p99"}) : std::vector<std::string>{"throughput"});
    expect_sound(each, 3);
    if (waits) continue;
    for (const double value : each.figure(figure::throughput)->repeats) EXPECT_GT(value, 0);
  }
}

TEST_F(ScenariosTest, WhoSharesIsSpreadOverEightClients) {
  target_.most_locks_ = 9;
  (void)run(sharing_steps(target_, plan_));
  std::vector<std::size_t> expected(1 + 8 + 8, 1);  // the first is asked what it can do
  expected.insert(expected.end(), 8, 2);            // nine are one more than there are clients
  EXPECT_EQ(target_.clients(), expected);
}

TEST_F(ScenariosTest, SharingKeepsToWhatTheServiceHasConnectionsFor) {
  target_.most_locks_ = 8;
  EXPECT_THAT(names(sharing_steps(target_, plan_)),
              ElementsAre("sharing, 95 % reads, 8 callers", "sharing, 50 % reads, 8 callers"));
}

TEST_F(ScenariosTest, WithoutSuchLocksThereIsNoSharing) {
  const auto service = std::make_shared<test::FakeService>();
  register_backend("bench-fake", service->factory());
  TestTarget target("bench-fake://");
  EXPECT_TRUE(sharing_steps(target, plan_).empty());
  service->capabilities.semaphores = true;
  EXPECT_THAT(names(sharing_steps(target, plan_)), ElementsAre("sharing, 4 permits, 64 callers"));
}

TEST_F(ScenariosTest, SharingThatIsStoppedHasNothingToSay) {
  plan_.round = seconds(3600);
  plan_.warm_up = seconds(3600);
  for (const Step& step : sharing_steps(target_, plan_)) EXPECT_TRUE(step.run(stopped()).empty());
}

// --- Recovery --------------------------------------------------------------------------------------------------------

TEST_F(ScenariosTest, ThereIsNoRecoveryWhereLocksEndWithTheProcess) {
  plan_.dlock_program = "/bin/true";
  EXPECT_TRUE(recovery_steps(target_, plan_).empty());
}

}  // namespace
}  // namespace dlock::bench
