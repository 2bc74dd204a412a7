// The locks of one kind in one directory, as one client has them. Serialised by the backend.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <dlock/spi/try_backend.hpp>

#include "backends/file/inspector.hpp"
#include "backends/file/loss_monitor.hpp"
#include "backends/file/names.hpp"
#include "backends/file/waiters.hpp"

namespace dlock::file {

class LockSpace {
 public:
  LockSpace(LockKind kind, LockDirectory directory, ClientState& client);
  LockSpace(const LockSpace&) = delete;
  LockSpace& operator=(const LockSpace&) = delete;

  // As Backend and TryBackend say.
  [[nodiscard]] TryOutcome try_acquire(const LockRequest& request);
  [[nodiscard]] std::unique_ptr<Watch> watch(const LockRequest& request, std::function<void()> changed);
  [[nodiscard]] bool release(const Grant& grant);  // false: the grant did not own the lock any more
  [[nodiscard]] Inspector& inspector() noexcept { return inspector_; }

 private:
  // The answer that needs no system call, because this client itself holds the lock or keeps others out.
  [[nodiscard]] std::optional<TryOutcome> refused_here(const Name& name, const LockRequest& request) const;
  [[nodiscard]] TryOutcome acquire(Name& name, const LockRequest& request);
  [[nodiscard]] std::optional<Failure> open(Name& name);

  ClientState& client_;
  LockFiles files_;
  Names names_;
  LossMonitor losses_;
  Waiters waiters_;
  Inspector inspector_;
};

}  // namespace dlock::file
