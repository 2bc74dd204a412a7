// A Lease is the proof of holding a lock, for as long as it can be relied on.
//
//   dlock::Lease lease = lock.acquire();
//   std::stop_callback stop(lease.lost(), [&] { abort_transaction(); });
//   while (lease.held() && step(lease.token())) {}
//   lease.release();                                          // or let the destructor do it
//
//   state       | held()            | lost()          | release()         | left by
//   ------------+-------------------+-----------------+-------------------+---------------------------------------
//   empty       | false             | never fires     | false             | move assignment
//   held        | now < valid_until | not fired       | true (if still so)| release(), loss, ~Lease, ~Client
//   lost        | false             | fired           | false             | nothing: a lost lease stays lost
//   released    | false             | never fires now | false             | nothing
//
// All functions may be called from any thread, at the same time, except move and destruction. A Lease may outlive its
// Client: it is lost then. In a child made by fork() a lease is never held, and destroying it touches nothing.
#pragma once

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
class LeaseState;
}

class [[nodiscard]] Lease {
 public:
  // Empty.
  Lease() noexcept;
  Lease(Lease&& other) noexcept;
  // Releases what this held, like the destructor.
  Lease& operator=(Lease&& other) noexcept;
  // Releases the lock if it is still held; waits for the service's word, but no longer than
  // ClientOptions::close_timeout, and not at all on the engine thread. A failure is reported to the observer.
  ~Lease();

  // Whether the lock can be relied on right now: not released, not lost, and before valid_until(). Reads the clock
  // and never blocks: a process that was stopped past its lease is told the truth by its first look. Look right
  // before each step that needs the lock.
  [[nodiscard]] bool held() const noexcept;

  // Until when the lease is safe without another renewal, counted from before the request that granted or last renewed
  // it was sent, less a margin for clock drift. TimePoint::max() where the backend's leases do not run out.
  [[nodiscard]] TimePoint valid_until() const noexcept;

  // Greater than the token of every earlier lease of this name. 0 for an empty lease.
  [[nodiscard]] FencingToken token() const noexcept;

  // Fires once when the lease can no longer be relied on, no later than valid_until() as far as the scheduler lets
  // the engine thread run; a loss that happened before is seen at once. Release does not fire it. Callbacks run on the
  // client's engine thread, or on the thread that calls lost() when that one notices first; they must
  // neither block nor throw.
  [[nodiscard]] std::stop_token lost() const;

  // Gives the lock back. True: it had been ours until now, nobody else can have entered. False: it was lost, released
  // or empty already; another holder, if there is one, is not touched. Blocks for one round trip, at most
  // a quarter longer than ClientOptions::response_timeout. held() is false from the start of the call. Throws Error
  // when the service did not confirm (unavailable, ambiguous): dlock goes on trying in the background, and the service
  // frees the lock when its lease runs out. On the engine thread, where nothing may block, it throws
  // std::errc::resource_deadlock_would_occur unless the backend answers at once; use async_release() there.
  bool release();
  bool release(std::error_code& ec) noexcept;

  // The same without blocking. The handler runs on the engine thread, exactly once, as
  // handler(std::error_code, bool was_ours) or, if it does not take that, as handler(const Failure&, bool was_ours).
  template <class Handler>
  void async_release(Handler&& handler) {
    start_release(detail::completion<bool>(std::forward<Handler>(handler)));
  }

  // The lock's name; empty for an empty lease.
  [[nodiscard]] const std::string& name() const noexcept;
  // What the service knows this lease by.
  [[nodiscard]] OwnerId owner() const noexcept;
  // False only for a default-constructed or moved-from lease.
  [[nodiscard]] bool has_value() const noexcept { return state_ != nullptr; }

 private:
  friend class detail::LeaseState;
  explicit Lease(std::shared_ptr<detail::LeaseState> state) noexcept;
  void start_release(detail::Completion<bool> handler);

  std::shared_ptr<detail::LeaseState> state_;
};

}  // namespace dlock
