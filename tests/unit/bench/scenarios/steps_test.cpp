#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "bench/report/figures.hpp"
#include "bench/scenarios/scenario.hpp"
#include "bench/scenarios/work.hpp"
#include "bench/session.hpp"
#include "tests/support/fake_backend.hpp"
#include "tests/unit/bench/scenarios/test_target.hpp"

namespace dlock::bench {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;

// The steps on a store in this process: what comes out, not how fast it was.
class StepsTest : public testing::Test {
 protected:
  StepsTest() {
    target_.count_operations = [this, count = target_.count_operations] {
      if (!counted_first_) counted_first_ = Clock::now();
      return count();
    };
  }
  std::vector<Step> steps(const std::string& scenario) {
    plan_.scenarios = {scenario};
    return steps_of(target_, plan_);
  }
  std::vector<std::string> names(const std::string& scenario) {
    std::vector<std::string> result;
    for (const Step& step : steps(scenario)) result.push_back(step.what);
    return result;
  }
  std::vector<Measurement> run(const std::string& scenario) {
    std::vector<Measurement> all;
    for (const Step& step : steps(scenario)) {
      EXPECT_GT(step.expected, milliseconds(0));
      for (Measurement& each : step.run({})) all.push_back(std::move(each));
    }
    return all;
  }

  std::optional<Clock::time_point> counted_first_;  // operations of the target
  TestTarget target_;
  Plan plan_ = tiny_plan();
};

std::string figures_of(const Measurement& measurement) {
  std::string names;
  for (const Figure& figure : measurement.figures) names += (names.empty() ? "" : ", ") + figure.name;
  return names;
}

// Percentiles are in order; what is measured is above zero.
void expect_sound(const Measurement& measurement, std::size_t repeats) {
  for (const Figure& figure : measurement.figures) EXPECT_EQ(figure.repeats.size(), repeats) << figure.name;
  for (std::size_t i = 0; i < repeats; ++i) {
    double last = 0;
    for (const char* name : {figure::p50, figure::p90, figure::p99, figure::p999, figure::longest}) {
      const Figure* figure = measurement.figure(name);
      if (figure == nullptr || measurement.who != Who::dlock) continue;  // a floor of the test takes no time
      EXPECT_GT(figure->repeats[i], 0) << name;
      EXPECT_GE(figure->repeats[i], last) << name;
      last = figure->repeats[i];
    }
    for (const char* name : {figure::throughput, figure::hand_offs, figure::fairness}) {
      const Figure* figure = measurement.figure(name);
      EXPECT_TRUE(figure == nullptr || figure->repeats[i] > 0) << name;
    }
    const Figure* fairness = measurement.figure(figure::fairness);
    EXPECT_TRUE(fairness == nullptr || fairness->repeats[i] <= 1 + 1e-9);
  }
}

constexpr auto times = "p50, p90, p99, p99.9, max, samples, context switches";
constexpr auto of_callers = "throughput, p50, p99, client processor time, context switches";
constexpr auto of_dlock = "throughput, p50, p99, client processor time, context switches, operations";
constexpr auto of_contention = "hand-offs, p50, p90, p99, max, fairness, longest wait, operations, wake-ups";

TEST_F(StepsTest, Scenario_HasItsParametersSidesAndFigures) {
  plan_.held = 0;  // takes a second; see below
  const struct {
    const char* scenario;
    Parameters parameters;
    Who who;
    std::string figures;
    bool distribution;
  } rows[] = {
      {"latency", {}, Who::dlock, times, true},
      {"latency", {}, Who::by_hand, times, true},
      {"latency", {{"round_trip_ms", 3}}, Who::dlock, times, true},
      {"latency", {{"round_trip_ms", 3}}, Who::by_hand, times, true},
      {"throughput", {{"callers", 1}}, Who::dlock, of_dlock, false},
      {"throughput", {{"callers", 1}}, Who::by_hand, of_callers, false},
      {"throughput", {{"callers", 4}}, Who::dlock, of_dlock, false},
      {"throughput", {{"callers", 4}}, Who::by_hand, of_callers, false},
      {"throughput", {{"outstanding", 4}}, Who::dlock, of_dlock, false},
      {"throughput", {{"outstanding", 20}}, Who::dlock, of_dlock, false},
      {"throughput", {{"callers", 8}, {"reads", 95}}, Who::dlock, "throughput", false},
      {"throughput", {{"callers", 64}, {"reads", 95}}, Who::dlock, "throughput", false},
      {"throughput", {{"callers", 8}, {"reads", 50}}, Who::dlock, "throughput", false},
      {"throughput", {{"callers", 64}, {"reads", 50}}, Who::dlock, "throughput", false},
      {"throughput", {{"callers", 64}, {"permits", 4}}, Who::dlock, "throughput", false},
      {"contention", {{"waiters", 2}}, Who::dlock, of_contention, true},
      {"contention", {{"waiters", 5}}, Who::dlock, of_contention, true},
      {"contention", {{"round_trip_ms", 3}, {"waiters", 8}}, Who::dlock, of_contention, true},
      {"contention", {{"callers", 64}, {"names", 1000}}, Who::dlock, "throughput, p50, p99, max, fairness", true},
      {"contention", {{"readers", 8}}, Who::dlock, "p50, p99", false},
  };
  EXPECT_THAT(scenario_names(), ElementsAre("latency", "throughput", "contention", "recovery"));
  std::vector<Measurement> measured;
  for (const std::string& scenario : scenario_names()) {
    for (Measurement& each : run(scenario)) measured.push_back(std::move(each));
  }
  ASSERT_EQ(measured.size(), std::size(rows));
  for (std::size_t i = 0; i < measured.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(measured[i].scenario, rows[i].scenario);
    EXPECT_EQ(measured[i].service, "the service");
    EXPECT_EQ(measured[i].parameters, rows[i].parameters);
    EXPECT_EQ(measured[i].who, rows[i].who);
    EXPECT_EQ(figures_of(measured[i]), rows[i].figures);
    EXPECT_EQ(measured[i].cdf.empty(), !rows[i].distribution);
    expect_sound(measured[i], 2);
  }
  // Each time, it is asked first whether there is a way to the target at all.
  EXPECT_THAT(target_.distances(), ElementsAre(milliseconds(1), milliseconds(3), milliseconds(1), milliseconds(3)));
}

TEST_F(StepsTest, HeldNames_AreMeasuredAfterTheirFirstRenewals) {
  plan_.callers = plan_.outstanding = {};
  plan_.repeats = 1;
  target_.most_locks_ = 7;
  const auto start = Clock::now();
  const auto measured = run("throughput");
  ASSERT_EQ(measured.size(), 1U);
  EXPECT_EQ(measured[0].parameters, (Parameters{{"held", 7}})) << "no more than the service takes";
  EXPECT_EQ(figures_of(measured[0]), "client processor time, operations, memory, lease");
  EXPECT_EQ(measured[0].figure(figure::client_cpu)->unit, "%");
  EXPECT_EQ(measured[0].figure(figure::lease)->repeats, std::vector<double>{2e6});
  EXPECT_GE(counted_first_.value() - start, milliseconds(666)) << "the first renewals have passed";
  // A thousand for seven names in two thirds of a second.
  EXPECT_NEAR(measured[0].figure(figure::operations)->repeats[0], 1000 / 7.0 * 1.5, 60);
}

// A backend without read-write locks and semaphores, and a service that counts nothing, is not reached over TCP and has
// no floor.
TEST_F(StepsTest, ImpossibleMeasurement_IsLeftOut) {
  const auto service = std::make_shared<test::FakeService>();
  register_backend("bench-fake", service->factory());
  TestTarget target("bench-fake://");
  target.over_tcp = false;
  plan_.dlock_program = "/bin/true";
  std::vector<std::string> names;
  for (const Step& step : steps_of(target, plan_)) names.push_back(step.what);
  EXPECT_THAT(
      names,
      testing::Not(testing::Contains(testing::AnyOf(testing::HasSubstr("round trip"), testing::HasSubstr("reads"),
                                                    testing::HasSubstr("reader"), testing::HasSubstr("permits")))));
  target_.counts = target_.has_floor_ = target_.over_tcp = false;
  plan_.held = 0;
  for (const Measurement& each : run("throughput")) {
    EXPECT_EQ(each.who, Who::dlock);
    EXPECT_EQ(each.figure(figure::operations), nullptr);
  }
}

TEST_F(StepsTest, LimitsOfTheService_LimitTheSteps) {
  target_.most_locks_ = 8;
  target_.most_floors_ = 1;
  plan_.callers = {1, 8, 9};
  plan_.outstanding = {4, 20, 30};
  plan_.waiters = {2, 7, 8};
  plan_.held = 0;
  EXPECT_THAT(
      names("throughput"),
      ElementsAre("throughput, 1 caller", "throughput, 8 callers", "throughput, 4 under way", "throughput, 8 under way",
                  "throughput, 8 callers, 95 % reads", "throughput, 8 callers, 50 % reads"));
  EXPECT_THAT(names("contention"),
              ElementsAre("contention, 2 waiters", "contention, 7 waiters", "contention, 8 callers, 1000 names"));
  const auto measured = run("throughput");
  ASSERT_EQ(measured.size(), 7U);
  EXPECT_EQ(measured[1].who, Who::by_hand);
  EXPECT_EQ(measured[2].parameters, (Parameters{{"callers", 8}})) << "without a floor";
}

TEST_F(StepsTest, Contenders_HaveHadATurnEachBeforeTheWindow) {
  plan_.waiters = {100};
  const auto start = Clock::now();
  EXPECT_EQ(steps("contention")[0].run({}).size(), 1U);
  EXPECT_GE(counted_first_.value() - start, 101 * contended_hold);
}

// The first client is asked for its capabilities.
TEST_F(StepsTest, Callers_AreSpreadOverClientsAndFloorsHaveNames) {
  plan_.callers = {3};
  plan_.waiters = {20};
  plan_.repeats = 1;
  const struct {
    std::string step;
    std::vector<std::size_t> clients;
    std::vector<std::string> floors;
  } rows[] = {
      {"contention, 20 waiters", std::vector<std::size_t>(8, 3), {}},
      {"contention, a writer among 8 readers", std::vector<std::size_t>(8, 2), {}},
      {"throughput, 8 callers, 95 % reads", std::vector<std::size_t>(8, 1), {}},
      {"throughput, 64 callers, 50 % reads", std::vector<std::size_t>(8, 8), {}},
      {"throughput, 64 callers, 4 permits", std::vector<std::size_t>(8, 8), {}},
      {"throughput, 3 callers", {3}, {"dlock-bench/floor/0", "dlock-bench/floor/1", "dlock-bench/floor/2"}},
  };
  for (const auto& row : rows) {
    TestTarget target;
    for (const Step& step : steps_of(target, plan_)) {
      if (step.what == row.step) (void)step.run({});
    }
    std::vector<std::size_t> clients = {1};
    clients.insert(clients.end(), row.clients.begin(), row.clients.end());
    EXPECT_EQ(target.clients(), clients) << row.step;
    EXPECT_THAT(target.floors(), testing::UnorderedElementsAreArray(row.floors)) << row.step;
  }
}

// The floor holds up its caller until many more calls are due.
TEST_F(StepsTest, OpenLoop_CountsCallsThatNeverBegan) {
  plan_.rate = 100'000;
  plan_.repeats = 1;
  std::atomic<int> calls = 0;
  target_.on_floor_acquire = [&] {
    if (++calls > 3) std::this_thread::sleep_for(milliseconds(5));
  };
  const auto measured = steps("latency")[0].run({});
  ASSERT_EQ(measured.size(), 2U);
  for (const Measurement& each : measured) {
    EXPECT_EQ(each.parameters, (Parameters{{"rate", 100'000}}));
    EXPECT_EQ(figures_of(each), "p50, p90, p99, p99.9, max, samples");
    expect_sound(each, 1);
  }
  EXPECT_GT(measured[1].figure(figure::samples)->repeats[0], 50 + 2 * calls) << "more than were made";
  EXPECT_GT(measured[1].figure(figure::p50)->repeats[0], 500) << "for as long as they were due";
}

TEST_F(StepsTest, FailingFloor_EndsTheStep) {
  target_.on_floor_acquire = [] { throw std::runtime_error("connection refused"); };
  for (const char* scenario : {"latency", "throughput"}) EXPECT_THROW((void)run(scenario), std::runtime_error);
}

TEST_F(StepsTest, Stop_KeepsCompleteRepeats) {
  std::stop_source stop;
  plan_.repeats = 5;
  target_.on_floor_acquire = [&] {
    if (target_.floors().size() == 3) stop.request_stop();  // in the third repeat
  };
  const auto measured = steps("throughput")[0].run(stop.get_token());
  ASSERT_EQ(measured.size(), 2U);
  for (const Measurement& each : measured) expect_sound(each, 2);
  plan_.round = plan_.warm_up = std::chrono::hours(1);
  for (const std::string& scenario : scenario_names()) {
    for (const Step& step : steps(scenario)) EXPECT_TRUE(step.run(stop.get_token()).empty()) << step.what;
  }
}

}  // namespace
}  // namespace dlock::bench
