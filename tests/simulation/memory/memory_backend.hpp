// A backend for a process with a clock of its own, over a memory store.
//
// The clients of a memory store share a clock. Here the backend lives in the service's time, and its answers are
// translated where they pass to the core: a lease begins at the same instant on both clocks, and its length is counted
// on the process's. That is what a client does whose service tells it no times.
#pragma once

#include <memory>

#include <dlock/client.hpp>
#include <dlock/spi/backend.hpp>

#include "tests/simulation/clocks.hpp"

namespace dlock::simulation {

// The process's engine in the service's time.
class ServiceExecutor final : public Executor {
 public:
  ServiceExecutor(Executor& engine, const Clock& service)
      : engine_(engine), own_(dynamic_cast<const ProcessClock&>(engine.clock())), service_(service) {}

  [[nodiscard]] const ProcessClock& own() const noexcept { return own_; }
  [[nodiscard]] const Clock& clock() const noexcept override { return service_; }
  void post(Task task) override { engine_.post(std::move(task)); }
  [[nodiscard]] TimerId schedule(TimePoint at, Task task) override {
    return engine_.schedule(own_.not_before(at), std::move(task));
  }
  void cancel(TimerId id) noexcept override { engine_.cancel(id); }
  [[nodiscard]] std::uint64_t random() override { return engine_.random(); }
  [[nodiscard]] std::unique_ptr<Descriptor> watch(int fd) override { return engine_.watch(fd); }

 private:
  Executor& engine_;
  const ProcessClock& own_;
  const Clock& service_;
};

class SimulatedBackend final : public Backend, private BackendHost {
 public:
  SimulatedBackend(BackendHost& host, const BackendConfig& config, const Clock& service, const BackendFactory& inner);

  [[nodiscard]] Capabilities capabilities() const noexcept override { return inner_->capabilities(); }
  [[nodiscard]] std::unique_ptr<Contention> contend(const LockRequest& request, GrantSink& sink) override;
  void renew(const Grant& grant, RenewHandler done) override;
  void release(const Grant& grant, ReleaseHandler done) override { inner_->release(grant, std::move(done)); }
  void inspect(LockKind kind, const std::string& name, Handler<LockInfo> done) override {
    inner_->inspect(kind, name, std::move(done));
  }
  void list(LockKind kind, Handler<std::vector<LockInfo>> done) override { inner_->list(kind, std::move(done)); }
  void break_lock(LockKind kind, const std::string& name, Handler<bool> done) override {
    inner_->break_lock(kind, name, std::move(done));
  }
  void forget(const Forgetting& what, Handler<std::vector<std::string>> done) override {
    inner_->forget(what, std::move(done));
  }
  void close(std::function<void()> done) override { inner_->close(std::move(done)); }

 private:
  class Attempt;

  // --- BackendHost ---
  [[nodiscard]] Executor& executor() noexcept override { return executor_; }
  void extended(const OwnerId& owner, TimePoint valid_until) override { host_.extended(owner, valid_until); }
  void lost(const OwnerId& owner, Failure why) override { host_.lost(owner, std::move(why)); }
  void connection(ConnectionEvent event) override { host_.connection(std::move(event)); }
  void warn(WarningEvent event) override { host_.warn(std::move(event)); }
  [[nodiscard]] OwnerId new_owner_id() override { return host_.new_owner_id(); }

  // From the end of a lease in the service's time to the process's.
  [[nodiscard]] TimePoint translate(TimePoint valid_until, std::chrono::nanoseconds lease) const;

  BackendHost& host_;
  ServiceExecutor executor_;
  const std::unique_ptr<Backend> inner_;
};

}  // namespace dlock::simulation
