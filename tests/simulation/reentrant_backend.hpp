// Calls a backend from inside its own callbacks: a decorator between the core and a backend, which keeps some of the
// core's calls back until the backend reports something. So contentions begin and are destroyed, and leases are renewed
// and released, inside any callback.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <dlock/spi/backend.hpp>
#include <dlock/spi/executor.hpp>

#include "torture/dice.hpp"

namespace dlock::simulation {

class ReentrantBackend final : public Backend, private BackendHost {
 public:
  using Factory = std::function<std::unique_ptr<Backend>(BackendHost& host)>;
  ReentrantBackend(BackendHost& host, torture::Dice& dice, const Factory& factory)
      : host_(host), dice_(dice), later_(host.executor()), inner_(factory(*this)) {}

  [[nodiscard]] Capabilities capabilities() const noexcept override { return inner_->capabilities(); }
  [[nodiscard]] std::unique_ptr<Contention> contend(const LockRequest& request, GrantSink& sink) override;
  void renew(const Grant& grant, RenewHandler done) override;
  void release(const Grant& grant, ReleaseHandler done) override;
  [[nodiscard]] std::unique_ptr<Watch> watch(LockKind kind, const std::string& name,
                                             std::function<void()> changed) override;
  void inspect(LockKind kind, const std::string& name, Handler<LockInfo> done) override;
  void list(LockKind kind, Handler<std::vector<LockInfo>> done) override;
  void break_lock(LockKind kind, const std::string& name, Handler<bool> done) override;
  void forget(const Forgetting& what, Handler<std::vector<std::string>> done) override;
  void close(std::function<void()> done) override;

 private:
  class Attempt;
  class Handle;
  struct Call {
    std::function<void()> run;
    const Attempt* destroys = nullptr;  // not inside a call to its own sink
  };

  [[nodiscard]] std::unique_ptr<Contention> begin(std::shared_ptr<Attempt> attempt);
  // Now, or inside a callback that comes soon. Calls keep their order.
  void call(Call what);
  void run_kept_back();
  // The callback, with calls that were kept back before it or behind it.
  template <class Callback>
  [[nodiscard]] auto around(Callback callback) {
    return [this, callback = std::move(callback)](auto&&... what) {
      ReentrantBackend& backend = *this;  // the call may end what owns this callback
      if (dice_.chance(50)) run_kept_back();
      callback(std::forward<decltype(what)>(what)...);
      backend.run_kept_back();
    };
  }

  // --- BackendHost ---
  [[nodiscard]] Executor& executor() noexcept override { return host_.executor(); }
  void extended(const OwnerId& owner, TimePoint valid_until) override {
    around([this](const auto&... what) { host_.extended(what...); })(owner, valid_until);
  }
  void lost(const OwnerId& owner, Failure why) override {
    EXPECT_TRUE(why.code) << "lost without a reason";
    around([this](const auto&... what) { host_.lost(what...); })(owner, std::move(why));
  }
  void connection(ConnectionEvent event) override { host_.connection(std::move(event)); }
  void warn(WarningEvent event) override { host_.warn(std::move(event)); }
  [[nodiscard]] OwnerId new_owner_id() override { return host_.new_owner_id(); }

  BackendHost& host_;
  torture::Dice& dice_;
  Timer later_;
  std::vector<const Attempt*> reporting_;  // whose sinks are being called, outermost first
  std::unique_ptr<Backend> inner_;
  std::list<Call> kept_back_;
};

}  // namespace dlock::simulation
