#include "tests/simulation/worker.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <stop_token>
#include <utility>

#include <dlock/error.hpp>
#include <dlock/lease.hpp>
#include <dlock/options.hpp>

#include "tests/simulation/process.hpp"

namespace dlock::simulation {

using namespace std::chrono_literals;

namespace {

AcquireOptions random_options(Dice& dice, std::chrono::nanoseconds min_lease) {
  AcquireOptions options;
  const auto kind = dice.below(10);
  options.wait = kind < 2 ? Duration() : kind < 5 ? forever : Duration(dice.up_to(3s));
  options.lease =
      dice.between(min_lease, dice.chance(50) ? longest_lease : std::max<std::chrono::nanoseconds>(min_lease, 300ms));
  options.renew = dice.chance(70);
  return options;
}

class SimulatedWorker final : public Worker {
 public:
  SimulatedWorker(SimulatedProcess& process, World& world, Resource& resource, const Plan& plan)
      : process_(process), world_(world), resource_(resource), plan_(plan) {}

  void start() {
    process_.later(world_.dice.up_to(plan_.longest_rest), [this] { ask(); });
  }

 private:
  void rest() {
    process_.claims().end(lock_->name, world_.now());
    start();
  }
  void ask() {
    on_lost_.reset();
    lease_ = Lease();
    lock_ = &plan_.locks[world_.dice.below(plan_.locks.size())];
    const bool reads = lock_->lock_kind == LockKind::read_write && world_.dice.chance(60);
    const Mode mode = reads ? Mode::shared : Mode::exclusive;
    cancel_ = std::stop_source();
    AcquireOptions options = random_options(world_.dice, plan_.min_lease);
    acquire_ = process_.ask(*lock_, mode, options);
    const bool tried = options.wait == Duration();
    if (process_.mutation() == Mutation::late_deadline && options.wait != forever)
      options.wait = options.wait.value() + 3s;
    if (process_.mutation() != Mutation::deaf_to_cancel) options.cancel = cancel_.get_token();
    waiting_ = true;
    process_.acquire(*lock_, mode, options,
                     [this, tried](std::error_code ec, Lease lease) { answered(tried, ec, std::move(lease)); });
    if (!waiting_ || !world_.dice.chance(15)) return;
    process_.later(world_.dice.up_to(1s), [this, attempt = acquire_.attempt] {
      if (!waiting_ || attempt != acquire_.attempt) return;
      note(Kind::cancelled);
      cancel_.request_stop();
    });
  }
  void answered(bool tried, std::error_code ec, Lease lease) {
    waiting_ = false;
    if (ec) {
      note(Kind::denied, {.word = word_for(ec, tried)});
      return rest();
    }
    lease_ = std::move(lease);
    // A client that is being closed releases what it was granted before its program learns of the grant.
    const TimePoint until = lease_.held() ? process_.clock().when(lease_.valid_until()) : world_.now();
    note(Kind::granted, {.token = lease_.token(), .until = until});
    on_lost_.emplace(lease_.lost(), [this] { lost(); });
    if (world_.dice.chance(10)) return hold_on();
    steps_left_ = world_.dice.below(5);
    longest_step_ = world_.dice.between(1ms, world_.dice.chance(20) ? 1s : 50ms);
    work();
  }
  void work() {
    if (steps_left_ == 0) return let_go();
    --steps_left_;
    process_.later(world_.dice.up_to(longest_step_), [this] {
      // Permits protect nothing from each other.
      if (world_.dice.chance(40) && lock_->lock_kind != LockKind::semaphore) {
        write();
      } else {
        look();
      }
      work();
    });
  }
  void lost() {
    const auto tell = [this, acquire = acquire_] { process_.note(acquire, Kind::lost); };
    if (process_.mutation() == Mutation::late_signal) return process_.later(1s, tell);
    tell();
  }
  // To the very end of the lease, unless that is renewed: so that a worker that believes in it for too long is found.
  void hold_on() {
    const auto left = std::max(lease_.valid_until() - process_.clock().now(), std::chrono::nanoseconds(0));
    process_.later(left - std::min(left, world_.dice.up_to(10ms)), [this] { look(); });
    process_.later(left, [this] {
      look();
      let_go();
    });
  }
  void look() {
    const bool held = lease_.held();
    note(Kind::looked, {.yes = held});
  }
  // A write travels by itself: it may arrive when the process has ended, and another has the lock.
  void write() {
    look();
    note(Kind::writing, {.token = lease_.token()});
    world_.later(world_.dice.up_to(world_.dice.chance(20) ? 2s : 5ms),
                 [&resource = resource_, lock = lock_, mode = acquire_.mode, token = lease_.token()] {
                   resource.serve(*lock, mode, token);
                 });
  }
  void let_go() {
    note(Kind::releasing);
    if (world_.dice.chance(30)) {
      const bool held = lease_.held();
      if (held) process_.forget_lease(acquire_, lease_.token());
      lease_ = Lease();
      if (!held) note(Kind::released, {.yes = false});
      return rest();
    }
    lease_.async_release([this](std::error_code ec, bool was_ours) {
      if (ec) {
        note(Kind::unreleased, {.word = word_for(ec, false)});
      } else {
        note(Kind::released, {.yes = was_ours || process_.mutation() == Mutation::release_lies});
      }
      rest();
    });
  }
  void note(Kind kind, Event event = {}) { process_.note(acquire_, kind, std::move(event)); }

  SimulatedProcess& process_;
  World& world_;
  Resource& resource_;
  const Plan& plan_;

  const SimulatedLock* lock_ = nullptr;
  Event acquire_;
  bool waiting_ = false;
  std::stop_source cancel_;
  Lease lease_;
  std::uint64_t steps_left_ = 0;
  std::chrono::nanoseconds longest_step_{};
  std::optional<std::stop_callback<std::function<void()>>> on_lost_;
};

}  // namespace

std::string word_for(std::error_code ec, bool tried) {
  if (ec == errc::timed_out) return tried ? "busy" : std::string(torture::denied_as_timed_out);
  if (ec == errc::cancelled) return std::string(torture::denied_as_cancelled);
  if (ec == errc::unavailable) return "unavailable";
  if (ec == errc::ambiguous) return "ambiguous";
  if (ec == errc::closed) return "closed";
  return ec.message();
}

std::unique_ptr<Worker> start_worker(SimulatedProcess& process, World& world, Resource& resource, const Plan& plan) {
  auto worker = std::make_unique<SimulatedWorker>(process, world, resource, plan);
  worker->start();
  return worker;
}

}  // namespace dlock::simulation
