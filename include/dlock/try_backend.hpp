// The easy way to write a backend: say how to try and, if the service can tell, when it may be worth trying again. The
// core does the rest: waiting, waking, deadlines, cancellation, back-off while the service is unreachable, and cleaning
// up after tries whose outcome is unknown or comes too late.
//
//   class MyBackend : public dlock::TryBackend {
//     void try_acquire(const dlock::LockRequest& request, TryHandler done) override;
//     std::unique_ptr<dlock::Watch> watch(dlock::Space, const std::string& name, std::function<void()> changed)
//     override;
//     ...
//   };
//
// The rules of backend.hpp hold: serialised, no blocking, no throwing.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <dlock/backend.hpp>

namespace dlock {

// What came of a try.
struct TryOutcome {
  enum class Status {
    granted,
    busy,
    // errc::unavailable: did not happen, worth another try. errc::ambiguous: may have happened; the next try has the
    // same owner id, and a try by the owner of the lock must answer granted. Anything else is final.
    failed,
  } status;
  Grant grant = {};
  // With busy: when the lock frees itself unless it is renewed, if the service says so.
  std::optional<std::chrono::nanoseconds> retry_after = std::nullopt;
  Failure failure = {};
};

// How the ready-made contention paces itself. Every time is drawn at random between its bounds (jitter).
struct TryPolicy {
  // Between tries while busy, when nothing wakes us: the safety net under a watch, or plain polling without one.
  std::chrono::nanoseconds poll_min = std::chrono::milliseconds(500);
  std::chrono::nanoseconds poll_max = std::chrono::milliseconds(1000);
  // After a failed try: doubles from min to max, full jitter in the upper half.
  std::chrono::nanoseconds backoff_min = std::chrono::milliseconds(20);
  std::chrono::nanoseconds backoff_max = std::chrono::seconds(1);
};

// A Backend that needs only to try.
class TryBackend : public Backend {
 public:
  using TryHandler = std::function<void(TryOutcome)>;

  explicit TryBackend(BackendHost& host, TryPolicy policy = {});
  ~TryBackend() override;

  // One try, one round trip; must answer within BackendConfig::response_timeout, with errc::ambiguous if nothing came.
  virtual void try_acquire(const LockRequest& request, TryHandler done) = 0;

  // A contention waits by Backend::watch(), and polls where that answers nullptr.

  // Makes sure that this owner id does not hold, and will not come to hold, the lock, and that nothing of it keeps
  // readers out: a try of it ended ambiguous (even if a later one was busy: the first may arrive after that), or it
  // waited to write, and nobody will try again. Goes on by itself until that is certain or the lease is over. Default:
  // release() by owner.
  virtual void abandon(const LockRequest& request);

  [[nodiscard]] std::unique_ptr<Contention> contend(const LockRequest& request, GrantSink& sink) override;

  // Waits until the tries that nobody waits for any more are answered, and what they were granted is released. An
  // override begins with this.
  void close(std::function<void()> done) override;

 protected:
  [[nodiscard]] BackendHost& host() const noexcept { return host_; }

 private:
  class TryContention;
  BackendHost& host_;
  TryPolicy policy_;
  std::shared_ptr<void> orphans_;  // also tells handlers that come late whether the backend is still there
};

}  // namespace dlock
