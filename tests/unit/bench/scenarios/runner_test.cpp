#include "bench/scenarios/runner.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>

#include <dlock/error.hpp>

#include "bench/scenarios/quantities.hpp"
#include "tests/unit/bench/scenarios/test_target.hpp"

namespace dlock::bench {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(QuantitiesTest, Quantity_IsComputedFromTheRound) {
  Round round;
  for (int i = 1; i <= 1000; ++i) round.window.samples.add(microseconds(i));
  round.window.calls_of_each = {3, 1};
  round.window.length = milliseconds(500);
  round.window.processor_time = milliseconds(20);
  round.window.context_switches = 6;
  round.window.longest_wait = milliseconds(7);
  round.operations = 9;
  round.memory = 77;
  round.lease = seconds(2);
  using namespace quantity;
  const struct {
    Quantity quantity;
    std::string name;
    std::string unit;
    Better better;
    std::optional<double> value;
  } rows[] = {
      {p50, "p50", "us", Better::lower, 500},
      {p90, "p90", "us", Better::lower, 900},
      {p99, "p99", "us", Better::lower, 990},
      {p999, "p99.9", "us", Better::lower, 999},
      {longest, "max", "us", Better::lower, 1000},
      {samples, "samples", "", Better::neither, 1000},
      {throughput, "throughput", "1/s", Better::higher, 8},
      {hand_offs, "hand-offs", "1/s", Better::higher, 8},
      {fairness, "fairness", "", Better::higher, 0.8},
      {longest_wait, "longest wait", "us", Better::lower, 7000},
      {operations, "operations", "", Better::lower, 9},
      {wake_ups, "wake-ups", "", Better::lower, std::nullopt},
      {client_cpu_each, "client processor time", "us", Better::lower, 5000},
      {client_cpu_share, "client processor time", "%", Better::lower, 4},
      {context_switches, "context switches", "", Better::lower, 1.5},
      {memory, "memory", "B", Better::lower, 77},
      {lease, "lease", "us", Better::neither, 2e6},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(row.quantity.name, row.name);
    EXPECT_EQ(row.quantity.unit, row.unit) << row.name;
    EXPECT_EQ(row.quantity.better, row.better) << row.name;
    EXPECT_EQ(row.quantity.of(round), row.value) << row.name;
  }
}

constexpr std::array per_repeat{quantity::p50, quantity::wake_ups};
constexpr std::array of_all{quantity::longest};

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
  const Measurement& by_hand = measured[1];
  EXPECT_EQ(by_hand.scenario, "latency");
  EXPECT_EQ(by_hand.service, "the service");
  EXPECT_EQ(by_hand.who, Who::by_hand);
  EXPECT_EQ(by_hand.parameters, (Parameters{{"rate", 5}}));
  ASSERT_EQ(by_hand.figures.size(), 2U) << "wake-ups are not known";
  EXPECT_EQ(by_hand.figures[0].repeats, (std::vector<double>{1000, 2000, 3000}));
  EXPECT_EQ(by_hand.figures[1].repeats, std::vector<double>{3000});
  EXPECT_EQ(by_hand.cdf.size(), 3U);
  EXPECT_EQ(measured[0].figures[0].repeats, (std::vector<double>{10, 20, 30}));
}

TEST_F(MeasureTest, Stop_KeepsCompleteRepeats) {
  for (const bool cancelled : {false, true}) {
    turns_.clear();
    stop_ = {};
    on_turn_ = [&] {
      if (turns_.size() < 4) return;
      stop_.request_stop();
      if (cancelled) throw Error(errc::cancelled);
    };
    const auto measured = run();
    EXPECT_EQ(turns_, "dhdh");
    ASSERT_EQ(measured.size(), 2U);
    for (const Measurement& each : measured) EXPECT_EQ(each.figures[0].repeats.size(), 1U);
  }
  on_turn_ = {};
  EXPECT_TRUE(run().empty()) << "not one";
}

TEST_F(MeasureTest, OtherError_EndsTheMeasurement) {
  on_turn_ = [] { throw Error(errc::cancelled); };
  EXPECT_THROW((void)run(), Error) << "nobody asked for a stop";
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

  std::string log;

 private:
  [[nodiscard]] Window take() override {
    begun_ = !begun_;
    if (begun_) return {};
    log += "w";
    calls_ += 10 * log.size();
    return {};
  }
  [[nodiscard]] bool has_sample() const override { return true; }

  bool begun_ = false;
  std::uint64_t calls_ = 0;
};

TEST(RoundsTest, Load_IsWarmedUpAndItsOperationsAreCountedPerCall) {
  Plan plan = tiny_plan();
  plan.round = plan.warm_up = milliseconds(0);
  const struct {
    WarmUp warm_up;
    std::string log;
  } rows[] = {{{}, "w"}, {{55, std::chrono::hours(1)}, "www"}, {{55, seconds(0)}, "w"}};
  for (const auto& row : rows) {
    TestTarget target;
    const auto load = std::make_shared<MoreCalls>();
    const Rounds rounds = rounds_of(plan, load, row.warm_up, &target, {});
    EXPECT_EQ(load->log, row.log);
    for (std::size_t repeat = 1; repeat <= 2; ++repeat) {
      const auto calls = static_cast<double>(10 * (row.log.size() + repeat));
      const Round round = rounds(0, {});
      EXPECT_DOUBLE_EQ(round.operations.value(), 1000 / calls);
      EXPECT_DOUBLE_EQ(round.wake_ups.value(), 10 / calls);
    }
    EXPECT_EQ(rounds_of(plan, load, row.warm_up, nullptr, {})(0, {}).operations, std::nullopt);
  }
}

// Each call is an operation when it begins. The first takes an hour, it says.
TEST(RoundsTest, SeparateRounds_CountOperationsOfAllCalls) {
  const Plan plan = tiny_plan();
  TestTarget target;
  std::atomic<int> begun = 0;
  const auto spin = [](microseconds length) {
    for (const auto end = Clock::now() + length; Clock::now() < end;) std::this_thread::yield();
  };
  target.count_operations = [&] {
    spin(milliseconds(1));  // callers at work would go on
    return static_cast<double>(begun);
  };
  const auto begin = [&] {
    begun = 0;
    return [&](std::size_t, const std::stop_token&) {
      return [&](const std::stop_token&) {
        const bool first = ++begun == 1;
        spin(microseconds(100));
        return std::optional<Clock::duration>(first ? std::chrono::hours(1) : microseconds(1));
      };
    };
  };
  const Round round = separate_rounds(plan, 1, begin, &target)(0, {});
  EXPECT_EQ(round.operations, 1);
  EXPECT_DOUBLE_EQ(round.window.samples.longest(), 1);
}

TEST(RoundsTest, OpenLoop_IsWarmedUpByAnotherCrowd) {
  const Plan plan = tiny_plan();
  std::string log;  // by one caller at a time
  const auto make = [&](std::size_t, const std::stop_token&) {
    log += 'm';
    return [&](const std::stop_token&) {
      if (log.back() == 'm') log += 'c';
      return std::optional<Clock::duration>(microseconds(1));
    };
  };
  (void)open_loop(plan, 1000, make)(0, {});
  EXPECT_EQ(log, "mcmc");
}

}  // namespace
}  // namespace dlock::bench
