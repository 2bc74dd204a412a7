// Clients of a memory store that exchange messages with it: a lock service whose network and sessions the test plays.
// It does what a network requires: it resolves requests of unknown outcome, and cleans up by owner id.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include <dlock/spi/backend.hpp>
#include <dlock/spi/try_backend.hpp>

#include "backends/memory/memory_backend.hpp"
#include "backends/memory/memory_store.hpp"
#include "tests/support/messages/connection.hpp"
#include "tests/support/messages/queue_contention.hpp"

namespace dlock::messages {

class MessageBackend final : public TryBackend, private Connection::Inbox {
 public:
  MessageBackend(BackendHost& host, const BackendConfig& config, std::shared_ptr<memory::MemoryStore> store,
                 std::shared_ptr<Faults> faults, memory::Strategy strategy);

  [[nodiscard]] Capabilities capabilities() const noexcept override;

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
  void close(std::function<void()> done) override;

 private:
  class StoreWatch;
  class Trying;

  void notified(LockKind kind, const std::string& name, const OwnerId& owner,
                const memory::MemoryStore::Answer& answer) override {
    queue_.notified(kind, name, owner, answer);
  }

  const memory::Strategy strategy_;
  const std::chrono::nanoseconds mark_;  // how long that of a waiting writer lasts: a few tries
  std::unordered_set<OwnerId> trying_;   // owners of acquires in progress that may send messages
  Connection connection_;
  Cleanups cleanups_;
  QueueClient queue_;
};

}  // namespace dlock::messages
