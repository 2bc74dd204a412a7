#include "mutants/mutant_backend.hpp"

#include <chrono>
#include <future>
#include <utility>

namespace dlock::conformance {

namespace {

constexpr auto retry_pause = std::chrono::milliseconds(20);

Failure cut_off() {
  return {make_error_code(errc::unavailable), "the connection is cut"};
}

}  // namespace

// A request in the service's queue, or on its way there.
class MutantBackend::Waiting final : public Contention {
 public:
  Waiting(MutantBackend& backend, LockRequest request, GrantSink& sink)
      : backend_(backend), request_(std::move(request)), sink_(sink), timer_(backend.host_.executor()) {
    backend_.waiting_[request_.owner] = this;
  }
  ~Waiting() override {
    backend_.waiting_.erase(request_.owner);
    if (done_ || !asked_ || backend_.service_->mutation() == Mutation::residue_on_give_up) return;
    backend_.clean_up(request_.name, request_.owner);
  }

  void ask() {
    if (backend_.unreachable()) {
      timer_.arm(saturating_add(backend_.now(), retry_pause), [this] { ask(); });
      return sink_.unreachable(cut_off());
    }
    const TimePoint now = backend_.now();
    const auto answer = backend_.service_->acquire(request_, std::exchange(asked_, true) ? nullptr : &backend_, now);
    if (answer.granted) return finish(answer.token, now);
    look_at(answer.lease_ends);
    sink_.busy();
  }

  void finish(FencingToken token, TimePoint since) {
    if (std::exchange(done_, true)) return;
    timer_.disarm();
    sink_.granted(backend_.make_grant(request_, token, since));
  }

 private:
  // Nobody else tells the service that a lease has run out.
  void look_at(TimePoint when) {
    timer_.arm(when, [this] {
      if (const auto next = backend_.service_->look(request_.name, backend_.now())) look_at(*next);
    });
  }

  MutantBackend& backend_;
  const LockRequest request_;
  GrantSink& sink_;
  Timer timer_;
  bool asked_ = false;
  bool done_ = false;
};

MutantBackend::MutantBackend(BackendHost& host, const BackendConfig& config, std::shared_ptr<MutantService> service)
    : host_(host), holder_(config.holder), service_(std::move(service)) {}

MutantBackend::~MutantBackend() {
  service_->detach(*this);
}

Capabilities MutantBackend::capabilities() const noexcept {
  return {.backend = "mutant",
          .scope = Scope::process,
          .lease_kind = LeaseKind::per_lock,
          .fencing = FencingDurability::service,
          .fair = true,
          .wakes_one = true,
          .counts_waiters = true,
          .can_inspect = true,
          .can_break = true};
}

TimePoint MutantBackend::valid_until(TimePoint since, std::chrono::nanoseconds lease) const {
  return lease_valid_until(since, service_->mutation() == Mutation::late_loss ? 2 * lease : lease);
}

Grant MutantBackend::make_grant(const LockRequest& request, FencingToken token, TimePoint since) const {
  return {request.name, request.owner, token, valid_until(since, request.lease), request.lease};
}

std::unique_ptr<Contention> MutantBackend::contend(const LockRequest& request, GrantSink& sink) {
  if (service_->mutation() == Mutation::blocks) std::promise<void>().get_future().wait();
  if (request.wait) {
    auto waiting = std::make_unique<Waiting>(*this, request, sink);
    waiting->ask();
    return waiting;
  }
  if (unreachable()) {
    if (service_->mutation() == Mutation::failure_is_busy) {
      sink.busy();
    } else {
      sink.failed(cut_off());
    }
    return nullptr;
  }
  const TimePoint sent = now();
  const auto answer = service_->acquire(request, nullptr, sent);
  if (answer.granted) {
    sink.granted(make_grant(request, answer.token, sent));
  } else if (service_->mutation() == Mutation::busy_is_error) {
    sink.failed({make_error_code(errc::unavailable), "somebody else holds the lock"});
  } else {
    sink.busy();
  }
  return nullptr;
}

void MutantBackend::granted(const OwnerId& owner, FencingToken token, TimePoint since) {
  host_.executor().post([this, owner, token, since, alive = std::weak_ptr<bool>(alive_)] {
    if (alive.expired()) return;
    if (const auto found = waiting_.find(owner); found != waiting_.end()) found->second->finish(token, since);
  });
}

void MutantBackend::renew(const Grant& grant, RenewHandler done) {
  using Status = RenewOutcome::Status;
  if (unreachable()) return done({Status::failed, {}, cut_off()});
  const TimePoint sent = now();
  if (!service_->renew(grant.name, grant.owner, grant.lease, sent)) {
    return done({Status::lost, {}, {make_error_code(errc::lost), "somebody else holds the lock, or nobody"}});
  }
  done({Status::renewed, valid_until(sent, grant.lease), {}});
}

void MutantBackend::release(const Grant& grant, ReleaseHandler done) {
  using Status = ReleaseOutcome::Status;
  if (unreachable()) {
    clean_up(grant.name, grant.owner);
    return done({Status::failed, cut_off()});
  }
  done({service_->release(grant.name, grant.owner, now()) ? Status::released : Status::not_owner, {}});
}

void MutantBackend::clean_up(const std::string& name, const OwnerId& owner) {
  if (!unreachable()) {
    (void)service_->release(name, owner, now());  // whether it held or waited does not matter any more
    clean_ups_.erase(owner);
    return;
  }
  if (service_->mutation() == Mutation::forgotten_clean_up) return;
  auto& timer = clean_ups_[owner];
  if (!timer) timer = std::make_unique<Timer>(host_.executor());
  timer->arm(saturating_add(now(), retry_pause), [this, name, owner] { clean_up(name, owner); });
}

void MutantBackend::inspect(const std::string& name, Handler<LockInfo> done) {
  if (unreachable()) return done(cut_off());
  done(service_->inspect(name, now()));
}

void MutantBackend::break_lock(const std::string& name, Handler<bool> done) {
  if (unreachable()) return done(cut_off());
  done(service_->break_lock(name, now()));
}

}  // namespace dlock::conformance
