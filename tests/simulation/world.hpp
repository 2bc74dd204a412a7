// The state that all parts of a simulation share: its time, its chance, what is to happen, and what did.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <dlock/clock.hpp>
#include <dlock/spi/executor.hpp>

#include "engine/timer_queue.hpp"
#include "tests/simulation/clocks.hpp"
#include "tests/support/mutants/mutation.hpp"
#include "torture/checker/checker.hpp"
#include "torture/dice.hpp"
#include "torture/history/event.hpp"

namespace dlock::simulation {

using mutants::Mutation;
using torture::Dice;
using torture::Event;
using torture::Hole;
using torture::Kind;
using torture::Rule;
using torture::Rules;

class World {
 public:
  explicit World(std::uint64_t seed, Mutation broken = Mutation::none) : dice(seed), mutation(broken) {}

  Dice dice;
  SimulatedTime time;
  const Mutation mutation;

  [[nodiscard]] TimePoint now() const { return time.now; }

  // Adds to the history, with the time of now.
  void note(Event event) {
    if (over_) return;
    event.at = time.now;
    history_.push_back(std::move(event));
  }
  [[nodiscard]] std::vector<Event> take_history() {
    over_ = true;  // what is still torn down is no part of it
    return std::move(history_);
  }

  // Happens whatever becomes of the processes.
  void later(std::chrono::nanoseconds delay, Executor::Task task) { (void)coming_.add(now() + delay, std::move(task)); }
  [[nodiscard]] TimePoint next() const { return coming_.next().value_or(TimePoint::max()); }
  void run_due() {
    while (auto task = coming_.pop_due(now())) (*task)();
  }

 private:
  engine::TimerQueue coming_;
  std::vector<Event> history_;
  bool over_ = false;
};

}  // namespace dlock::simulation
