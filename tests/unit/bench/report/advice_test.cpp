#include "bench/report/advice.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/bench/report/sample.hpp"
#include "tests/unit/bench/report/synthetic_report.hpp"

namespace dlock::bench {
namespace {

using testing::HasSubstr;
using testing::Not;

Advice advice_for(const Report& report, const std::string& question) {
  for (const Advice& each : advice_of(report)) {
    if (each.question == question) return each;
  }
  return {};
}

Report report_of(std::vector<Measurement> measurements) {
  Report report;
  report.services = {service("memory", "queue"),
                     service("file", ""),
                     service("redis", "queue", {{"appendonly", "no"}}),
                     service("redis", "poll", {{"appendonly", "no"}}),
                     service("zookeeper", "sequential", {{"forceSync", "yes"}}),
                     service("postgresql", "advisory")};
  report.measurements = std::move(measurements);
  return report;
}

Measurement contention(const std::string& service, double waiters, Figure figure) {
  return measurement(scenario::contention, service, {{parameter::waiters, waiters}}, {std::move(figure)});
}

TEST(Advice, NothingMeasuredIsNoAdvice) {
  EXPECT_TRUE(advice_of({}).empty());
  EXPECT_TRUE(advice_of(report_of({})).empty());
}

TEST(Advice, NeverNamesWhatIsKnownToOneProcessOnly) {
  const auto all = advice_of(synthetic_report());
  EXPECT_GE(all.size(), 10U);
  for (const Advice& each : all) {
    EXPECT_THAT(each.answer, Not(HasSubstr("memory"))) << each.question;
    EXPECT_THAT(each.why, Not(HasSubstr("memory"))) << each.question;
  }
}

TEST(Advice, NamesFileForOneMachineOnly) {
  int named = 0;
  for (const Advice& each : advice_of(synthetic_report())) named += each.answer.find("file") != std::string::npos;
  EXPECT_EQ(named, 1);
  EXPECT_EQ(advice_for(synthetic_report(), "All programs run on one machine").answer, "file");
}

TEST(Advice, TheFastestDependsOnWhatACrashMayForget) {
  const Report report = report_of({latency("redis queue", {60}), latency("zookeeper sequential", {900}),
                                   latency("memory queue", {1}), latency("file", {9})});
  const Advice forgets = advice_for(report, "The lock is mostly free; a crash of the server may forget all locks");
  EXPECT_EQ(forgets.answer, "redis queue");
  EXPECT_EQ(forgets.why, "acquire and release take 60.0 µs (p50)");
  EXPECT_EQ(advice_for(report, "The lock is mostly free; grants are on disk before they are answered").answer,
            "zookeeper sequential");
}

TEST(Advice, ComparesOnlyThoseWithAsManyCallers) {
  const Report report = report_of({throughput("redis queue", 256, {100}), throughput("redis poll", 256, {90}),
                                   throughput("postgresql advisory", 64, {500}), throughput("file", 1000, {900})});
  const Advice advice = advice_for(report, "Many locks are taken at the same time");
  EXPECT_EQ(advice.answer, "redis queue");
  EXPECT_EQ(advice.why,
            "100 /s acquires and releases with 256 callers; next is redis poll with 90.0 /s; not measured with that: "
            "postgresql advisory");
}

TEST(Advice, TellsFewWaitersFromMany) {
  const Report report = report_of({contention("redis poll", 2, lower(figure::p50, {10})),
                                   contention("redis poll", 64, lower(figure::p50, {900})),
                                   contention("redis queue", 2, lower(figure::p50, {20})),
                                   contention("redis queue", 64, lower(figure::p50, {20}))});
  EXPECT_EQ(advice_for(report, "Few wait for one lock").answer, "redis poll");
  EXPECT_EQ(advice_for(report, "Many wait for one lock").answer, "redis queue");
}

TEST(Advice, NamesTheFairest) {
  const Report report = report_of({contention("redis poll", 64, higher(figure::fairness, {0.5}, "")),
                                   contention("redis queue", 64, higher(figure::fairness, {0.99}, ""))});
  const Advice advice = advice_for(report, "Everybody gets a turn");
  EXPECT_EQ(advice.answer, "redis queue");
  EXPECT_THAT(advice.why, HasSubstr("least fair is redis poll with 0.500"));
}

TEST(Advice, NamesTheQuickestRecoveryWithItsLease) {
  const auto recovery = [](const std::string& label, double lease, double p50) {
    return measurement(scenario::recovery, label, {{parameter::lease_ms, lease}}, {lower(figure::p50, {p50})});
  };
  const Report report = report_of({recovery("redis queue", 2000, 1.7e6), recovery("postgresql advisory", 0, 2000)});
  const Advice advice = advice_for(report, "Holders may crash");
  EXPECT_EQ(advice.answer, "postgresql advisory");
  EXPECT_EQ(advice.why,
            "2.00 ms after the holder was killed a waiter has the lock; next is redis queue with 1.70 s of a lease of "
            "2.00 s");
}

TEST(Advice, ComparesOnlyThoseThatHoldAsMany) {
  const auto holding = [](const std::string& label, double leases, double percent) {
    return measurement(scenario::holding, label, {{parameter::leases, leases}, {parameter::lease_ms, 2000}},
                       {lower(figure::client_cpu, {percent}, "%")});
  };
  const Report report = report_of({holding("redis queue", 1000, 1), holding("zookeeper sequential", 1000, 2),
                                   holding("postgresql advisory", 64, 0.01)});
  const Advice advice = advice_for(report, "Many locks are held for long");
  EXPECT_EQ(advice.answer, "redis queue");
  EXPECT_EQ(advice.why,
            "1000 locks held take 1.00 % of a core; next is zookeeper sequential with 2.00 %; held fewer, so not "
            "compared: postgresql advisory");
}

TEST(Advice, CountsRoundTripsOfWhatIsFarAway) {
  const auto distance = [](const std::string& label, double trip, double p50) {
    return measurement(scenario::distance, label, {{parameter::round_trip_ms, trip}}, {lower(figure::p50, {p50})});
  };
  const Report report = report_of({distance("redis queue", 0, 60), distance("redis queue", 20, 40'000),
                                   distance("zookeeper sequential", 20, 60'000)});
  const Advice advice = advice_for(report, "The service is far away");
  EXPECT_EQ(advice.answer, "redis queue");
  EXPECT_THAT(advice.why, HasSubstr("40.0 ms (p50), 2.0 round trips of 20.0 ms"));
}

TEST(Advice, WarnsOfHerds) {
  const Report report = report_of({contention("redis queue", 2, lower(figure::operations, {2}, "")),
                                   contention("redis queue", 64, lower(figure::operations, {2.5}, "")),
                                   contention("redis poll", 2, lower(figure::operations, {4}, "")),
                                   contention("redis poll", 64, lower(figure::operations, {70}, "")),
                                   contention("zookeeper sequential", 2, lower(figure::operations, {5.5}, "")),
                                   contention("zookeeper sequential", 64, lower(figure::operations, {11}, "")),
                                   contention("memory queue", 2, lower(figure::operations, {4}, "")),
                                   contention("memory queue", 64, lower(figure::operations, {70}, ""))});
  const auto herds = herds_of(report);
  ASSERT_EQ(herds.size(), 1U);
  EXPECT_EQ(herds[0].service, "redis poll");
  EXPECT_EQ(herds[0].few.count, 2);
  EXPECT_EQ(herds[0].few.value, 4);
  EXPECT_EQ(herds[0].many.count, 64);
  EXPECT_EQ(herds[0].many.value, 70);
}

}  // namespace
}  // namespace dlock::bench
