// Tries of a strategy whose locks share one session of the server.
#pragma once

#include <functional>
#include <memory>

#include <dlock/spi/try_backend.hpp>

#include "backends/common/sql/connection.hpp"
#include "backends/common/sql/dialect.hpp"

namespace dlock::sql {

// In tasks only.
class SharedTries {
 public:
  using ReleaseHandler = Backend::ReleaseHandler;
  // remedy: of a failure. It is never to reconnect, which the session does by itself.
  using AnswerHandler = std::function<void(TryOutcome outcome, Remedy remedy)>;
  // A try that was asked for.
  class Ask {
   public:
    Ask() = default;
    Ask(const Ask&) = delete;
    Ask& operator=(const Ask&) = delete;
    virtual ~Ask() = default;
  };

  SharedTries() = default;
  SharedTries(const SharedTries&) = delete;
  SharedTries& operator=(const SharedTries&) = delete;
  virtual ~SharedTries() = default;

  // The handler is called at most once, never inside the call, and may then ask the same again, release, or destroy
  // this object. Where it fails, nothing is left held.
  [[nodiscard]] virtual std::shared_ptr<Ask> ask(const LockRequest& request, AnswerHandler done) = 0;
  // The caller is gone: a later grant is given back. False: the try was not sent and never will be.
  virtual bool withdraw(Ask& asked) = 0;
  // Sends a query that takes no lock and waits for none.
  virtual void ask(Query query) = 0;

  // False: that lock is not, or no longer, here. The release goes on until the lock is free or the session gone.
  [[nodiscard]] virtual bool release(const OwnerId& owner, ReleaseHandler done) = 0;
  [[nodiscard]] virtual bool holds_any() const noexcept = 0;
  // Nothing is under way.
  [[nodiscard]] virtual bool quiet() const noexcept = 0;
};

}  // namespace dlock::sql
