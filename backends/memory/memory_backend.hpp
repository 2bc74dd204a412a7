// memory://: locks within one process, and the reference implementation of the SPI. A backend author learns from it
// which functions a backend has, and what each of them answers.
//
// All clients of memory://name share one MemoryStore. By default waiters stand in the store's queue
// (queue_contention.hpp); ?strategy=watch and ?strategy=poll wait by the ready-made contention of TryBackend.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <dlock/spi/backend.hpp>
#include <dlock/spi/try_backend.hpp>

#include "backends/memory/memory_store.hpp"

namespace dlock::memory {

enum class Strategy { queue, watch, poll };
[[nodiscard]] std::string_view to_string(Strategy strategy) noexcept;
// A try costs next to nothing here, so polling may be frequent.
[[nodiscard]] TryPolicy policy_of(Strategy strategy);
[[nodiscard]] Capabilities capabilities_of(Strategy strategy) noexcept;

class MemoryBackend final : public TryBackend {
 public:
  MemoryBackend(BackendHost& host, std::shared_ptr<MemoryStore> store, Strategy strategy);

  [[nodiscard]] Capabilities capabilities() const noexcept override { return capabilities_of(strategy_); }

  [[nodiscard]] std::unique_ptr<Contention> contend(const LockRequest& request, GrantSink& sink) override;
  void try_acquire(const LockRequest& request, TryHandler done) override;
  [[nodiscard]] std::unique_ptr<Watch> watch(LockKind kind, const std::string& name,
                                             std::function<void()> changed) override;
  void abandon(const LockRequest& request) override;
  void renew(const Grant& grant, RenewHandler done) override;
  void release(const Grant& grant, ReleaseHandler done) override;

  void inspect(LockKind kind, const std::string& name, Handler<LockInfo> done) override;
  void list(LockKind kind, Handler<std::vector<LockInfo>> done) override;
  void break_lock(LockKind kind, const std::string& name, Handler<bool> done) override;
  void forget(const Forgetting& what, Handler<std::vector<std::string>> done) override;
  void diagnose(Handler<std::vector<Finding>> done) override;

 private:
  [[nodiscard]] const Clock& clock() const noexcept { return executor_.clock(); }

  Executor& executor_;
  const std::shared_ptr<MemoryStore> store_;
  const Strategy strategy_;
  const std::chrono::nanoseconds mark_;  // how long a waiting writer's mark lasts: a few tries
};

// memory://[name][?strategy=queue|watch|poll]
[[nodiscard]] std::unique_ptr<Backend> make_memory_backend(BackendHost& host, const BackendConfig& config);

}  // namespace dlock::memory
