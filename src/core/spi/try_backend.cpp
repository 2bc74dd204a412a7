#include <dlock/spi/try_backend.hpp>

#include <utility>

#include "core/spi/try_machine.hpp"

namespace dlock {

namespace {

using detail::TryMachine;

// Tries under way whose callers no longer wait. Their grants must be released before the backend is destroyed.
struct Orphans {
  std::size_t count = 0;
  std::function<void()> all_gone;

  void gone() {
    if (--count > 0 || !all_gone) return;
    const auto told = std::exchange(all_gone, nullptr);
    told();
  }
};

// Carries out the machine's steps. Shared with the handlers of tries under way, which may come back after the
// contention was given up.
class Driver : public std::enable_shared_from_this<Driver> {
 public:
  Driver(TryBackend& backend, std::weak_ptr<Orphans> orphans, Executor& executor, TryPolicy policy, LockRequest request,
         GrantSink& sink)
      : backend_(backend),
        orphans_(std::move(orphans)),
        executor_(executor),
        request_(std::move(request)),
        sink_(sink),
        machine_(policy, request_.wait, [&executor] { return executor.random(); }),
        timer_(executor) {}

  void start() { carry_out(machine_.start()); }

  void give_up() {
    given_up_ = true;
    timer_.disarm();
    watch_.reset();
    if (trying_) {
      if (const auto orphans = orphans_.lock()) ++orphans->count;
    } else if (may_have_left_something()) {
      backend_.abandon(request_);
    }
  }

 private:
  void carry_out(TryMachine::Step step, TryOutcome outcome = {}) {
    const auto self = shared_from_this();  // a report may be the last thing before the contention goes
    if (step.final) timer_.disarm();       // the watch goes with the contention: we may be inside its callback
    if (step.wake) timer_.arm(*step.wake, [this] { carry_out(machine_.timer()); });
    report(step.report, std::move(outcome));
    if (given_up_ || step.final) return;
    if (step.watch) start_watch();
    if (step.attempt) attempt();
  }

  void report(TryMachine::Report report, TryOutcome outcome) {
    switch (report) {
      case TryMachine::Report::none:
        return;
      case TryMachine::Report::granted:
        granted_ = true;
        return sink_.granted(std::move(outcome.grant));
      case TryMachine::Report::busy:
        return sink_.busy();
      case TryMachine::Report::unreachable:
        return sink_.unreachable(std::move(outcome.failure));
      case TryMachine::Report::failed:
        return sink_.failed(std::move(outcome.failure));
    }
  }

  // A waiting writer that found the lock busy has left a mark that keeps readers out.
  [[nodiscard]] bool may_have_left_something() const {
    const bool marks = request_.wait && request_.kind == LockKind::read_write && request_.mode == Mode::exclusive;
    return machine_.outcome_unknown() || (marks && found_busy_ && !granted_);
  }

  void start_watch() {
    watch_ = backend_.wait_for(request_, [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (self && !self->given_up_) self->carry_out(self->machine_.changed());
    });
    carry_out(machine_.watching(watch_ != nullptr, executor_.now()));
  }

  void attempt() {
    timer_.disarm();
    trying_ = true;
    backend_.try_acquire(request_, [self = shared_from_this()](TryOutcome outcome) {
      self->trying_ = false;
      const auto orphans = self->orphans_.lock();
      if (!orphans) return;
      if (outcome.status == TryOutcome::Status::busy) self->found_busy_ = true;
      auto step = self->machine_.tried(outcome, self->executor_.now());
      if (!self->given_up_) return self->carry_out(step, std::move(outcome));
      if (outcome.status == TryOutcome::Status::granted) {
        return self->backend_.release(outcome.grant, [weak = self->orphans_](const ReleaseOutcome&) {
          if (const auto still = weak.lock()) still->gone();
        });
      }
      if (self->may_have_left_something()) self->backend_.abandon(self->request_);
      orphans->gone();
    });
  }

  TryBackend& backend_;
  const std::weak_ptr<Orphans> orphans_;
  Executor& executor_;
  const LockRequest request_;
  GrantSink& sink_;
  TryMachine machine_;
  Timer timer_;
  std::unique_ptr<Watch> watch_;
  bool trying_ = false;
  bool given_up_ = false;
  bool found_busy_ = false;
  bool granted_ = false;
};

}  // namespace

class TryBackend::TryContention final : public Contention {
 public:
  explicit TryContention(std::shared_ptr<Driver> driver) : driver_(std::move(driver)) {}
  ~TryContention() override { driver_->give_up(); }

 private:
  const std::shared_ptr<Driver> driver_;
};

TryBackend::TryBackend(BackendHost& host, TryPolicy policy)
    : host_(host), policy_(policy), orphans_(std::make_shared<Orphans>()) {}

TryBackend::~TryBackend() = default;

std::unique_ptr<Watch> TryBackend::wait_for(const LockRequest& request, std::function<void()> changed) {
  return watch(request.kind, request.name, std::move(changed));
}

void TryBackend::abandon(const LockRequest& request) {
  const Grant grant{.name = request.name,
                    .owner = request.owner,
                    .token = {},
                    .valid_until = {},
                    .lease = request.lease,
                    .kind = request.kind,
                    .mode = request.mode};
  release(grant, [](const ReleaseOutcome&) {});  // a release goes on by itself until it is certain
}

std::unique_ptr<Contention> TryBackend::contend(const LockRequest& request, GrantSink& sink) {
  const auto orphans = std::static_pointer_cast<Orphans>(orphans_);
  const auto driver = std::make_shared<Driver>(*this, orphans, host_.executor(), policy_, request, sink);
  auto contention = std::make_unique<TryContention>(driver);
  driver->start();
  return contention;
}

void TryBackend::close(std::function<void()> done) {
  const auto orphans = std::static_pointer_cast<Orphans>(orphans_);
  if (orphans->count == 0) return done();
  orphans->all_gone = std::move(done);
}

}  // namespace dlock
