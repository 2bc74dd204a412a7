// Waits for events, with a guard against hangs. Nothing here sleeps.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>

#include <dlock/clock.hpp>
#include <dlock/lease.hpp>
#include <dlock/options.hpp>

namespace dlock::conformance {

// The time after which a missing event counts as a hang.
[[nodiscard]] std::chrono::milliseconds guard();
// Extends the guard from now on by the length of a session or lease whose end is awaited.
void allow_for(std::chrono::nanoseconds end);

// The length of leases that tests let expire in real time.
[[nodiscard]] std::chrono::milliseconds short_lease();
// The same for sessions (ClientOptions::lease): no service grants much shorter ones, and on a busy machine their client
// must be able to keep them.
[[nodiscard]] std::chrono::milliseconds short_session();

// Thrown, and reported by GoogleTest as a failure, when the guard expires.
class Hang : public std::runtime_error {
 public:
  explicit Hang(const std::string& what) : std::runtime_error("hang: " + what) {}
};

// Something that happens a number of times.
class Event {
 public:
  void set();
  [[nodiscard]] bool happened(std::size_t times = 1) const;
  [[nodiscard]] std::size_t count() const;
  // False: not yet, after `limit`.
  [[nodiscard]] bool wait_for(std::chrono::nanoseconds limit, std::size_t times = 1) const;
  // Throws Hang.
  void wait(const std::string& what, std::size_t times = 1) const;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::size_t count_ = 0;
};

// The loss signal of a lease as an event.
class LossEvent {
 public:
  explicit LossEvent(const Lease& lease) : callback_(lease.lost(), [event = event_] { event->set(); }) {}

  [[nodiscard]] const Event& event() const noexcept { return *event_; }
  [[nodiscard]] bool happened() const { return event_->happened(); }

 private:
  std::shared_ptr<Event> event_ = std::make_shared<Event>();
  std::stop_callback<std::function<void()>> callback_;
};

// The result of an acquire.
struct Outcome {
  std::error_code error;
  Lease lease;
};

// An acquire in progress. Its destruction cancels and waits for the end, so that a test may return at any point.
class Pending {
 public:
  // Runs on the engine thread once the lock is granted, before get() returns; may move the lease away.
  using OnGrant = std::function<void(Lease&)>;

  // For a Lock, or for one of the library's own. options.cancel is replaced; see cancel().
  template <class AnyLock>
  Pending(AnyLock& lock, AcquireOptions options, OnGrant on_grant = nullptr) {
    state_->name = lock.name();
    options.cancel = state_->cancel.get_token();
    lock.async_acquire(options, [state = state_, on_grant = std::move(on_grant)](std::error_code ec, Lease lease) {
      if (!ec && on_grant) on_grant(lease);
      state->outcome = {ec, std::move(lease)};
      state->ended.set();
    });
  }
  Pending(Pending&&) noexcept = default;
  Pending& operator=(Pending&&) = delete;
  ~Pending();

  void cancel() { state_->cancel.request_stop(); }
  [[nodiscard]] bool done() const { return state_->ended.happened(); }
  [[nodiscard]] const Event& event() const noexcept { return state_->ended; }
  // Waits for the end; call it once. Throws Hang.
  [[nodiscard]] Outcome get();
  // The same, and throws unless it was granted.
  [[nodiscard]] Lease lease();

 private:
  struct State {
    std::string name;
    std::stop_source cancel;
    Event ended;
    Outcome outcome;  // written before `ended`
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

// An acquire that must succeed; throws Hang after the guard's time, whatever the client's clock.
template <class AnyLock>
[[nodiscard]] Lease take(AnyLock& lock, const AcquireOptions& options = {}) {
  return Pending(lock, options).lease();
}

// Releases without waiting for the answer; for handlers, which must not block.
void release_soon(Lease lease);

}  // namespace dlock::conformance
