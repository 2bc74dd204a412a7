// A Lease proves that the program holds a lock, until it expires or is lost.
//
//   dlock::Lease lease = lock.acquire();
//   std::stop_callback stop(lease.lost(), [&] { abort_transaction(); });    // ended(): on release, too
//   while (lease.held() && step(lease.token())) {}
//   lease.release();                                          // or let the destructor do it
//
//   state       | held()            | lost()          | ended()     | release()         | left by
//   ------------+-------------------+-----------------+-------------+-------------------+----------------------------
//   empty       | false             | never fires     | never fires | false             | move assignment
//   held        | now < valid_until | not fired       | not fired   | true (if still so)| release(), loss, ~Lease,
//               |                   |                 |             |                   | ~Client
//   lost        | false             | fired           | fired       | false             | nothing: it stays lost
//   released    | false             | never fires now | fired       | false             | nothing
//
// All functions may be called from any thread, at the same time, except move and destruction. A Lease may outlive its
// Client, but is lost then. In a child made by fork() a lease is never held, and destroying it touches nothing.
#pragma once

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>

#include <dlock/clock.hpp>
#include <dlock/detail/completion.hpp>
#include <dlock/token.hpp>

namespace dlock {

namespace detail {
class LeaseRecord;
}

class [[nodiscard]] Lease {
 public:
  // Empty.
  Lease() noexcept;
  Lease(Lease&& other) noexcept;
  // Releases the present lease first, like the destructor.
  Lease& operator=(Lease&& other) noexcept;
  // Releases the lock if it is still held. Waits for the service's answer for at most ClientOptions::close_timeout, and
  // not at all on the engine thread. Reports a failure to the observer (ReleasedEvent).
  ~Lease();

  // Whether the lease is valid now: not released, not lost, and not expired. Reads the clock and never blocks. So a
  // process that was stopped past its lease sees `false` on its first check. Check it right before each step that needs
  // the lock.
  [[nodiscard]] bool held() const noexcept;

  // When the lease expires without another renewal. dlock counts it from before it sent the request that granted or
  // last renewed the lease, and subtracts a margin for clock drift. TimePoint::max() if the backend's leases do not
  // expire.
  [[nodiscard]] TimePoint valid_until() const noexcept;

  // How long it stays valid without another renewal, by the client's clock. Zero when it is not held;
  // nanoseconds::max() if the backend's leases do not expire.
  [[nodiscard]] std::chrono::nanoseconds remaining() const noexcept;

  // Greater than the token of every earlier lease of this name. 0 for an empty lease.
  [[nodiscard]] FencingToken token() const noexcept;

  // Fires once when the lease is lost or expires, no later than valid_until() if the scheduler lets the engine thread
  // run. If the loss came earlier, the token has fired already. A release does not fire it. Callbacks run on the
  // client's engine thread, or on the thread that calls lost() if that thread notices the loss first. They must neither
  // block nor throw.
  [[nodiscard]] std::stop_token lost() const;

  // Fires once when the lease ends: with lost(), or with a release. A release fires it first, on its own thread, before
  // another owner can enter; held() is false by then. Otherwise as lost(). For work that must end with the lease,
  // whichever way that is: a thread joins before a lease declared earlier is released, so give it a token of its own.
  //
  //   std::jthread worker(work);                                                    // work(std::stop_token)
  //   std::stop_callback stop(lease.ended(), [&] { worker.request_stop(); });
  [[nodiscard]] std::stop_token ended() const;

  // Releases the lock. True: the lease was ours until now, so no other owner can have entered. False: it was lost,
  // released or empty already; the release does not touch another holder. Blocks for one round trip, at most a quarter
  // longer than ClientOptions::response_timeout. held() is false from the start of the call. Throws Error (unavailable,
  // ambiguous) if the service did not confirm. dlock then retries in the background, and the service frees the lock
  // when the lease expires. Also ambiguous: the answer was lost, and by the time of the retry the lease had expired, so
  // that its release and its expiry cannot be told apart. On the engine thread, where nothing may block, it throws
  // std::errc::resource_deadlock_would_occur while the lease is held, which then stays held: use async_release() there,
  // or destroy the lease.
  bool release();
  bool release(std::error_code& ec) noexcept;

  // Releases the lock without blocking, for event loops: no call waits for the answer. Reports a failure to the
  // observer (warning); dlock retries, as after release(). No effect on a lease that is empty, lost or released.
  void release_in_background() noexcept;

  // As release(), without blocking. The handler runs on the engine thread, exactly once, as handler(std::error_code,
  // bool was_ours) or, if it cannot be called so, as handler(const Failure&, bool was_ours).
  template <class Handler>
  void async_release(Handler&& handler) {
    start_release(detail::completion<bool>(std::forward<Handler>(handler)));
  }

  // The lock's name; empty for an empty lease.
  [[nodiscard]] const std::string& name() const noexcept;
  // The id of this lease in the service.
  [[nodiscard]] OwnerId owner() const noexcept;
  // False only for a default-constructed or moved-from lease.
  [[nodiscard]] bool has_value() const noexcept { return state_ != nullptr; }

 private:
  friend class detail::LeaseRecord;
  explicit Lease(std::shared_ptr<detail::LeaseRecord> state) noexcept;
  void start_release(detail::Completion<bool> handler);

  std::shared_ptr<detail::LeaseRecord> state_;
};

}  // namespace dlock
