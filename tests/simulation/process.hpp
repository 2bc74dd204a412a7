// A simulated process: a client with its engine and clock, and the threads that use it. It runs when it is told to, may
// be stopped, and may die at any moment.
#pragma once

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <dlock/lease.hpp>
#include <dlock/observer.hpp>
#include <dlock/spi/lifetime.hpp>
#include <dlock/spi/url.hpp>

#include "core/client/client_core.hpp"
#include "core/client/lease_record.hpp"
#include "tests/simulation/service.hpp"
#include "tests/simulation/worker.hpp"
#include "tests/simulation/world.hpp"
#include "tests/support/queued_engine.hpp"

namespace dlock::simulation {

// An engine on a simulated clock. The simulation decides when it runs.
class SimulatedEngine final : public dlock::test::QueuedEngine {
 public:
  SimulatedEngine(std::uint64_t seed, std::shared_ptr<const Clock> clock)
      : QueuedEngine(seed), clock_(std::move(clock)) {}

  // Whether it has something to run now.
  [[nodiscard]] bool ready() {
    const auto timer = next_timer();
    return queued() > 0 || (timer && *timer <= now()) || post_readable();
  }

  // --- Engine ---
  [[nodiscard]] const Clock& clock() const noexcept override { return *clock_; }
  // Nothing in a simulation blocks: what can be done at once is done.
  bool wait(util::Event& event, std::optional<std::chrono::nanoseconds> /*limit*/) override {
    if (!must_not_block()) run();
    return event.is_set();
  }
  [[nodiscard]] std::unique_ptr<Descriptor> watch(int fd) override { return std::make_unique<Watched>(*this, fd); }

 private:
  class Watched final : public Descriptor {
   public:
    Watched(SimulatedEngine& engine, int fd) : engine_(engine), fd_(fd) { engine.watched_.push_back(this); }
    ~Watched() override { std::erase(engine_.watched_, this); }
    void async_wait(Interest /*readable*/, std::function<void(std::error_code)> handler) override {
      handler_ = std::move(handler);
    }

    bool post_if_readable() {
      pollfd ready{.fd = fd_, .events = POLLIN, .revents = 0};
      if (!handler_ || ::poll(&ready, 1, 0) <= 0) return false;
      return engine_.submit(lifetime_.guard([handler = std::exchange(handler_, nullptr)] { handler({}); }));
    }

   private:
    SimulatedEngine& engine_;
    const int fd_;
    std::function<void(std::error_code)> handler_;
    Lifetime lifetime_;
  };

  // The handlers of descriptors that can be read become tasks.
  bool post_readable() {
    bool any = false;
    for (Watched* const each : watched_) any = each->post_if_readable() || any;
    return any;
  }

  std::vector<Watched*> watched_;
  const std::shared_ptr<const Clock> clock_;
};

using BackendMaker = std::function<std::unique_ptr<Backend>(BackendHost& host)>;
// A backend that is called from inside its own callbacks.
[[nodiscard]] std::unique_ptr<Backend> make_reentrant(BackendHost& host, Dice& dice, const BackendMaker& make);

// Claims of a process to locks: how many of its acquires may have left something in the service.
class Claims {
 public:
  void begin(const std::string& lock) { ends_[lock].push_back(TimePoint::max()); }
  // It was denied, or given back.
  void end(const std::string& lock, TimePoint now) { *std::ranges::find(ends_[lock], TimePoint::max()) = now; }
  // Acquires in progress, and those that ended only just, for which something may still be under way.
  [[nodiscard]] std::size_t count(const std::string& lock, TimePoint now) const {
    const TimePoint recently = now - std::chrono::milliseconds(200);  // longer than a clean-up takes in good times
    const auto found = ends_.find(lock);
    if (found == ends_.end()) return 0;
    return static_cast<std::size_t>(
        std::ranges::count_if(found->second, [recently](TimePoint end) { return end >= recently; }));
  }

 private:
  std::map<std::string, std::vector<TimePoint>> ends_;  // of its acquires
};

class SimulatedProcess {
 public:
  enum class State { runs, stopped, quits, ended, killed };

  SimulatedProcess(int number, World& world, Service& service, const Plan& plan)
      : number_(number),
        world_(world),
        service_(service),
        clock_(std::make_shared<SimulatedClock>(world.time, random_rate(world.dice, plan),
                                                world.dice.up_to(std::chrono::hours(24)))),
        engine_(std::make_shared<SimulatedEngine>(world.dice.roll(), clock_)),
        watcher_(std::make_shared<Watcher>(*this)) {
    const ClientOptions options{.label = std::to_string(number),
                                .response_timeout = response_timeout,
                                .connect_timeout = connect_timeout,
                                .observer = watcher_,
                                .clock = clock_};
    core_ = detail::ClientCore::create(engine_, Url::parse(service.url()), options,
                                       [this](BackendHost& host, const BackendConfig& config) {
                                         return make_reentrant(host, world_.dice, [this, &config](BackendHost& outer) {
                                           return service_.connect(number_, outer, config);
                                         });
                                       });
    note({.kind = Kind::started, .word = "simulated"});
  }
  ~SimulatedProcess() { bury(); }

  void start_workers(Resource& resource, const Plan& plan) {
    for (std::uint64_t i = 0; i < plan.workers; ++i) {
      workers_.push_back(start_worker(*this, world_, resource, plan));
    }
  }

  // --- What is done to it ---
  void stop() { become(State::stopped, Kind::stopped); }
  void resume() {
    if (state_ == State::stopped) become(State::runs, Kind::resumed);
  }
  // Closes its client, waits and leases included.
  void quit() {
    state_ = State::quits;
    closed_ = true;
    (void)engine_->submit([this] { core_->close(); });
  }
  // Nothing of it runs any more, nor is any of it noted. The service does not know yet.
  void kill() { become(State::killed, Kind::killed); }
  // The service finds the connection closed: it forgets what the process waited for. What it held expires by itself.
  void bury() {
    state_ = alive() ? State::killed : state_;
    if (!std::exchange(closed_, true)) {
      service_.bury(number_);
      core_->close();
    }
    workers_.clear();
    core_.reset();
  }

  // --- Running it ---
  // Whether it has something to run now.
  [[nodiscard]] bool ready() { return runs() && engine_->ready(); }
  // When it will, if nothing happens before; TimePoint::max() for never.
  [[nodiscard]] TimePoint next() const {
    const auto timer = engine_->next_timer();
    return runs() && timer ? clock_->when(*timer) : TimePoint::max();
  }
  void run_one() {
    (void)engine_->run_one();
    if (state_ != State::quits || !engine_->stopped() || engine_->queued() > 0) return;
    note({.kind = Kind::ended});
    state_ = State::ended;
  }

  // --- What it is ---
  [[nodiscard]] int number() const { return number_; }
  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] bool alive() const { return state_ == State::runs || state_ == State::stopped; }
  [[nodiscard]] SimulatedClock& clock() { return *clock_; }
  [[nodiscard]] const Capabilities& capabilities() const { return core_->context().capabilities; }
  [[nodiscard]] Mutation mutation() const { return world_.mutation; }
  // Timers of its client, not of its threads.
  [[nodiscard]] std::size_t pending_timers() const { return engine_->pending_timers() - own_timers_; }
  [[nodiscard]] Claims& claims() { return claims_; }

  // --- For its threads ---
  void note(Event event) {
    if (state_ == State::killed || state_ == State::ended) return;
    event.process = number_;
    world_.note(std::move(event));
  }
  // The same, of an acquire.
  void note(const Event& acquire, Kind kind, Event event = {}) {
    event.kind = kind;
    event.attempt = acquire.attempt;
    event.lock = acquire.lock;
    event.lock_kind = acquire.lock_kind;
    event.mode = acquire.mode;
    note(std::move(event));
  }
  // Notes that an acquire begins, and claims the lock for it. The answer says which acquire it is.
  [[nodiscard]] Event ask(const SimulatedLock& lock, Mode mode, const AcquireOptions& options) {
    Event acquire{.attempt = ++attempts_, .lock = lock.name, .lock_kind = lock.lock_kind, .mode = mode};
    claims_.begin(lock.name);
    const TimePoint deadline = clock_->when(saturating_add(clock_->now(), options.wait.value()));
    note(acquire, Kind::asked,
         {.permits = lock.permits, .until = options.wait == forever ? TimePoint::max() : deadline});
    return acquire;
  }
  void later(std::chrono::nanoseconds delay, std::function<void()> user_code) {
    if (!alive()) return;
    ++own_timers_;
    (void)engine_->schedule(engine_->now() + delay, [this, user_code = std::move(user_code)] {
      --own_timers_;
      (void)engine_->notify(user_code, engine::UserCode::completion);
    });
  }
  void acquire(const SimulatedLock& lock, Mode mode, const AcquireOptions& options,
               std::function<void(std::error_code, Lease)> handler) {
    const detail::Target target{.name = lock.name, .kind = lock.lock_kind, .mode = mode, .permits = lock.permits};
    (void)detail::start_acquire(
        core_, target, options, [core = core_, handler = std::move(handler)](detail::AcquireResult result) {
          core->context().notifier->complete([handler, result = std::move(result)] {
            handler(result.failure.code, result.lease ? detail::LeaseRecord::make_lease(result.lease) : Lease());
          });
        });
  }
  // Asks its backend: ask(backend, done). The answer is `done`'s unless the process ends before.
  template <class Answer>
  void query(std::function<void(Backend&, Backend::Handler<Answer>)> ask, Backend::Handler<Answer> done) {
    (void)engine_->submit([this, ask = std::move(ask), done = std::move(done)] {
      if (!core_->closing()) ask(core_->backend(), done);
    });
  }
  void break_lock(const SimulatedLock& lock, Backend::Handler<bool> done) {
    query<bool>([lock](Backend& backend, auto answer) { backend.break_lock(lock.lock_kind, lock.name, answer); },
                std::move(done));
  }
  // The lease of an acquire, with this token, is about to be destroyed: the observer will be told what became of it.
  void forget_lease(Event acquire, FencingToken token) { forgotten_[{acquire.lock, token}] = std::move(acquire); }

 private:
  // The process learns what became of leases that were destroyed.
  struct Watcher final : Observer {
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

  // Mostly one of the two that differ the most.
  [[nodiscard]] static std::int64_t random_rate(Dice& dice, const Plan& plan) {
    if (dice.chance(80)) return dice.chance(50) ? plan.slowest_clock : plan.fastest_clock;
    return plan.slowest_clock +
           static_cast<std::int64_t>(dice.below(static_cast<std::uint64_t>(plan.fastest_clock - plan.slowest_clock)));
  }
  [[nodiscard]] bool runs() const { return state_ == State::runs || state_ == State::quits; }
  void become(State state, Kind kind) {
    state_ = state;
    world_.note({.kind = kind, .subject = number_});
  }

  const int number_;
  World& world_;
  Service& service_;
  State state_ = State::runs;
  const std::shared_ptr<SimulatedClock> clock_;
  const std::shared_ptr<SimulatedEngine> engine_;
  const std::shared_ptr<Watcher> watcher_;
  std::shared_ptr<detail::ClientCore> core_;
  bool closed_ = false;
  std::uint64_t attempts_ = 0;
  std::size_t own_timers_ = 0;
  std::map<std::pair<std::string, FencingToken>, Event> forgotten_;
  Claims claims_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace dlock::simulation
