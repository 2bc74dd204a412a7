#include "tests/simulation/process.hpp"

#include <charconv>

#include <dlock/spi/url.hpp>

#include "core/client/lease_record.hpp"

namespace dlock::simulation {

using namespace std::chrono_literals;

namespace {

// Mostly one of the two that differ the most.
std::int64_t random_rate(Dice& dice, const Plan& plan) {
  if (dice.chance(80)) return dice.chance(50) ? plan.slowest_clock : plan.fastest_clock;
  return plan.slowest_clock +
         static_cast<std::int64_t>(dice.below(static_cast<std::uint64_t>(plan.fastest_clock - plan.slowest_clock)));
}

}  // namespace

int process_of(std::string_view holder) {
  const std::string_view label = holder.substr(holder.rfind(':') + 1);
  int number = 0;
  (void)std::from_chars(label.data(), label.data() + label.size(), number);
  return number;
}

// Hears what became of the leases that were destroyed.
struct SimulatedProcess::Watcher final : Observer {
  explicit Watcher(SimulatedProcess& observed) : process(observed) {}

  void released(const ReleasedEvent& event) override {
    const auto found = process.forgotten_.find({event.name, event.token});
    if (found == process.forgotten_.end()) return;
    Event end = std::move(found->second);
    process.forgotten_.erase(found);
    end.kind = event.confirmed ? Kind::released : Kind::unreleased;
    end.yes = event.confirmed;
    if (!event.confirmed) end.word = "not confirmed";
    process.note(std::move(end));
  }

  SimulatedProcess& process;
};

SimulatedProcess::SimulatedProcess(int number, World& world, Service& service, const Plan& plan)
    : number_(number),
      world_(world),
      service_(service),
      clock_(std::make_shared<SimulatedClock>(world.time, random_rate(world.dice, plan), world.dice.up_to(24h))),
      engine_(std::make_shared<SimulatedEngine>(world.dice.roll(), clock_)),
      watcher_(std::make_shared<Watcher>(*this)) {
  const ClientOptions options{.label = std::to_string(number),
                              .response_timeout = response_timeout,
                              .connect_timeout = connect_timeout,
                              .observer = watcher_,
                              .clock = clock_};
  core_ = detail::ClientCore::create(
      engine_, Url::parse(service.url()), options,
      [this](BackendHost& host, const BackendConfig& config) { return service_.connect(number_, host, config); });
  note({.kind = Kind::started, .word = "simulated"});
}

SimulatedProcess::~SimulatedProcess() {
  bury();
}

void SimulatedProcess::start_workers(Resource& resource, const Plan& plan) {
  for (std::uint64_t i = 0; i < plan.workers; ++i) {
    workers_.push_back(start_worker(*this, world_, resource, plan));
  }
}

void SimulatedProcess::bury() {
  state_ = alive() ? State::killed : state_;
  if (!std::exchange(closed_, true)) {
    service_.bury(number_);
    core_->close();
  }
  workers_.clear();
  core_.reset();
}

void SimulatedProcess::run_one() {
  (void)engine_->run_one();
  if (state_ != State::quits || !engine_->stopped() || engine_->queued() > 0) return;
  note({.kind = Kind::ended});
  state_ = State::ended;
}

void SimulatedProcess::note(Event event) {
  if (state_ == State::killed || state_ == State::ended) return;
  event.process = number_;
  world_.note(std::move(event));
}

void SimulatedProcess::note(const Event& acquire, Kind kind, Event event) {
  event.kind = kind;
  event.attempt = acquire.attempt;
  event.lock = acquire.lock;
  event.lock_kind = acquire.lock_kind;
  event.mode = acquire.mode;
  note(std::move(event));
}

Event SimulatedProcess::ask(const SimulatedLock& lock, Mode mode, const AcquireOptions& options) {
  Event acquire{.attempt = ++attempts_, .lock = lock.name, .lock_kind = lock.lock_kind, .mode = mode};
  claims_.begin(lock.name);
  const TimePoint deadline = clock_->when(saturating_add(clock_->now(), options.wait.value()));
  note(acquire, Kind::asked, {.permits = lock.permits, .until = options.wait == forever ? TimePoint::max() : deadline});
  return acquire;
}

void SimulatedProcess::later(std::chrono::nanoseconds delay, std::function<void()> user_code) {
  if (!alive()) return;
  ++own_timers_;
  (void)engine_->schedule(engine_->now() + delay, [this, user_code = std::move(user_code)] {
    --own_timers_;
    (void)engine_->notify(user_code, engine::UserCode::completion);
  });
}

void SimulatedProcess::acquire(const SimulatedLock& lock, Mode mode, const AcquireOptions& options,
                               std::function<void(std::error_code, Lease)> handler) {
  const detail::Target target{.name = lock.name, .kind = lock.lock_kind, .mode = mode, .permits = lock.permits};
  (void)detail::start_acquire(
      core_, target, options, [core = core_, handler = std::move(handler)](detail::AcquireResult result) {
        core->context().notifier->complete([handler, result = std::move(result)] {
          handler(result.failure.code, result.lease ? detail::LeaseRecord::make_lease(result.lease) : Lease());
        });
      });
}

}  // namespace dlock::simulation
