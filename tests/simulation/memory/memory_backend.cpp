#include "tests/simulation/memory/memory_backend.hpp"

#include <utility>

namespace dlock::simulation {

class SimulatedBackend::Attempt final : public Contention, private GrantSink {
 public:
  Attempt(SimulatedBackend& backend, const LockRequest& request, GrantSink& sink)
      : backend_(backend), sink_(sink), lease_(request.lease), inner_(backend.inner_->contend(request, *this)) {}

 private:
  void granted(Grant grant) override {
    grant.valid_until = backend_.translate(grant.valid_until, lease_);
    sink_.granted(std::move(grant));
  }
  void busy() override { sink_.busy(); }
  void unreachable(Failure why) override { sink_.unreachable(std::move(why)); }
  void failed(Failure why) override { sink_.failed(std::move(why)); }

  SimulatedBackend& backend_;
  GrantSink& sink_;
  const std::chrono::nanoseconds lease_;
  const std::unique_ptr<Contention> inner_;
};

SimulatedBackend::SimulatedBackend(BackendHost& host, const BackendConfig& config, const Clock& service,
                                   const BackendFactory& inner)
    : host_(host), executor_(host.executor(), service), inner_(inner(*this, config)) {}

std::unique_ptr<Contention> SimulatedBackend::contend(const LockRequest& request, GrantSink& sink) {
  return std::make_unique<Attempt>(*this, request, sink);
}

void SimulatedBackend::renew(const Grant& grant, RenewHandler done) {
  inner_->renew(grant, [this, lease = grant.lease, done = std::move(done)](RenewOutcome outcome) {
    if (outcome.status == RenewOutcome::Status::renewed) outcome.valid_until = translate(outcome.valid_until, lease);
    done(std::move(outcome));
  });
}

TimePoint SimulatedBackend::translate(TimePoint valid_until, std::chrono::nanoseconds lease) const {
  const std::chrono::nanoseconds usable = lease_valid_until(TimePoint(), lease) - TimePoint();
  return executor_.own().at(valid_until - usable) + usable;
}

}  // namespace dlock::simulation
