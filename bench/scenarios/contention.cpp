#include <algorithm>
#include <string>
#include <thread>
#include <utility>

#include "bench/measure/crowd.hpp"
#include "bench/measure/statistics.hpp"
#include "bench/scenarios/pairs.hpp"
#include "bench/scenarios/parts.hpp"
#include "bench/scenarios/relay.hpp"
#include "bench/scenarios/scenario.hpp"

namespace dlock::bench {

namespace {

// Long enough for the one that let go to be waiting again before its turn would come.
constexpr std::chrono::milliseconds hold{1};
constexpr std::chrono::seconds longest_warm_up{3};

// Contenders are threads, not asynchronous acquires: the next holder runs when its thread has woken up, which is part
// of what a program that calls acquire() waits for, and a thread can simply sleep while it holds the lock. The threads
// do not disturb each other, since all but one or two of them are asleep.
Crowd::Work contender(Relay& relay, const Client& client, std::size_t index) {
  const auto lock = std::make_shared<DistributedLock>(client.make_lock(lock_name("contention")));
  return [&relay, lock, index](const std::stop_token& stop) {
    relay.ask(index, Clock::now());
    Lease lease = lock->acquire({.cancel = stop});
    const auto handed_over_in = relay.take(index, Clock::now());
    std::this_thread::sleep_for(hold);
    const std::uint64_t turn = relay.let_go(Clock::now());
    release(lease);
    relay.await_successor(turn, stop);
    return handed_over_in;
  };
}

// Until there have been as many turns as there are contenders, so that all of them stand in line and all connections
// are there; where turns take long, that has to be enough after a while.
void warm_up(Crowd& crowd, const Relay& relay, std::size_t contenders, const Plan& plan, const std::stop_token& stop) {
  const auto end = Clock::now() + longest_warm_up;
  (void)crowd.measure(plan.warm_up, stop);
  while (!stop.stop_requested() && relay.turns() < contenders && Clock::now() < end) (void)crowd.measure(hold, stop);
}

// What the service had counted, and how many hand-offs there had been.
struct Mark {
  std::optional<Operations> operations;
  std::uint64_t hand_offs;
};

// The hand-offs are counted last: a service that takes its time to count takes the same time when it is asked again.
// Those count that are over: a window has at least one, while a turn may have begun just before it.
Mark mark(Target& target, const Crowd& crowd) {
  const auto operations = target.operations();
  return {operations, crowd.calls()};
}

void add_operations(Collector& collector, const Mark& before, const Mark& after) {
  if (!before.operations || !after.operations) return;
  const auto hand_offs = static_cast<double>(after.hand_offs - before.hand_offs);
  collector.add(quantity::operations, (after.operations->carried_out - before.operations->carried_out) / hand_offs);
  if (before.operations->wake_ups && after.operations->wake_ups) {
    collector.add(quantity::wake_ups, (*after.operations->wake_ups - *before.operations->wake_ups) / hand_offs);
  }
}

}  // namespace

std::vector<Client> connect_several(Target& target, std::size_t locks, std::size_t most) {
  constexpr std::size_t most_clients = 8;
  const std::size_t count = std::min(most, most_clients);
  std::vector<Client> clients;
  for (std::size_t i = 0; i < count; ++i) clients.push_back(target.connect((locks + count - 1) / count));
  return clients;
}

std::vector<Measurement> measure_contention(Target& target, const Plan& plan, const Subject& subject,
                                            std::size_t waiters, const std::stop_token& stop) {
  const std::size_t contenders = waiters + 1;  // one of them holds
  const std::vector<Client> clients = connect_several(target, contenders, waiters);
  Relay relay(contenders);
  Collector collector(target, subject, Who::dlock);
  Crowd crowd(contenders, [&](std::size_t index, const std::stop_token&) {
    return contender(relay, clients[index % clients.size()], index);
  });
  crowd.gather(stop);
  crowd.start();
  warm_up(crowd, relay, contenders, plan, stop);
  Mark before = mark(target, crowd);
  for (int repeat = 0; repeat < plan.repeats && !stop.stop_requested(); ++repeat) {
    (void)relay.take_longest_wait(Clock::now());
    const Window window = crowd.measure(plan.round, stop);
    const Clock::duration longest_wait = relay.take_longest_wait(Clock::now());
    const Mark after = mark(target, crowd);
    if (!window.complete) break;
    collector.add(quantity::hand_offs, window.per_second());
    collector.add(window.samples, {quantity::p50, quantity::p90, quantity::p99, quantity::longest});
    collector.add(quantity::fairness, fairness_of_turns(window.calls_of_each));
    collector.add(quantity::longest_wait, std::chrono::duration<double, std::micro>(longest_wait).count());
    add_operations(collector, before, after);
    collector.keep(window.samples);
    before = after;
  }
  (void)crowd.finish();
  return measurements_of({&collector, 1});
}

std::chrono::nanoseconds time_of_contention(const Plan& plan, std::size_t waiters) {
  return std::max<std::chrono::nanoseconds>(plan.warm_up, static_cast<int>(waiters) * 2 * hold) +
         plan.repeats * plan.round;
}

std::vector<Step> contention_steps(Target& target, const Plan& plan) {
  std::vector<Step> steps;
  for (const std::size_t waiters : plan.waiters) {
    if (waiters == 0 || !possible(target, waiters + 1)) continue;
    const Subject subject{scenario::contention, {{parameter::waiters, static_cast<double>(waiters)}}};
    steps.push_back({.what = "contention, " + std::to_string(waiters) + (waiters == 1 ? " waiter" : " waiters"),
                     .scenario = scenario::contention,
                     .expected = time_of_contention(plan, waiters),
                     .run = [&target, &plan, subject, waiters](const std::stop_token& stop) {
                       return measure_contention(target, plan, subject, waiters, stop);
                     }});
  }
  return steps;
}

}  // namespace dlock::bench
