#include "tests/unit/memory/memory_simulation.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

namespace dlock::memory {

using namespace std::chrono_literals;

namespace {

constexpr auto kResponseTimeout = 500ms;
constexpr auto kLongestLease = std::chrono::nanoseconds(3s);

}  // namespace

// --- Faults ----------------------------------------------------------------------------------------------------------

struct Simulation::RandomFaults final : FaultInjector {
  explicit RandomFaults(std::uint64_t seed) : random(seed), percent(random() % 40) {}

  Delivery plan(const Message&) override {
    if (random() % 100 >= percent) return {};
    ++count;
    switch (random() % 6) {
      case 0:
        return {.fate = Delivery::Fate::lost};
      case 1:
        return {.fate = Delivery::Fate::refused};
      case 2:
        return {.reply_lost = true};
      case 3:
        return {.delay = some_time(), .reply_delay = some_time(), .duplicate = some_time()};
      case 4:
        return {.fate = Delivery::Fate::held};
      default:
        return {.delay = some_time(), .reply_delay = some_time()};
    }
  }
  std::chrono::nanoseconds some_time() {
    const std::uint64_t limit = random() % 4 == 0 ? 2'000'000'000 : 100'000'000;
    return std::chrono::nanoseconds(random() % limit);
  }

  std::mt19937_64 random;
  std::uint64_t percent;
  std::uint64_t count = 0;
};

// --- The course of events --------------------------------------------------------------------------------------------

Simulation::Simulation(std::uint64_t seed, Strategy strategy)
    : strategy_(strategy), random_(seed), engine_(random_()), faults_(std::make_shared<RandomFaults>(random_())) {
  store_->faults().inject(faults_);
  for (int i = 0; i < 3; ++i) processes_.push_back(start_process());
}

Simulation::~Simulation() = default;

SimulationCounts Simulation::run() {
  for (int i = 0; i < 80 && !testing::Test::HasFailure(); ++i) step();
  heal_and_close();
  counts_.faults = faults_->count;
  return counts_;
}

void Simulation::step() {
  const auto what = below(100);
  if (what < 45) {
    start_wait();
  } else if (what < 70) {
    release_some();
  } else if (what < 75) {
    cancel_some();
  } else if (what < 77) {
    kill_some();
  } else if (what < 80) {
    store_->faults().resume();
  }
  pass_time();
}

std::shared_ptr<Simulation::Process> Simulation::start_process() {
  const auto factory = [this](BackendHost& host, const BackendConfig& config) {
    return std::make_unique<MemoryBackend>(host, config, store_, strategy_);
  };
  const ClientOptions options{.label = "client" + std::to_string(++processes_started_),
                              .response_timeout = kResponseTimeout,
                              .clock = engine_.shared_clock()};
  auto engine = std::make_shared<test::ClientEngine>(engine_);
  return std::make_shared<Process>(
      Process{detail::ClientCore::create(engine, Url::parse("memory://"), options, factory)});
}

void Simulation::start_wait() {
  const auto wait = std::make_shared<Wait>();
  wait->process = processes_[below(processes_.size())];
  wait->name = random_name();
  AcquireOptions options{.lease = 10ms + up_to(kLongestLease - 10ms), .renew = chance(70)};
  const auto kind = below(4);
  options.wait = kind == 0 ? Duration() : kind == 1 ? forever : Duration(up_to(5s));
  options.cancel = wait->cancel.get_token();
  const auto now = engine_.now();
  wait->end_by = std::max(saturating_add(now, options.wait.value()), saturating_add(now, kResponseTimeout));
  waits_.push_back(wait);
  (void)wait->process->core->acquire(wait->name, options,
                                     [this, wait](const detail::AcquireResult& result) { ended(wait, result); });
}

void Simulation::ended(const std::shared_ptr<Wait>& wait, const detail::AcquireResult& result) {
  EXPECT_FALSE(wait->ended) << "completed twice";
  wait->ended = true;
  if (wait->process->killed) return;
  if (!result.lease) {
    const auto& code = result.failure.code;
    if (code == errc::cancelled) {
      ++counts_.cancelled;
    } else if (code == errc::timed_out) {
      ++counts_.timeouts;
    } else {
      EXPECT_TRUE(code == errc::unavailable || code == errc::ambiguous) << result.failure.detail;
      ++counts_.failures;
    }
    return;
  }
  ++counts_.grants;
  if (wait->was_long) ++counts_.contended_grants;
  for (const Held& other : held_) {
    if (other.process->killed || other.lease->name() != wait->name) continue;
    EXPECT_FALSE(other.lease->held()) << "two leases of " << wait->name << " at one instant";
  }
  EXPECT_GT(result.lease->token(), last_token_[wait->name]) << "a token that does not grow";
  last_token_[wait->name] = result.lease->token();
  held_.push_back({wait->process, result.lease});
}

void Simulation::release_some() {
  if (held_.empty()) return;
  Held& held = *std::next(held_.begin(), static_cast<std::ptrdiff_t>(below(held_.size())));
  if (std::exchange(held.released, true)) return;
  held.process->core->release(held.lease, [](const Failure&, bool) {});
}

void Simulation::cancel_some() {
  for (const auto& wait : waits_) {
    if (chance(30)) wait->cancel.request_stop();
  }
}

void Simulation::kill_some() {
  ++counts_.killed_sessions;
  auto& process = processes_[below(processes_.size())];
  process->killed = true;
  store_->kill_sessions(process->core->holder(), engine_.clock());
  process->core->close();
  process = start_process();
}

void Simulation::pass_time() {
  if (chance(3)) {
    engine_.sleep_through(up_to(5s));  // as if everything had been suspended
  } else if (chance(70)) {
    engine_.advance(up_to(300ms));
  }
  engine_.run();
  check();
}

std::chrono::nanoseconds Simulation::up_to(std::chrono::nanoseconds limit) {
  return std::chrono::nanoseconds(below(static_cast<std::uint64_t>(limit.count())));
}

// --- What must hold at any time --------------------------------------------------------------------------------------

void Simulation::check() {
  std::map<std::string, int> holders;
  for (const Held& held : held_) {
    if (held.process->killed) continue;
    if (held.lease->held()) {
      EXPECT_EQ(++holders[held.lease->name()], 1) << "two leases of " << held.lease->name() << " at one instant";
    } else if (!held.released) {
      EXPECT_TRUE(held.lease->lost_token().stop_requested()) << "no longer held, but nobody was told";
    }
  }
  for (const auto& wait : waits_) {
    if (wait->process->killed) continue;
    EXPECT_TRUE(wait->ended || engine_.now() <= wait->end_by) << "a wait goes on past its deadline";
    wait->was_long = true;
  }
  waits_.remove_if([](const auto& wait) { return wait->ended; });
  counts_.losses += held_.size();
  held_.remove_if([](const Held& held) { return held.released || held.process->killed || !held.lease->held(); });
  counts_.losses -= held_.size();
}

// --- The end: faults stop, everybody lets go -------------------------------------------------------------------------

void Simulation::heal_and_close() {
  store_->faults().inject(nullptr);
  store_->faults().resume();
  engine_.run();
  check();
  probe_all_names();
  for (const auto& process : processes_) process->core->close();
  check();
  EXPECT_TRUE(waits_.empty()) << "a wait outlived its client";
  // Late requests may still be under way; each can cost one lease.
  for (int i = 0; i < 20; ++i) engine_.advance(kLongestLease);
  for (const char* name : {"a", "b"}) EXPECT_EQ(store_->residue(name, engine_.clock()), 0U) << "residue at " << name;
  EXPECT_EQ(engine_.pending_timers(), 0U) << "timers outlive their clients";
}

void Simulation::probe_all_names() {
  for (const auto& wait : waits_) wait->cancel.request_stop();
  for (Held& held : held_) {
    if (!std::exchange(held.released, true)) held.process->core->release(held.lease, [](const Failure&, bool) {});
  }
  engine_.run();
  check();
  const auto probe = start_process();
  for (const char* name : {"a", "b"}) {
    bool granted = false;
    (void)probe->core->acquire(name, {.wait = 60s}, [&](const detail::AcquireResult& result) {
      granted = result.lease != nullptr;
      if (granted) {
        EXPECT_GT(result.lease->token(), last_token_[name]);
      }
    });
    engine_.advance(60s);
    EXPECT_TRUE(granted) << "lock " << name << " is stuck after the faults have ended";
  }
  probe->core->close();
}

}  // namespace dlock::memory
