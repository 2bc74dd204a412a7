#include "tests/simulation/simulation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "tests/simulation/nemesis.hpp"
#include "tests/simulation/plan.hpp"
#include "tests/simulation/process.hpp"
#include "tests/simulation/resource.hpp"
#include "tests/simulation/service.hpp"
#include "tests/simulation/world.hpp"

namespace dlock::simulation {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

constexpr nanoseconds sound_times = 6s;

class Simulation {
 public:
  Simulation(const Subject& subject, std::uint64_t seed, Mutation mutation)
      : world_(seed, mutation),
        plan_(make_plan(world_.dice, subject.kinds)),
        rules_(rules_for(subject)),
        session_(subject.session),
        service_(subject.make(*engine_, seed)),
        resource_(world_, mutation == Mutation::blind_resource),
        nemesis_(world_, *service_, network_, *clock_, processes_, plan_, [this] { start_process(); }) {
    service_->fate = [this](int process, std::string_view /*request*/) { return network_.decide(process); };
    service_->delay = [this] { return network_.delay(); };
  }

  Simulated run();

 private:
  SimulatedProcess& start_process();
  void run_until(TimePoint end);
  [[nodiscard]] TimePoint next() const;
  void quit_all();
  void probe();
  void watch_for_residue(TimePoint end);
  void look_for_residue();

  World world_;
  const Plan plan_;
  const Rules rules_;
  const nanoseconds session_;
  Network network_{world_};
  const std::shared_ptr<ServiceClock> clock_ = std::make_shared<ServiceClock>(world_.time);
  const std::shared_ptr<SimulatedEngine> engine_ = std::make_shared<SimulatedEngine>(world_.dice.roll(), clock_);
  const std::unique_ptr<Service> service_;
  Resource resource_;
  std::vector<std::unique_ptr<SimulatedProcess>> processes_;
  Nemesis nemesis_;
  std::vector<SimulatedProcess*> ready_;  // nullptr: the service
  bool quitting_ = false;
};

Simulated Simulation::run() {
  for (std::uint64_t i = 0; i < plan_.processes; ++i) start_process();
  nemesis_.begin();
  run_until(world_.now() + plan_.chaos);
  nemesis_.heal();
  watch_for_residue(world_.now() + rules_.settled);
  run_until(world_.now() + sound_times);
  quit_all();
  probe();
  look_for_residue();
  return {.history = world_.take_history(), .fates = network_.counts()};
}

SimulatedProcess& Simulation::start_process() {
  const int number = static_cast<int>(processes_.size()) + 1;
  processes_.push_back(std::make_unique<SimulatedProcess>(number, world_, *service_, plan_));
  if (!quitting_) processes_.back()->start_workers(resource_, plan_);
  return *processes_.back();
}

// --- Time ------------------------------------------------------------------------------------------------------------

// Whatever is due at one instant happens in any order: a task of this process, a task of that one.
void Simulation::run_until(TimePoint end) {
  while (true) {
    ready_.clear();
    if (engine_->ready()) ready_.push_back(nullptr);
    for (const auto& process : processes_) {
      if (process->ready()) ready_.push_back(process.get());
    }
    if (!ready_.empty()) {
      SimulatedProcess* const one = ready_[world_.dice.below(ready_.size())];
      one == nullptr ? (void)engine_->run_one() : one->run_one();
      continue;
    }
    const TimePoint soon = next();
    world_.time.now = std::max(world_.now(), std::min(soon, end));
    if (soon > end) return;
    world_.run_due();
  }
}

TimePoint Simulation::next() const {
  TimePoint first = std::min(world_.next(), engine_->next_timer().value_or(TimePoint::max()));
  for (const auto& process : processes_) first = std::min(first, process->next());
  return first;
}

// --- The end ---------------------------------------------------------------------------------------------------------

void Simulation::quit_all() {
  quitting_ = true;
  for (const auto& process : processes_) {
    if (process->alive()) process->quit();
  }
  run_until(world_.now() + longest_lease);
}

void Simulation::probe() {
  SimulatedProcess& prober = start_process();
  for (const SimulatedLock& lock : plan_.locks) {
    bool granted = false;
    prober.acquire(lock, Mode::exclusive, {.wait = 1s, .lease = longest_lease},
                   [&granted](std::error_code ec, Lease) { granted = !ec; });
    run_until(world_.now() + 2s);
    world_.note({.kind = Kind::probed,
                 .lock = lock.name,
                 .lock_kind = lock.lock_kind,
                 .yes = granted,
                 .word = granted ? "" : "timed out"});
  }
  prober.quit();
  run_until(world_.now() + longest_lease);
}

// What those who have quit may have left expires with the longest lease. From then on the service must not know of any
// that want nothing of a lock.
void Simulation::watch_for_residue(TimePoint end) {
  run_until(world_.now() + std::max(longest_lease, session_) + 1s);
  while (world_.now() < end) {
    for (const SimulatedLock& lock : plan_.locks) {
      std::size_t claims = 0;
      for (const auto& process : processes_) {
        if (process->alive()) claims += process->claims().count(lock.name, world_.now());
      }
      const std::size_t owners = service_->owners(lock.lock_kind, lock.name);
      if (owners <= claims) continue;
      world_.note({.kind = Kind::residue,
                   .lock = lock.name,
                   .lock_kind = lock.lock_kind,
                   .word = fmt::format("{} owners, though {} want it", owners, claims)});
    }
    run_until(std::min(end, world_.now() + 500ms));
  }
}

void Simulation::look_for_residue() {
  for (const SimulatedLock& lock : plan_.locks) {
    const std::size_t owners = service_->owners(lock.lock_kind, lock.name);
    if (owners == 0) continue;
    world_.note({.kind = Kind::residue,
                 .lock = lock.name,
                 .lock_kind = lock.lock_kind,
                 .word = fmt::format("{} owners are left", owners)});
  }
  for (const auto& process : processes_) {
    if (process->alive() || process->state() == SimulatedProcess::State::quits) {
      world_.note({.kind = Kind::residue, .word = fmt::format("process {} has not ended", process->number())});
    } else if (process->state() == SimulatedProcess::State::ended && process->pending_timers() != 0) {
      world_.note({.kind = Kind::residue, .word = fmt::format("timers of process {}", process->number())});
    }
  }
}

}  // namespace

Simulated simulate(const Subject& subject, std::uint64_t seed, Mutation mutation) {
  return Simulation(subject, seed, mutation).run();
}

Rules rules_for(const Subject& subject) {
  // A lock may be free for as long as this after everything was healed. By then the leases of those who died have
  // expired, and of owners not known to hold the lock: they are shorter. What late answers bring back after that is
  // cleaned up at once, so it does not add to it.
  const nanoseconds healing = std::max(subject.recovery, longest_lease) + 1s;
  return {
      .slack = response_timeout + 100ms,
      .release = response_timeout + 100ms,
      .loss_slack = 1ms,
      .recovery = healing,
      .settled = healing,
      .hand_over = subject.hand_over,
  };
}

}  // namespace dlock::simulation
