#include "tests/simulation/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <stop_token>
#include <utility>

#include <dlock/error.hpp>

#include "tests/simulation/process.hpp"
#include "tests/simulation/simulation.hpp"
#include "tests/simulation/stage.hpp"
#include "tests/simulation/worker.hpp"

namespace dlock::simulation {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

constexpr nanoseconds lease = 1s;

// An acquire and its lease, as a program sees them.
class Acquire {
 public:
  Acquire(World& world, SimulatedProcess& process, const SimulatedLock& lock, Mode mode)
      : world_(world), process_(process), lock_(lock), mode_(mode) {}

  void begin(Duration wait) {
    attempt_ = process_.next_attempt();
    process_.claims().begin(lock_.name);
    const TimePoint deadline =
        wait == forever ? TimePoint::max() : process_.clock().when(process_.clock().now() + wait.value());
    tries_ = wait == Duration();
    note(Kind::asked, {.permits = lock_.permits, .until = deadline});
    process_.acquire(lock_, mode_, {.wait = wait, .lease = lease, .cancel = cancel_.get_token()},
                     [this](std::error_code ec, Lease granted) { answered(ec, std::move(granted)); });
  }
  void cancel() {
    note(Kind::cancelled);
    cancel_.request_stop();
  }
  void release() {
    note(Kind::releasing);
    lease_.async_release(
        [this, until = process_.clock().when(lease_.valid_until())](std::error_code ec, bool was_ours) {
          process_.claims().end(lock_.name, world_.now());
          released = !ec && was_ours;
          not_ours = !ec && !was_ours && world_.now() < until;
          note(ec ? Kind::unreleased : Kind::released, {.yes = was_ours, .word = ec.message()});
        });
  }

  [[nodiscard]] bool held() const { return granted && lease_.held(); }

  bool granted = false;
  std::error_code denied;
  bool lost = false;
  bool released = false;
  bool not_ours = false;  // said a release while the lease was valid

 private:
  void answered(std::error_code ec, Lease got) {
    if (ec) {
      denied = ec;
      process_.claims().end(lock_.name, world_.now());
      return note(Kind::denied, {.word = word_for(ec, tries_)});
    }
    granted = true;
    lease_ = std::move(got);
    note(Kind::granted, {.token = lease_.token(), .until = process_.clock().when(lease_.valid_until())});
    on_lost_.emplace(lease_.lost(), [this] {
      lost = true;
      note(Kind::lost);
    });
  }
  void note(Kind kind, Event event = {}) {
    event.kind = kind;
    event.attempt = attempt_;
    event.lock = lock_.name;
    event.lock_kind = lock_.lock_kind;
    event.mode = mode_;
    process_.note(std::move(event));
  }

  World& world_;
  SimulatedProcess& process_;
  const SimulatedLock lock_;
  const Mode mode_;
  std::uint64_t attempt_ = 0;
  bool tries_ = false;
  std::stop_source cancel_;
  Lease lease_;
  std::optional<std::stop_callback<std::function<void()>>> on_lost_;
};

class Sweep {
 public:
  Sweep(const Subject& subject, const Spoiled& spoiled)
      : subject_(subject),
        spoiled_(spoiled),
        world_(1 + spoiled.request),
        plan_{.locks = {spoiled.lock},
              .slowest_clock = ProcessClock::true_rate,
              .fastest_clock = ProcessClock::true_rate + 1},
        stage_(world_, plan_, subject, world_.dice.roll()) {
    stage_.service().fate = [this](int process, std::string_view) { return decide(process); };
    stage_.service().delay = [this] {
      return world_.dice.chance(50) ? response_timeout / 5 : response_timeout + 200ms;
    };
  }

  Outcome run() {
    SimulatedProcess& ours = stage_.start_process();
    SimulatedProcess& other = stage_.start_process();
    Acquire acquire(world_, ours, spoiled_.lock, spoiled_.mode);
    Acquire others(world_, other, spoiled_.lock, Mode::exclusive);
    use_once(other, Mode::exclusive);
    if (spoiled_.operation != Operation::connect) use_once(ours, spoiled_.mode);
    operate(acquire, others, other);
    stage_.run_for(3s);
    heal();
    stage_.run_for(subject_.recovery);
    if (acquire.held() && !acquire.released) acquire.release();
    if (others.held()) others.release();
    stage_.run_until(stage_.leftovers_gone());
    stage_.note_residue();
    judge(acquire, others);
    // Both can use the lock again.
    for (SimulatedProcess* const process : {&ours, &other}) {
      if (process->alive() && !use_once(*process, Mode::exclusive)) problem("the lock is not free in the end");
    }
    stage_.quit_all();
    stage_.probe();
    stage_.note_residue_of_all();
    return {.history = world_.take_history(), .requests = requests_, .problem = std::move(problem_)};
  }

 private:
  Fate decide(int process) {
    if (process != 1 || !armed_) return Fate::answer;
    return requests_++ == spoiled_.request ? spoiled_.fate : Fate::answer;
  }
  void problem(const std::string& what) {
    if (problem_.empty()) problem_ = what;
  }
  void heal() {
    armed_ = false;
    stage_.service().release_held();
    world_.note({.kind = Kind::healed, .word = std::string(torture::everything)});
  }
  bool use_once(SimulatedProcess& process, Mode mode) {
    Acquire& once = *once_.emplace_back(std::make_unique<Acquire>(world_, process, spoiled_.lock, mode));
    once.begin(Duration(subject_.recovery + 2s));
    stage_.run_for(100ms);
    for (int i = 0; i < 200 && !once.granted && !once.denied; ++i) stage_.run_for(100ms);
    if (!once.granted) return false;
    once.release();
    stage_.run_for(100ms);
    return true;
  }

  void operate(Acquire& ours, Acquire& others, SimulatedProcess& other) {
    using enum Operation;
    const Operation operation = spoiled_.operation;
    if (operation == try_held || operation == wait || operation == wait_for_expiry || operation == give_up) {
      // All permits of a semaphore.
      others.begin(forever);
      for (std::uint32_t i = 1; i < spoiled_.lock.permits; ++i) {
        once_.push_back(std::make_unique<Acquire>(world_, other, spoiled_.lock, Mode::exclusive));
        once_.back()->begin(forever);
      }
      stage_.run_for(300ms);
    }
    const bool of_lease = operation == hold || operation == release || operation == release_renewed;
    armed_ = !of_lease;
    ours.begin(operation == try_acquire || operation == try_held ? Duration() : forever);
    stage_.run_for(300ms);
    armed_ = armed_ || operation == hold;
    switch (operation) {
      case wait:
        others.release();
        break;
      case wait_for_expiry:
        other.kill();
        other.bury();
        break;
      case give_up:
        ours.cancel();
        break;
      case hold:
      case release_renewed:
        stage_.run_for(3 * lease);
        break;
      default:
        break;
    }
    if (operation != release && operation != release_renewed) return;
    armed_ = true;
    ours.release();
  }

  void judge(const Acquire& ours, const Acquire& others) {
    using enum Operation;
    const bool unanswered = ours.denied == errc::unavailable || ours.denied == errc::ambiguous;
    switch (spoiled_.operation) {
      case try_acquire:
        if (!ours.granted && !unanswered) problem("a try of a free lock says: " + ours.denied.message());
        break;
      case try_held:
        if (ours.denied != errc::timed_out && !unanswered) problem("a try of a held lock is not busy");
        break;
      case give_up:
        if (ours.denied != errc::cancelled) problem("the wait was not cancelled");
        break;
      default:
        if (!ours.granted) problem("not granted: " + ours.denied.message());
    }
    if (ours.not_ours && !ours.lost) problem("the release says that it was not ours");
    if (others.not_ours && !others.lost) problem("the other's release says that it was not ours");
  }

  const Subject& subject_;
  const Spoiled spoiled_;
  World world_;
  const Plan plan_;
  Stage stage_;
  bool armed_ = false;
  std::size_t requests_ = 0;
  std::string problem_;
  std::vector<std::unique_ptr<Acquire>> once_;
};

}  // namespace

Outcome run(const Subject& subject, const Spoiled& spoiled) {
  return Sweep(subject, spoiled).run();
}

}  // namespace dlock::simulation
