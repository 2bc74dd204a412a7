#include "tests/simulation/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <optional>
#include <stop_token>
#include <utility>

#include <dlock/error.hpp>

#include "tests/simulation/network.hpp"
#include "tests/simulation/process.hpp"
#include "tests/simulation/simulation.hpp"
#include "tests/simulation/stage.hpp"
#include "tests/simulation/worker.hpp"

namespace dlock::simulation {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

constexpr nanoseconds lease = 1s;
// How soon a holder whose lock was broken learns of it in sound times: at its next renewal.
constexpr nanoseconds told_within = lease / 2;

// An acquire and its lease, as a program sees them.
class Acquire {
 public:
  Acquire(World& world, SimulatedProcess& process, const SimulatedLock& lock, Mode mode)
      : world_(world), process_(process), lock_(lock), mode_(mode) {}

  void begin(Duration wait) {
    const AcquireOptions options{.wait = wait, .lease = lease, .cancel = cancel_.get_token()};
    tries_ = wait == Duration();
    acquire_ = process_.ask(lock_, mode_, options);
    process_.acquire(lock_, mode_, options, [this](std::error_code ec, Lease got) { answered(ec, std::move(got)); });
  }
  void cancel() {
    note(Kind::cancelled);
    cancel_.request_stop();
  }
  void release() {
    note(Kind::releasing);
    ended = true;
    lease_.async_release(
        [this, until = process_.clock().when(lease_.valid_until())](std::error_code ec, bool was_ours) {
          process_.claims().end(lock_.name, world_.now());
          released = !ec && was_ours;
          not_ours = !ec && !was_ours && world_.now() < until;
          note(ec ? Kind::unreleased : Kind::released, {.yes = was_ours, .word = ec.message()});
        });
  }

  bool granted = false;
  bool ended = false;  // released, or tried to
  std::error_code denied;
  std::optional<TimePoint> lost;
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
      lost = world_.now();
      note(Kind::lost);
    });
  }
  void note(Kind kind, Event event = {}) { process_.note(acquire_, kind, std::move(event)); }

  World& world_;
  SimulatedProcess& process_;
  const SimulatedLock lock_;
  const Mode mode_;
  Event acquire_;
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
              .slowest_clock = SimulatedClock::true_rate,
              .fastest_clock = SimulatedClock::true_rate + 1},
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
    operate(acquire, others, ours, other);
    stage_.run_for(3s);
    heal();
    stage_.run_for(subject_.recovery);
    if (acquire.granted && !acquire.ended) acquire.release();
    if (others.granted && !others.ended && other.alive()) others.release();
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
    return {.history = world_.take_history(),
            .requests = requests_,
            .supported = reply_ != errc::unsupported,
            .problem = std::move(problem_)};
  }

 private:
  Fate decide(int process) {
    if (process != 1 || !armed_) return Fate::answer;
    if (requests_++ != spoiled_.request) return Fate::answer;
    struck_ = world_.now();
    if (spoiled_.fate == Fate::expire) world_.note(session_expired(process, world_.now()));
    return spoiled_.fate;
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

  [[nodiscard]] bool is(std::initializer_list<Operation> operations) const {
    return std::ranges::find(operations, spoiled_.operation) != operations.end();
  }

  void operate(Acquire& ours, Acquire& others, SimulatedProcess& our_process, SimulatedProcess& other) {
    using enum Operation;
    if (is({try_held, wait, wait_for_expiry, give_up, inspect, list, break_lock})) {
      // All permits of a semaphore.
      others.begin(forever);
      for (std::uint32_t i = 1; i < spoiled_.lock.permits; ++i) {
        once_.push_back(std::make_unique<Acquire>(world_, other, spoiled_.lock, Mode::exclusive));
        once_.back()->begin(forever);
      }
      stage_.run_for(300ms);
    }
    if (is({inspect, list, break_lock, forget})) return query(our_process, other);
    armed_ = !is({hold, release, release_renewed, be_broken});
    ours.begin(is({try_acquire, try_held}) ? Duration() : forever);
    stage_.run_for(300ms);
    if (is({try_acquire, try_held}) && requests_ <= spoiled_.request && !ours.granted && !ours.denied) {
      problem("a try was not answered though nothing was wrong");
    }
    armed_ = armed_ || is({hold, be_broken});
    if (is({wait})) others.release();
    if (is({wait_for_expiry})) {
      other.kill();
      other.bury();
    }
    if (is({give_up})) ours.cancel();
    if (is({be_broken})) query(other, our_process);
    if (is({hold, release_renewed, be_broken})) stage_.run_for(3 * lease);
    if (!is({release, release_renewed})) return;
    armed_ = true;
    ours.release();
  }

  // `asking` asks about a lock that `holding` holds, or held.
  void query(SimulatedProcess& asking, SimulatedProcess& holding) {
    using enum Operation;
    const LockKind kind = spoiled_.lock.lock_kind;
    const std::string& name = spoiled_.lock.name;
    const auto shows = [number = holding.number()](const LockInfo& info) { return process_of(info) == number; };
    if (is({forget})) stage_.run_for(least_idle + 1s);
    armed_ = true;
    if (is({inspect})) {
      asking.query<LockInfo>([&](Backend& backend, auto done) { backend.inspect(kind, name, done); },
                             take_reply<LockInfo>(shows));
    } else if (is({list})) {
      using Locks = std::vector<LockInfo>;
      asking.query<Locks>([&](Backend& backend, auto done) { backend.list(kind, done); },
                          take_reply<Locks>([shows](const Locks& locks) { return std::ranges::any_of(locks, shows); }));
    } else if (is({forget})) {
      using Names = std::vector<std::string>;
      asking.query<Names>(
          [&](Backend& backend, auto done) { backend.forget({.name = name, .idle = least_idle, .kind = kind}, done); },
          take_reply<Names>([](const Names&) { return true; }));
    } else {
      world_.note(lock_broken(Kind::struck, spoiled_.lock));
      asking.break_lock(spoiled_.lock, take_reply<bool>([](bool was_held) { return was_held; }));
    }
    stage_.run_for(response_timeout + 100ms);
    if (!reply_) problem("the query was not answered in time");
  }
  template <class Answer>
  Backend::Handler<Answer> take_reply(std::function<bool(const Answer&)> is_right) {
    return [this, is_right](const Result<Answer>& answer) {
      if (reply_) problem("the query was answered twice");
      struck_ = world_.now();
      reply_ = answer.ok() ? std::error_code() : answer.failure().code;
      if (answer.ok() && !is_right(answer.value())) problem("the query was answered wrongly");
    };
  }

  void judge(const Acquire& ours, const Acquire& others) {
    using enum Operation;
    const bool spoiled = requests_ > spoiled_.request;
    const bool unanswered = spoiled && (ours.denied == errc::unavailable || ours.denied == errc::ambiguous);
    if (is({try_acquire})) {
      if (!ours.granted && !unanswered) problem("a try of a free lock says: " + ours.denied.message());
    } else if (is({try_held})) {
      if (ours.denied != errc::timed_out && !unanswered) problem("a try of a held lock is not busy");
    } else if (is({give_up})) {
      if (ours.denied != errc::cancelled) problem("the wait was not cancelled");
    } else if (!is({inspect, list, break_lock, forget})) {
      if (!ours.granted) problem("not granted: " + ours.denied.message());
    }
    const bool expired = subject_.expires_holders && spoiled_.fate == Fate::expire;
    if (ours.not_ours && !ours.lost && !expired) problem("the release says that it was not ours");
    if (others.not_ours && !others.lost) problem("the other's release says that it was not ours");
    if (expired && is({hold}) && requests_ > spoiled_.request &&
        (!ours.lost || *ours.lost > struck_ + 2 * told_within)) {
      problem("the holder was not told soon that its session had ended");
    }
    if (!reply_ || *reply_ == errc::unsupported) return;
    const bool may_have_an_effect = is({break_lock, forget});
    if (*reply_ && !spoiled) problem("the query failed though nothing was wrong: " + reply_->message());
    if (*reply_ && *reply_ != errc::unavailable && !(may_have_an_effect && *reply_ == errc::ambiguous)) {
      problem("the query failed: " + reply_->message());
    }
    if (*reply_ || !is({break_lock, be_broken})) return;
    const Acquire& broken = is({break_lock}) ? others : ours;
    if (!broken.lost) problem("the holder was not told that its lock was broken");
    if (is({break_lock}) && *broken.lost > struck_ + told_within) problem("the holder was told late");
    if (broken.released) problem("the release of a broken lock says that it was ours");
  }

  const Subject& subject_;
  const Spoiled spoiled_;
  World world_;
  const Plan plan_;
  Stage stage_;
  bool armed_ = false;
  std::size_t requests_ = 0;
  TimePoint struck_;
  std::string problem_;
  std::optional<std::error_code> reply_;  // to the query, where there is one
  std::vector<std::unique_ptr<Acquire>> once_;
};

}  // namespace

Outcome run(const Subject& subject, const Spoiled& spoiled) {
  if (spoiled.operation >= Operation::inspect && !subject.queries) return {.supported = false};
  return Sweep(subject, spoiled).run();
}

}  // namespace dlock::simulation
