#include <dlock/try_backend.hpp>

#include <utility>

#include "core/try_machine.hpp"

namespace dlock {

namespace {

using detail::TryMachine;

// Carries out the machine's steps. Shared with the handlers of tries under way, which may come back after the
// contention was given up.
class Driver : public std::enable_shared_from_this<Driver> {
 public:
  Driver(TryBackend& backend, std::weak_ptr<void> backend_alive, Executor& executor, TryPolicy policy,
         LockRequest request, GrantSink& sink)
      : backend_(backend),
        backend_alive_(std::move(backend_alive)),
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
    if (!trying_ && machine_.outcome_unknown()) backend_.abandon(request_);
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
        return sink_.granted(std::move(outcome.grant));
      case TryMachine::Report::busy:
        return sink_.busy();
      case TryMachine::Report::unreachable:
        return sink_.unreachable(std::move(outcome.failure));
      case TryMachine::Report::failed:
        return sink_.failed(std::move(outcome.failure));
    }
  }

  void start_watch() {
    watch_ = backend_.watch(request_.name, [weak = weak_from_this()] {
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
      if (self->backend_alive_.expired()) return;
      auto step = self->machine_.tried(outcome, self->executor_.now());
      if (!self->given_up_) {
        self->carry_out(step, std::move(outcome));
      } else if (outcome.status == TryOutcome::Status::granted) {
        self->backend_.release(outcome.grant, [](const ReleaseOutcome&) {});  // nobody waits for it any more
      } else if (self->machine_.outcome_unknown()) {
        self->backend_.abandon(self->request_);
      }
    });
  }

  TryBackend& backend_;
  const std::weak_ptr<void> backend_alive_;
  Executor& executor_;
  const LockRequest request_;
  GrantSink& sink_;
  TryMachine machine_;
  Timer timer_;
  std::unique_ptr<Watch> watch_;
  bool trying_ = false;
  bool given_up_ = false;
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
    : host_(host), policy_(policy), alive_(std::make_shared<char>()) {}

TryBackend::~TryBackend() = default;

void TryBackend::abandon(const LockRequest& request) {
  const Grant grant{
      .name = request.name, .owner = request.owner, .token = {}, .valid_until = {}, .lease = request.lease};
  release(grant, [](const ReleaseOutcome&) {});  // a release goes on by itself until it is certain
}

std::unique_ptr<Contention> TryBackend::contend(const LockRequest& request, GrantSink& sink) {
  const auto driver = std::make_shared<Driver>(*this, alive_, host_.executor(), policy_, request, sink);
  auto contention = std::make_unique<TryContention>(driver);
  driver->start();
  return contention;
}

}  // namespace dlock
