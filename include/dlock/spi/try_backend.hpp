// The easy way to write a backend: implement a try and, if the service reports changes, a watch. The core does the
// rest: waiting, waking, deadlines, cancellation, back-off while the service is unreachable, and the clean-up after
// tries with an unknown or late outcome.
//
//   class MyBackend : public dlock::TryBackend {
//     void try_acquire(const dlock::LockRequest& request, TryHandler done) override;
//     std::unique_ptr<dlock::Watch> watch(dlock::LockKind, const std::string& name, std::function<void()> changed)
//     override;
//     ...
//   };
//
// The rules of backend.hpp apply: one task at a time, no blocking, no throwing.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <dlock/spi/backend.hpp>

namespace dlock {

// The outcome of a try.
struct TryOutcome {
  enum class Status {
    granted,
    busy,
    // errc::unavailable: had no effect, a retry may help. errc::ambiguous: may have had an effect; the next try has the
    // same owner id, and a try by the owner of the lock must answer granted. All other codes are final.
    failed,
  } status;
  Grant grant = {};
  // With busy: when the lock becomes free unless it is renewed, if the service reports that.
  std::optional<std::chrono::nanoseconds> retry_after = std::nullopt;
  Failure failure = {};
};

// The timing of the built-in contention. Every time is random between its bounds (jitter).
struct TryPolicy {
  // Between tries while busy without a wake-up: the safety net of a watch, or plain polling.
  std::chrono::nanoseconds poll_min = std::chrono::milliseconds(500);
  std::chrono::nanoseconds poll_max = std::chrono::milliseconds(1000);
  // After a failed try: doubles from min to max, random in the upper half (Backoff).
  std::chrono::nanoseconds backoff_min = std::chrono::milliseconds(20);
  std::chrono::nanoseconds backoff_max = std::chrono::seconds(1);
};

// A Backend that implements only tries.
class TryBackend : public Backend {
 public:
  using TryHandler = std::function<void(TryOutcome)>;

  explicit TryBackend(BackendHost& host, TryPolicy policy = {});
  ~TryBackend() override;

  // One try, one round trip; must answer within BackendConfig::response_timeout, with errc::ambiguous if there was no
  // answer.
  virtual void try_acquire(const LockRequest& request, TryHandler done) = 0;

  // Calls `changed` as a watch of the lock does, for this request, which was busy. A contention waits with it, and
  // polls if it returns nullptr. Default: Backend::watch().
  [[nodiscard]] virtual std::unique_ptr<Watch> wait_for(const LockRequest& request, std::function<void()> changed);

  // Makes sure that this owner id does not hold the lock, will not get it, and keeps no readers out. The core calls it
  // if a try ended ambiguous (even if a later one was busy: the first may arrive after that) or the owner waited to
  // write, and no further try follows. Repeats until that is certain or the lease has expired. Default: release() by
  // owner.
  virtual void abandon(const LockRequest& request);

  [[nodiscard]] std::unique_ptr<Contention> contend(const LockRequest& request, GrantSink& sink) override;

  // Waits until all cancelled tries are answered, and releases what they were granted. An override must call this
  // first.
  void close(std::function<void()> done) override;

 protected:
  [[nodiscard]] BackendHost& host() const noexcept { return host_; }

 private:
  BackendHost& host_;
  TryPolicy policy_;
  std::shared_ptr<void> orphans_;  // also shows late handlers whether the backend still exists
};

}  // namespace dlock
