#include "tests/simulation/memory/memory_backend.hpp"

#include <algorithm>
#include <utility>

namespace dlock::simulation {
namespace {

using std::chrono::nanoseconds;

// What a lease of this length is good for, from when it was asked for.
nanoseconds usable(nanoseconds lease) {
  return lease_valid_until(TimePoint(), lease) - TimePoint();
}

}  // namespace

// --- An acquire ------------------------------------------------------------------------------------------------------

class SimulatedBackend::Translator final : public GrantSink {
 public:
  Translator(SimulatedBackend& backend, LockRequest request, GrantSink& sink)
      : backend_(backend), request_(std::move(request)), sink_(&sink) {}

  void granted(Grant grant) override {
    if (auto* sink = std::exchange(sink_, nullptr)) sink->granted(backend_.for_core(std::move(grant), request_.lease));
  }
  void busy() override {
    if (sink_ == nullptr) return;
    if (backend_.goes_wrong(Mutation::two_holders, 8) || room_) {
      const FencingToken token(backend_.service_.last_token[request_.name].value() + 1);
      const TimePoint valid_until = lease_valid_until(backend_.clock_.now(), request_.lease);
      return std::exchange(sink_, nullptr)
          ->granted({request_.name, request_.owner, token, valid_until, request_.lease, request_.kind, request_.mode});
    }
    if (request_.mode == Mode::exclusive && backend_.goes_wrong(Mutation::writer_out_of_line, 1)) {
      (void)backend_.service_.store->release(request_.kind, request_.name, request_.owner,
                                             backend_.service_.executor.clock());
    }
    sink_->busy();
  }
  void unreachable(Failure why) override {
    if (sink_ != nullptr) sink_->unreachable(std::move(why));
  }
  void failed(Failure why) override {
    if (sink_ != nullptr) sink_->failed(std::move(why));
  }

  void mute() { sink_ = nullptr; }
  // There seems to be room.
  void mistake() { room_ = true; }
  // It was granted by a mutation.
  void take_over() {
    const TimePoint valid_until = lease_valid_until(backend_.clock_.now(), request_.lease);
    const FencingToken token = backend_.take_over(request_);
    std::exchange(sink_, nullptr)
        ->granted({request_.name, request_.owner, token, valid_until, request_.lease, request_.kind, request_.mode});
  }
  // Granted, or of no interest any more.
  [[nodiscard]] bool done() const { return sink_ == nullptr; }

 private:
  SimulatedBackend& backend_;
  const LockRequest request_;
  GrantSink* sink_;
  bool room_ = false;
};

class SimulatedBackend::Attempt final : public Contention {
 public:
  Attempt(SimulatedBackend& backend, const LockRequest& request, GrantSink& sink)
      : backend_(backend), translator_(std::make_unique<Translator>(backend, request, sink)) {
    LockRequest asked = request;
    asked.lease = backend.kept_for(request.lease);
    if (backend.goes_wrong(Mutation::stale_count, 1) && backend.seems_free(request)) translator_->mistake();
    if (request.kind == LockKind::election && backend.goes_wrong(Mutation::two_step_election, 1) &&
        !backend.service_.store->inspect(request.kind, request.name, backend.service_.executor.clock()).held) {
      later_ = std::make_unique<Timer>(backend.executor_);
      later_->arm(backend.executor_.now() + two_steps, [this] { translator_->take_over(); });
      return;
    }
    contention_ = backend_.memory_.contend(asked, *translator_);
  }
  Attempt(Attempt&& other) noexcept
      : backend_(other.backend_),
        translator_(std::move(other.translator_)),
        contention_(std::move(other.contention_)) {}
  ~Attempt() override {
    if (!contention_ || translator_->done() || !backend_.goes_wrong(Mutation::residue_on_give_up, 1)) return;
    translator_->mute();
    backend_.left_behind_.push_back(std::make_unique<Attempt>(std::move(*this)));
  }

 private:
  // Of a mutation: from one to the other.
  static constexpr auto two_steps = std::chrono::milliseconds(10);

  SimulatedBackend& backend_;
  std::unique_ptr<Translator> translator_;
  std::unique_ptr<Contention> contention_;
  std::unique_ptr<Timer> later_;
};

// --- The backend -----------------------------------------------------------------------------------------------------

SimulatedBackend::SimulatedBackend(BackendHost& host, const BackendConfig& config, MemoryService& service)
    : host_(host),
      clock_(dynamic_cast<const ProcessClock&>(host.executor().clock())),
      service_(service),
      executor_(host.executor(), clock_, service.executor.clock()),
      memory_(*this, config, service.store,
              service.mutation == Mutation::writer_out_of_line ? memory::Strategy::poll : service.strategy) {}

SimulatedBackend::~SimulatedBackend() = default;

Capabilities SimulatedBackend::capabilities() const noexcept {
  Capabilities capabilities = memory_.capabilities();
  capabilities.elections = true;  // the store has them; what the core's Election needs besides is not simulated
  return capabilities;
}

std::unique_ptr<Contention> SimulatedBackend::contend(const LockRequest& request, GrantSink& sink) {
  return std::make_unique<Attempt>(*this, request, sink);
}

void SimulatedBackend::renew(const Grant& grant, RenewHandler done) {
  memory_.renew(for_service(grant), [this, grant, done = std::move(done)](RenewOutcome outcome) {
    using Status = RenewOutcome::Status;
    if (outcome.status == Status::renewed) outcome.valid_until = translate(outcome.valid_until, grant.lease);
    if (outcome.status == Status::lost && goes_wrong(Mutation::renewal_revives, 1)) {
      revive(grant);
      outcome = {.status = Status::renewed, .valid_until = lease_valid_until(clock_.now(), grant.lease)};
    }
    done(outcome);
  });
}

void SimulatedBackend::release(const Grant& grant, ReleaseHandler done) {
  using Status = ReleaseOutcome::Status;
  if (goes_wrong(Mutation::release_waits_for_lease, 1)) return done({.status = Status::released});
  if (goes_wrong(Mutation::blind_release, 1)) {
    const bool freed = service_.store->break_lock(grant.kind, grant.name, service_.executor.clock());
    return done({.status = freed ? Status::released : Status::not_owner});
  }
  if (grant.kind == LockKind::semaphore && goes_wrong(Mutation::permit_of_another, 1)) {
    auto& owners = service_.owners_of[grant.name];
    std::erase_if(owners, [&](const OwnerId& owner) {
      return owner != grant.owner && service_.store->release(grant.kind, grant.name, owner, service_.executor.clock());
    });
  }
  memory_.release(for_service(grant), std::move(done));
}

// By what was so at the last request.
bool SimulatedBackend::seems_free(const LockRequest& request) {
  if (request.kind != LockKind::semaphore) return false;
  const std::size_t holders =
      service_.store->inspect(request.kind, request.name, service_.executor.clock()).holders.size();
  return std::exchange(service_.counted[request.name], holders) < request.permits;
}

// Takes the lock back without telling its holder.
void SimulatedBackend::revive(const Grant& grant) {
  if (grant.kind == LockKind::semaphore) return;
  (void)take_over({.name = grant.name,
                   .owner = grant.owner,
                   .holder = {},
                   .lease = grant.lease,
                   .kind = grant.kind,
                   .mode = grant.mode});
}

FencingToken SimulatedBackend::take_over(const LockRequest& request) {
  while (service_.store->break_lock(request.kind, request.name, service_.executor.clock())) {
    // Those who wait are granted it in between.
  }
  return service_.store->try_acquire(request, {}, service_.nobody, service_.executor.clock()).token;
}

nanoseconds SimulatedBackend::kept_for(nanoseconds lease) const {
  if (service_.mutation == Mutation::immortal_lease) return std::chrono::hours(1);
  return service_.mutation == Mutation::early_expiry ? lease / 2 : lease;
}

TimePoint SimulatedBackend::translate(TimePoint valid_until, nanoseconds lease) const {
  const TimePoint since = clock_.at(valid_until - usable(kept_for(lease)));
  if (service_.mutation == Mutation::lease_from_answer) return clock_.now() + usable(lease);
  if (service_.mutation == Mutation::no_drift_margin) return since + lease;
  return since + usable(lease);
}

Grant SimulatedBackend::for_service(Grant grant) const {
  grant.lease = kept_for(grant.lease);
  return grant;
}

Grant SimulatedBackend::for_core(Grant grant, nanoseconds lease) {
  grant.valid_until = translate(grant.valid_until, lease);
  grant.lease = lease;
  FencingToken& last = service_.last_token[grant.name];
  if (last != FencingToken() && goes_wrong(Mutation::token_repeats, 4)) grant.token = last;
  if (goes_wrong(Mutation::token_of_wall_clock, 1)) {
    const auto wall = std::chrono::duration_cast<std::chrono::microseconds>(clock_.wall_now().time_since_epoch());
    grant.token = FencingToken(static_cast<std::uint64_t>(wall.count()));
  }
  last = std::max(last, grant.token);
  if (service_.mutation == Mutation::permit_of_another) service_.owners_of[grant.name].push_back(grant.owner);
  return grant;
}

bool SimulatedBackend::goes_wrong(Mutation mutation, std::uint64_t one_in) {
  return service_.mutation == mutation && ++service_.occasions % one_in == 0;
}

}  // namespace dlock::simulation
