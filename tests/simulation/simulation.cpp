#include "tests/simulation/simulation.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/simulation/network.hpp"
#include "tests/simulation/process.hpp"
#include "tests/simulation/stage.hpp"
#include "tests/simulation/worker.hpp"

namespace dlock::simulation {
namespace {

using namespace std::chrono_literals;

// Breaks things, at random and for a while, and heals them all in the end.
class Nemesis {
 public:
  // start: starts one more process.
  Nemesis(World& world, Stage& stage, Network& network, const Plan& plan, std::function<void()> start)
      : world_(world), dice_(world.dice), stage_(stage), network_(network), plan_(plan), start_(std::move(start)) {}

  // Goes on until heal().
  void begin() {
    // Of a hundred deeds, those up to this number are of this sort.
    using Deed = std::pair<std::uint64_t, void (Nemesis::*)()>;
    static constexpr std::array deeds{Deed{25, &Nemesis::change_the_weather},
                                      Deed{40, &Nemesis::stop},
                                      Deed{50, &Nemesis::cut_off},
                                      Deed{57, &Nemesis::break_connections},
                                      Deed{62, &Nemesis::make_unreachable},
                                      Deed{66, &Nemesis::expire},
                                      Deed{76, &Nemesis::kill},
                                      Deed{81, &Nemesis::quit},
                                      Deed{90, &Nemesis::step_a_wall_clock},
                                      Deed{93, &Nemesis::break_a_lock},
                                      Deed{100, &Nemesis::release_held}};
    unless_healed(dice_.up_to(plan_.calm), [this] {
      const auto number = dice_.below(100);
      const auto deed = std::ranges::find_if(deeds, [number](const Deed& each) { return number < each.first; });
      (this->*deed->second)();
      begin();
    });
  }

  void heal() {
    healed_ = true;
    network_.heal();
    stage_.service().release_held();
    for (const auto& process : stage_.processes()) {
      stage_.service().set_reachable(process->number(), true);
      process->resume();
    }
    for (SimulatedProcess* const dead : std::exchange(unburied_, {})) dead->bury();
    world_.note({.kind = Kind::healed, .word = std::string(torture::everything)});
  }

 private:
  void unless_healed(std::chrono::nanoseconds delay, std::function<void()> task) {
    world_.later(delay, [this, task = std::move(task)] {
      if (!healed_) task();
    });
  }
  void struck(const SimulatedProcess* whom, std::string word) {
    world_.note({.kind = Kind::struck, .subject = whom->number(), .word = std::move(word)});
  }
  // It ends by itself.
  void healed_later(std::chrono::nanoseconds longest, int number, const char* word, std::function<void()> heal) {
    unless_healed(dice_.up_to(longest), [this, number, word, heal = std::move(heal)] {
      heal();
      world_.note({.kind = Kind::healed, .subject = number, .word = word});
    });
  }

  // --- Deeds ---
  void change_the_weather() {
    const bool was_good = network_.trouble == 0;
    network_.trouble = was_good ? std::uint64_t{1} << dice_.below(7) : 0;
    world_.note({.kind = was_good ? Kind::struck : Kind::healed, .word = "bad network"});
  }

  void cut_off() {
    SimulatedProcess* const whom = victim();
    if (whom == nullptr) return;
    const int number = whom->number();
    network_.cut_off(number);
    struck(whom, "cut off");
    healed_later(4s, number, "cut off", [this, number] { network_.connect(number); });
  }

  void stop() {
    SimulatedProcess* const whom = running_victim();
    if (whom == nullptr) return;
    struck(whom, "stop");
    whom->stop();
    world_.later(dice_.up_to(dice_.chance(50) ? 5s : 300ms), [whom] { whom->resume(); });
  }

  // The service learns of it at once, as where the kernel closes the connections, or later, as where power went.
  void kill() {
    SimulatedProcess* const whom = victim();
    if (whom == nullptr) return;
    const bool at_once = dice_.chance(50);
    struck(whom, at_once ? "crash" : "power cut");
    whom->kill();
    replace_later();
    if (at_once) return whom->bury();
    unburied_.push_back(whom);
    world_.later(dice_.up_to(5s), [this, whom] {
      if (std::erase(unburied_, whom) != 0) whom->bury();
    });
  }

  void quit() {
    SimulatedProcess* const whom = running_victim();
    if (whom == nullptr) return;
    struck(whom, "quit");
    whom->quit();
    replace_later();
  }

  void step_a_wall_clock() {
    const auto by = dice_.up_to(dice_.chance(50) ? 2h : 2s) / (dice_.chance(50) ? 1 : -1);
    world_.note({.kind = Kind::struck, .word = by > 0s ? "wall clock forward" : "wall clock back"});
    if (dice_.chance(50)) return stage_.clock().step_wall(by);
    if (SimulatedProcess* const whom = victim()) whom->clock().step_wall(by);
  }

  void break_connections() {
    SimulatedProcess* const whom = victim();
    if (whom == nullptr) return;
    struck(whom, "connections broken");
    stage_.service().cut(whom->number());
  }

  void make_unreachable() {
    SimulatedProcess* const whom = victim();
    if (whom == nullptr) return;
    const int number = whom->number();
    struck(whom, "unreachable");
    stage_.service().set_reachable(number, false);
    stage_.service().cut(number);
    healed_later(3s, number, "unreachable", [this, number] { stage_.service().set_reachable(number, true); });
  }

  void expire() {
    SimulatedProcess* const whom = victim();
    if (whom == nullptr) return;
    world_.note(session_expired(whom->number(), world_.now()));
    stage_.service().expire(whom->number());
  }

  void release_held() {
    if (!plan_.lets_go) return;
    world_.note({.kind = Kind::struck, .word = "held answers released"});
    stage_.service().release_held();
  }

  // As an operator does, or a program that removes what it should not. What a request does whose outcome is unknown, it
  // does soon.
  void break_a_lock() {
    const SimulatedLock& lock = dice_.pick(plan_.locks);
    SimulatedProcess* const whose = running_victim();
    if (!stage_.subject().queries || whose == nullptr || !whose->capabilities().can_break) return;
    world_.note(lock_broken(Kind::struck, lock));
    const auto end = [this, &lock](const Result<bool>& broken) {
      world_.later(broken.ok() ? 0s : longest_delay, [this, &lock] { world_.note(lock_broken(Kind::healed, lock)); });
    };
    if (!dice_.chance(30)) return whose->break_lock(lock, end);
    stage_.service().remove_owner(lock.lock_kind, lock.name);
    end(true);
  }

  void replace_later() {
    world_.later(dice_.up_to(500ms), [this] { start_(); });
  }

  // --- To whom ---
  // A process that is alive, rather one that holds a lock: chance alone rarely meets a holder, and hardly shows
  // anything. Null if there is none.
  [[nodiscard]] SimulatedProcess* victim() {
    int holder = 0;
    if (dice_.chance(70)) {
      const SimulatedLock& lock = dice_.pick(plan_.locks);
      holder = stage_.service().holder(lock.lock_kind, lock.name);
    }
    std::vector<SimulatedProcess*> alive;
    for (const auto& process : stage_.processes()) {
      if (process->alive()) alive.push_back(process.get());
      if (process->alive() && process->number() == holder) return process.get();
    }
    return alive.empty() ? nullptr : dice_.pick(alive);
  }
  [[nodiscard]] SimulatedProcess* running_victim() {
    SimulatedProcess* const found = victim();
    return found != nullptr && found->state() == SimulatedProcess::State::runs ? found : nullptr;
  }

  World& world_;
  Dice& dice_;
  Stage& stage_;
  Network& network_;
  const Plan& plan_;
  const std::function<void()> start_;
  std::vector<SimulatedProcess*> unburied_;
  bool healed_ = false;
};

}  // namespace

Simulated simulate(const Subject& subject, std::uint64_t seed, Mutation mutation) {
  constexpr std::chrono::nanoseconds sound_times = 6s;
  World world(seed, mutation);
  const Plan plan = make_plan(world.dice, subject.kinds, subject.min_lease);
  Network network(world);
  Resource resource(world, mutation == Mutation::blind_resource);
  Stage stage(world, plan, subject, seed);
  const auto start_process = [&] { stage.start_process().start_workers(resource, plan); };
  Nemesis nemesis(world, stage, network, plan, start_process);
  stage.service().fate = [&network](int process, std::string_view /*request*/) { return network.decide(process); };
  stage.service().delay = [&network] { return network.delay(); };

  for (std::uint64_t i = 0; i < plan.processes; ++i) start_process();
  nemesis.begin();
  stage.run_for(plan.chaos);
  nemesis.heal();
  const TimePoint settled = world.now() + rules_for(subject).settled;
  stage.run_until(stage.leftovers_gone());
  while (world.now() < settled) {
    stage.note_residue();
    stage.run_until(std::min(settled, world.now() + 500ms));
  }
  stage.run_for(sound_times);
  stage.quit_all();
  stage.probe();
  stage.note_residue_of_all();
  return {.history = world.take_history(), .fates = network.counts()};
}

Rules rules_for(const Subject& subject) {
  // A lock may be free for as long as this after everything was healed. By then the leases of those who died have
  // expired, and of owners not known to hold the lock: they are shorter. What late answers bring back after that is
  // cleaned up at once, so it does not add to it.
  const std::chrono::nanoseconds healing = std::max(subject.recovery, longest_lease) + 1s;
  Hole hole{.rules = {Rule::exclusion, Rule::growing_tokens, Rule::honest_release},
            .strikes = {"lock broken"},
            .belief = std::max(subject.session, longest_lease)};
  if (subject.expires_holders) hole.strikes.insert("session expired");
  return {
      .slack = response_timeout + 100ms,
      .release = response_timeout + 100ms,
      .loss_slack = 1ms,
      .recovery = healing,
      .settled = healing,
      .hand_over = subject.hand_over,
      .hole = std::move(hole),
  };
}

}  // namespace dlock::simulation
