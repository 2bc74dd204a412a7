// Scenarios over an embedded backend and floors that only call a function: what is measured, not how fast it was.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <atomic>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <dlock/error.hpp>

#include "bench/report/figures.hpp"
#include "bench/report/units.hpp"
#include "bench/scenarios/quantities.hpp"
#include "bench/scenarios/relay.hpp"
#include "bench/scenarios/runner.hpp"
#include "bench/scenarios/scenario.hpp"
#include "bench/scenarios/work.hpp"
#include "tests/support/fake_backend.hpp"
#include "torture/rig/scratch_directory.hpp"

namespace dlock::bench {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

class TestTarget final : public Target {
 public:
  explicit TestTarget(std::string url = "memory://") : url_(std::move(url)) { info_.label = "the service"; }

  [[nodiscard]] std::string url(std::size_t /*locks*/) const override { return url_; }
  [[nodiscard]] std::size_t most_locks() const override { return most_locks_; }
  [[nodiscard]] std::size_t most_floors() const override { return most_floors_; }
  [[nodiscard]] bool has_floor() const override { return has_floor_; }
  [[nodiscard]] std::unique_ptr<Floor> make_floor(const std::string& /*name*/) override {
    struct TestFloor final : Floor {
      explicit TestFloor(std::function<void()> on_acquire) : on_acquire_(std::move(on_acquire)) {}
      void acquire() override { on_acquire_(); }
      void release() override {}
      std::function<void()> on_acquire_;
    };
    return std::make_unique<TestFloor>(on_floor_acquire_);
  }
  [[nodiscard]] std::optional<Operations> operations() override {
    if (!counts_) return std::nullopt;
    carried_out_ += 1000;
    return Operations{.carried_out = carried_out_, .wake_ups = carried_out_ / 100};
  }
  [[nodiscard]] std::unique_ptr<Target> at_distance(std::chrono::nanoseconds round_trip) override {
    distances_.push_back(round_trip);
    return over_tcp_ ? std::make_unique<TestTarget>(url_) : nullptr;
  }
  void clean_up() override {}

  std::size_t most_locks_ = 0;
  std::size_t most_floors_ = 0;
  bool has_floor_ = true;
  bool counts_ = true;  // a thousand operations more each time, and one wake-up for a hundred of them
  bool over_tcp_ = true;
  std::function<void()> on_floor_acquire_ = [] {};
  std::vector<std::chrono::nanoseconds> distances_;  // that were asked for

 private:
  std::string url_;
  double carried_out_ = 0;
};

TEST(QuantitiesTest, Quantity_IsComputedFromTheRound) {
  Round round;
  for (int i = 1; i <= 1000; ++i) round.window.samples.add(microseconds(i));
  round.window.calls_of_each = {3, 1};
  round.window.length = milliseconds(500);
  round.window.processor_time = milliseconds(20);
  round.window.context_switches = 6;
  round.window.longest_wait = milliseconds(7);
  round.operations = 9;
  round.lease = seconds(2);
  using namespace quantity;
  const struct {
    Quantity quantity;
    Better better;
    std::optional<double> value;
  } rows[] = {
      {p50, Better::lower, 500},
      {throughput, Better::higher, 8},
      {fairness, Better::higher, 0.8},
      {longest_wait, Better::lower, 7000},
      {operations, Better::lower, 9},
      {wake_ups, Better::lower, std::nullopt},
      {client_cpu_each, Better::lower, 5000},
      {context_switches, Better::lower, 1.5},
      {lease, Better::neither, 2e6},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(row.quantity.better, row.better) << row.quantity.name;
    EXPECT_EQ(row.quantity.of(round), row.value) << row.quantity.name;
  }
}

class MeasureTest : public testing::Test {
 protected:
  // Each round has one sample: 10 us in the first repeat, 20 in the second, and so on; a hundred times that by hand.
  Side side(Who who) {
    return {who, [this, who](int repeat, const std::stop_token&) {
              turns_ += who == Who::dlock ? "d" : "h";
              if (on_turn_) on_turn_();
              Round round;
              round.window.complete = !stop_.stop_requested();
              round.window.samples.add(microseconds((repeat + 1) * (who == Who::dlock ? 10 : 1000)));
              return round;
            }};
  }
  std::vector<Measurement> run() {
    static constexpr std::array per_repeat{quantity::p50, quantity::wake_ups};
    static constexpr std::array of_all{quantity::longest};
    Experiment experiment{"latency", {{"rate", 5}}, per_repeat, true, of_all, 3};
    experiment.sides = [this](Target&, const std::stop_token&) {
      return std::vector<Side>{side(Who::dlock), side(Who::by_hand)};
    };
    return measure(target_, experiment, stop_.get_token());
  }

  TestTarget target_;
  std::stop_source stop_;
  std::string turns_;
  std::function<void()> on_turn_;
};

TEST_F(MeasureTest, Side_HasAMeasurementOfAllRepeats) {
  const auto measured = run();
  EXPECT_EQ(turns_, "dhdhdh");
  ASSERT_EQ(measured.size(), 2U);
  EXPECT_EQ(name_of(measured[1]), "latency, 5 arrivals/s, by hand");
  ASSERT_EQ(measured[1].figures.size(), 2U) << "wake-ups are not known";
  EXPECT_EQ(measured[1].figures[0].repeats, (std::vector<double>{1000, 2000, 3000}));
  EXPECT_EQ(measured[1].figures[1].repeats, std::vector<double>{3000});
  EXPECT_EQ(measured[1].cdf.size(), 3U);
  EXPECT_EQ(measured[0].figures[0].repeats, (std::vector<double>{10, 20, 30}));
}

TEST_F(MeasureTest, StopOrFailure_EndsTheRepeats) {
  on_turn_ = [&] {
    if (turns_.size() < 4) return;
    stop_.request_stop();
    throw Error(errc::cancelled);
  };
  const auto measured = run();
  EXPECT_EQ(turns_, "dhdh");
  EXPECT_EQ(measured.size(), 2U);
  for (const Measurement& each : measured) EXPECT_EQ(each.figures[0].repeats.size(), 1U);
  stop_ = {};
  on_turn_ = [] { throw Error(errc::cancelled); };
  EXPECT_THROW((void)run(), Error) << "there was no stop";
  on_turn_ = [this] {
    stop_.request_stop();
    throw std::runtime_error("the connection broke");
  };
  EXPECT_THROW((void)run(), std::runtime_error);
}

// Ten calls end in the first window, twenty in the second, and so on.
class MoreCalls final : public Load {
 public:
  void start() override {}
  [[nodiscard]] std::uint64_t calls() const override { return calls_; }

 private:
  [[nodiscard]] Window take() override {
    begun_ = !begun_;
    if (!begun_) calls_ += 10 * ++windows_;
    return {};
  }
  [[nodiscard]] bool has_sample() const override { return true; }

  bool begun_ = false;
  std::uint64_t windows_ = 0;
  std::uint64_t calls_ = 0;
};

TEST(RoundsTest, Load_IsWarmedUpAndItsOperationsAreCountedPerCall) {
  Plan plan;
  plan.round = plan.warm_up = milliseconds(0);
  TestTarget target;
  const Rounds rounds = rounds_of(plan, std::make_shared<MoreCalls>(), {55, std::chrono::hours(1)}, &target, {});
  for (const double calls : {40.0, 50.0}) {  // 60 calls were the warm-up
    const Round round = rounds(0, {});
    EXPECT_DOUBLE_EQ(round.operations.value(), 1000 / calls);
    EXPECT_DOUBLE_EQ(round.wake_ups.value(), 10 / calls);
  }
}

class StepsTest : public testing::Test {
 protected:
  StepsTest() {
    plan_.repeats = 2;
    plan_.round = milliseconds(2);
    plan_.warm_up = milliseconds(1);
    plan_.callers = {1, 4};
    plan_.outstanding = {4};
    plan_.waiters = {2};
    plan_.round_trips_ms = {3};
    plan_.kills = 2;
    plan_.held = 0;  // takes a second
  }
  std::vector<Measurement> run(const std::string& scenario) {
    plan_.scenarios = {scenario};
    std::vector<Measurement> all;
    for (const Step& step : steps_of(target_, plan_)) {
      for (Measurement& each : step.run({})) all.push_back(std::move(each));
    }
    return all;
  }

  const rig::ScratchDirectory directory_;
  TestTarget target_;
  Plan plan_;
};

std::string described(const Measurement& measurement) {
  std::string text = name_of(measurement) + ": ";
  for (const Figure& figure : measurement.figures) text += figure.name + ", ";
  return text + (measurement.cdf.empty() ? "no distribution" : "distribution");
}

TEST_F(StepsTest, Scenario_HasItsParametersSidesAndFigures) {
  const std::string times = "p50, p90, p99, p99.9, max, samples, context switches, distribution";
  const std::string by_hand = "throughput, p50, p99, client processor time, context switches, no distribution";
  const std::string of_dlock =
      "throughput, p50, p99, client processor time, context switches, operations, no distribution";
  const std::string turns = "hand-offs, p50, p90, p99, max, fairness, longest wait, operations, wake-ups, distribution";
  std::vector<std::string> measured;
  for (const std::string scenario : {"latency", "throughput", "contention", "recovery"}) {
    for (const Measurement& each : run(scenario)) {
      measured.push_back(described(each));
      for (const Figure& figure : each.figures) EXPECT_EQ(figure.repeats.size(), 2U) << figure.name;
      for (const char* name : {figure::p50, figure::throughput, figure::hand_offs, figure::fairness}) {
        const Figure* figure = each.figure(name);  // a floor of the test takes no time
        EXPECT_TRUE(figure == nullptr || each.who == Who::by_hand || figure->lowest() > 0) << name;
      }
    }
  }
  EXPECT_THAT(measured,
              ElementsAre("latency: " + times, "latency, by hand: " + times, "latency, 3 ms round trip: " + times,
                          "latency, 3 ms round trip, by hand: " + times, "throughput, 1 caller: " + of_dlock,
                          "throughput, 1 caller, by hand: " + by_hand, "throughput, 4 callers: " + of_dlock,
                          "throughput, 4 callers, by hand: " + by_hand, "throughput, 4 under way: " + of_dlock,
                          "throughput, 8 callers, 95 % reads: throughput, no distribution",
                          "throughput, 64 callers, 95 % reads: throughput, no distribution",
                          "throughput, 8 callers, 50 % reads: throughput, no distribution",
                          "throughput, 64 callers, 50 % reads: throughput, no distribution",
                          "throughput, 64 callers, 4 permits: throughput, no distribution",
                          "contention, 2 waiters: " + turns, "contention, 3 ms round trip, 8 waiters: " + turns,
                          "contention, 64 callers, 1000 names: throughput, p50, p99, max, fairness, distribution",
                          "contention, a writer among 8 readers: p50, p99, no distribution"));
  EXPECT_THAT(target_.distances_, testing::Contains(milliseconds(3)).Times(2));
}

TEST_F(StepsTest, HeldNames_AreMeasuredAfterTheirFirstRenewals) {
  plan_.callers = plan_.outstanding = {};
  plan_.repeats = 1;
  plan_.held = 10;
  target_.most_locks_ = 7;
  const auto measured = run("throughput");
  ASSERT_EQ(measured.size(), 1U);
  EXPECT_EQ(described(measured[0]),
            "throughput, 7 names held: client processor time, operations, memory, lease, no distribution");
  EXPECT_EQ(measured[0].figure(figure::lease)->repeats, std::vector<double>{2e6});
  // A thousand for seven names in two thirds of a second.
  EXPECT_NEAR(measured[0].figure(figure::operations)->repeats[0], 1000 / 7.0 * 1.5, 60);
}

TEST_F(StepsTest, ImpossibleMeasurement_IsLeftOut) {
  target_.most_locks_ = 8;
  target_.most_floors_ = 1;
  target_.counts_ = target_.over_tcp_ = false;
  plan_.dlock_program = "/bin/true";
  plan_.callers = {1, 8, 9};
  plan_.outstanding = {4, 20, 30};
  plan_.waiters = {2, 7, 8};
  std::vector<std::string> names;
  for (const Step& step : steps_of(target_, plan_)) names.push_back(step.what);
  EXPECT_THAT(names, ElementsAre("latency", "throughput, 1 caller", "throughput, 8 callers", "throughput, 4 under way",
                                 "throughput, 8 under way", "throughput, 8 callers, 95 % reads",
                                 "throughput, 8 callers, 50 % reads", "contention, 2 waiters", "contention, 7 waiters",
                                 "contention, 8 callers, 1000 names"));
  const auto measured = run("throughput");
  ASSERT_EQ(measured.size(), 7U) << "there is a floor for one caller only";
  for (const Measurement& each : measured) EXPECT_EQ(each.figure(figure::operations), nullptr);
}

// The floor holds up its caller until many more calls are due.
TEST_F(StepsTest, OpenLoop_CountsCallsThatNeverBegan) {
  plan_.rate = 100'000;
  plan_.repeats = 1;
  plan_.round_trips_ms = {};
  std::atomic<int> calls = 0;
  target_.on_floor_acquire_ = [&] {
    if (++calls > 3) std::this_thread::sleep_for(milliseconds(5));
  };
  const auto measured = run("latency");
  ASSERT_EQ(measured.size(), 2U);
  EXPECT_GT(measured[1].figure(figure::samples)->repeats[0], 50 + 2 * calls) << "more than were made";
  EXPECT_GT(measured[1].figure(figure::p50)->repeats[0], 500) << "for as long as they were due";
}

TEST_F(StepsTest, FailingFloor_EndsTheStep) {
  target_.on_floor_acquire_ = [] { throw std::runtime_error("connection refused"); };
  for (const char* scenario : {"latency", "throughput"}) EXPECT_THROW((void)run(scenario), std::runtime_error);
}

#ifdef DLOCK_PROGRAM
TEST_F(StepsTest, Recovery_LastsFromTheKillUntilTheWaiterHolds) {
  TestTarget target("file://" + directory_.path());
  plan_.scenarios = {"recovery"};
  plan_.dlock_program = DLOCK_PROGRAM;
  const auto measured = steps_of(target, plan_).at(0).run({});
  ASSERT_EQ(measured.size(), 1U);
  EXPECT_EQ(described(measured[0]), "recovery: p50, lease, max, distribution");
  const Figure* p50 = measured[0].figure(figure::p50);
  EXPECT_EQ(p50->repeats.size(), 2U) << "one for each kill";
  EXPECT_GT(p50->lowest(), 0);
  EXPECT_EQ(measured[0].figure(figure::longest)->repeats, std::vector<double>{p50->highest()});
  EXPECT_EQ(measured[0].figure(figure::lease)->highest(), 0) << "the kernel frees the lock, not the time";
}
#endif

TEST_F(StepsTest, HolderThatHoldsNothing_IsAnError) {
  TestTarget target("file://" + directory_.path());
  plan_.scenarios = {"recovery"};
  plan_.dlock_program = directory_.path() + "/holder";
  for (const auto& [script, failure] :
       {std::pair{"printf 'trouble 1\\n1763719872512034\\ntrouble 2\\n'; exec sleep 1000",
                  "could be acquired while another process held it"},
        {"echo 'error 12' >&2; exit 74", "the holder ended: error 12"}}) {
    std::ofstream(plan_.dlock_program) << "#!/bin/sh\n" << script << "\n";
    ASSERT_EQ(::chmod(plan_.dlock_program.c_str(), 0700), 0);
    EXPECT_THAT([&] { (void)steps_of(target, plan_).at(0).run({}); },
                testing::ThrowsMessage<std::runtime_error>(HasSubstr(failure)));
  }
}

TEST(WorkTest, ReadShare_IsThatOfThePairs) {
  const auto service = std::make_shared<test::FakeService>();
  service->capabilities.read_write_locks = true;
  service->answer_everything();
  int reads = 0;  // counted on the client's thread before the pair ends
  service->on_contend = [&, grant = service->on_contend](test::FakeService::Contend& contend) {
    if (contend.request.mode == Mode::shared) ++reads;
    grant(contend);
  };
  register_backend("bench-reads", service->factory());
  const Client client = connect("bench-reads://");
  for (const int percent : {0, 95, 100}) {
    reads = 0;
    const Crowd::Work work = readers_and_writers(percent)(client, 0, {});
    for (int i = 1; i < 1000; ++i) (void)work({});
    EXPECT_NEAR(reads, 10 * percent, percent == 95 ? 20 : 0);
  }
}

TEST(RelayTest, HandOffAndLongestWait_AreOfTheTimesGiven) {
  constexpr Clock::time_point start{seconds(100)};
  Relay relay(2);
  for (const std::size_t contender : {0U, 1U}) relay.ask(contender, start);
  EXPECT_EQ(relay.take(0, start + milliseconds(1)), std::nullopt) << "there was no release";
  EXPECT_EQ(relay.take_longest_wait(start + milliseconds(5)), milliseconds(5)) << "it goes on";
  (void)relay.let_go(start + milliseconds(10));
  EXPECT_EQ(relay.take(1, start + milliseconds(13)), milliseconds(3));
  EXPECT_EQ(relay.take_longest_wait(start + seconds(9)), milliseconds(13));
  EXPECT_EQ(relay.take_longest_wait(start + seconds(9)), milliseconds(0)) << "each counts once";
}

}  // namespace
}  // namespace dlock::bench
