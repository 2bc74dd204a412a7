// The client's side of MutantService.
#pragma once

#include <map>
#include <memory>
#include <string>

#include <dlock/backend.hpp>

#include "mutants/mutant_service.hpp"

namespace dlock::conformance {

class MutantBackend final : public Backend, private MutantService::Inbox {
 public:
  MutantBackend(BackendHost& host, const BackendConfig& config, std::shared_ptr<MutantService> service);
  ~MutantBackend() override;

  [[nodiscard]] Capabilities capabilities() const noexcept override;
  [[nodiscard]] std::unique_ptr<Contention> contend(const LockRequest& request, GrantSink& sink) override;
  void renew(const Grant& grant, RenewHandler done) override;
  void release(const Grant& grant, ReleaseHandler done) override;
  void inspect(const std::string& name, Handler<LockInfo> done) override;
  void break_lock(const std::string& name, Handler<bool> done) override;

 private:
  class Waiting;

  void granted(const OwnerId& owner, FencingToken token, TimePoint since) override;
  [[nodiscard]] Grant make_grant(const LockRequest& request, FencingToken token, TimePoint since) const;
  [[nodiscard]] TimePoint valid_until(TimePoint since, std::chrono::nanoseconds lease) const;
  [[nodiscard]] TimePoint now() const noexcept { return host_.executor().now(); }
  [[nodiscard]] bool unreachable() const { return service_->unreachable(holder_); }
  // Makes sure that the owner neither holds nor waits, now or once the service can be reached.
  void clean_up(const std::string& name, const OwnerId& owner);

  BackendHost& host_;
  const std::string holder_;
  const std::shared_ptr<MutantService> service_;
  std::map<OwnerId, Waiting*> waiting_;
  std::map<OwnerId, std::unique_ptr<Timer>> clean_ups_;
  // What a posted task may rely on: expired once this is gone.
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace dlock::conformance
