// The memory backend for a process with a clock of its own.
//
// The clients of a memory store share a clock, and their messages carry times. Here the backend lives in the service's
// time, and its answers are translated where they pass to the core: a lease begins at the same instant on both clocks,
// and its length is counted on the process's. That is what a client does whose service tells it no times. It is also
// where mutations are put in.
#pragma once

#include <memory>
#include <vector>

#include <dlock/spi/backend.hpp>

#include "backends/memory/memory_backend.hpp"
#include "tests/simulation/clocks.hpp"
#include "tests/simulation/memory/memory_service.hpp"

namespace dlock::simulation {

// The process's engine in the service's time.
class ServiceExecutor final : public Executor {
 public:
  ServiceExecutor(Executor& engine, const ProcessClock& own, const Clock& service)
      : engine_(engine), own_(own), service_(service) {}

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
  SimulatedBackend(BackendHost& host, const BackendConfig& config, MemoryService& service);
  ~SimulatedBackend() override;

  [[nodiscard]] Capabilities capabilities() const noexcept override;
  [[nodiscard]] std::unique_ptr<Contention> contend(const LockRequest& request, GrantSink& sink) override;
  void renew(const Grant& grant, RenewHandler done) override;
  void release(const Grant& grant, ReleaseHandler done) override;
  void close(std::function<void()> done) override { memory_.close(std::move(done)); }

 private:
  class Translator;
  class Attempt;

  // --- BackendHost ---
  [[nodiscard]] Executor& executor() noexcept override { return executor_; }
  void extended(const OwnerId& owner, TimePoint valid_until) override { host_.extended(owner, valid_until); }
  void lost(const OwnerId& owner, Failure why) override { host_.lost(owner, std::move(why)); }
  void connection(ConnectionEvent event) override { host_.connection(std::move(event)); }
  void warn(WarningEvent event) override { host_.warn(std::move(event)); }
  [[nodiscard]] OwnerId new_owner_id() override { return host_.new_owner_id(); }

  // For how long the service is asked to keep a lock.
  [[nodiscard]] std::chrono::nanoseconds kept_for(std::chrono::nanoseconds lease) const;
  // From the end of a lease in the service's time to the process's.
  [[nodiscard]] TimePoint translate(TimePoint valid_until, std::chrono::nanoseconds lease) const;
  [[nodiscard]] Grant for_service(Grant grant) const;
  [[nodiscard]] Grant for_core(Grant grant, std::chrono::nanoseconds lease);
  [[nodiscard]] bool goes_wrong(Mutation mutation, std::uint64_t one_in);
  void revive(const Grant& grant);
  // For a mutation.
  [[nodiscard]] bool seems_free(const LockRequest& request);
  // The present holder.
  FencingToken take_over(const LockRequest& request);

  BackendHost& host_;
  const ProcessClock& clock_;
  MemoryService& service_;
  ServiceExecutor executor_;
  memory::MemoryBackend memory_;
  std::vector<std::unique_ptr<Attempt>> left_behind_;  // by a mutation
};

}  // namespace dlock::simulation
