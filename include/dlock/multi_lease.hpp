// A MultiLease proves that the program holds several locks, until one of them expires or is lost.
//
//   dlock::MultiLease leases = locks.acquire();
//   std::stop_callback stop(leases.lost(), [&] { abort_transaction(); });
//   while (leases.held() && step(leases.token(0), leases.token(1))) {}
//   leases.release();                                         // or let the destructor do it
//
//   state       | held()              | lost()          | ended()     | release()         | left by
//   ------------+---------------------+-----------------+-------------+-------------------+--------------------------
//   empty       | false               | never fires     | never fires | false             | move assignment
//   held        | now < valid_until() | not fired       | not fired   | true (if still so)| release(), a loss,
//               |                     |                 |             |                   | ~MultiLease
//   one lost    | false               | fired           | fired       | false             | release() or ~MultiLease,
//               |                     |                 |             |                   | which give back the others
//   released    | false               | never fires now | fired       | false             | nothing
//
// Its leases are in the order in which the program named the locks. The loss of one lease does not release the others:
// the program first stops its work and then releases them.
//
// All functions may be called from any thread, at the same time, except move and destruction. A MultiLease may outlive
// its clients, but is lost then. In a child made by fork() it is never held, and destroying it touches nothing.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <stop_token>
#include <system_error>
#include <utility>

#include <dlock/clock.hpp>
#include <dlock/detail/completion.hpp>
#include <dlock/lease.hpp>
#include <dlock/token.hpp>

namespace dlock {

namespace detail {
class MultiLeaseState;
}

class [[nodiscard]] MultiLease {
 public:
  // Empty.
  MultiLease() noexcept;
  MultiLease(MultiLease&& other) noexcept;
  // Releases the present leases first, like the destructor.
  MultiLease& operator=(MultiLease&& other) noexcept;
  // Releases all locks that are still held, in parallel. Waits for the services' answers for at most
  // ClientOptions::close_timeout in total, and not at all on an engine thread. Reports failures as ~Lease does.
  ~MultiLease();

  // Whether all leases are valid now. Reads the clock and never blocks. Check it right before each step that needs the
  // locks.
  [[nodiscard]] bool held() const noexcept;

  // The earliest valid_until() of the leases.
  [[nodiscard]] TimePoint valid_until() const noexcept;

  // The shortest remaining() of the leases; zero unless all are held.
  [[nodiscard]] std::chrono::nanoseconds remaining() const noexcept;

  // Fires once when the first of the leases is lost or expires, as Lease::lost() does. A release does not fire it.
  // Callbacks run on the engine thread of the client that lost its lock, or on the thread that calls lost() if that
  // thread notices the loss first. They must neither block nor throw.
  [[nodiscard]] std::stop_token lost() const;

  // Fires once with lost(), or with a release, as Lease::ended() does: on the thread of the release, before another
  // owner can enter.
  [[nodiscard]] std::stop_token ended() const;

  // Releases all locks, in the reverse order of their acquisition, also if one release fails. True: all leases were
  // ours until now. False: one was lost, or they were released already. Blocks for one round trip for all of them
  // together, at most a quarter longer than ClientOptions::response_timeout (of several clients, the longest). held()
  // is false from the start of the call. Tries all releases, then throws the first Error, which names the lock; dlock
  // retries in the background. On the engine thread of one of the clients, where nothing may block, it throws
  // std::errc::resource_deadlock_would_occur while one of them is held, and releases none: use async_release() there.
  bool release();
  bool release(std::error_code& ec) noexcept;

  // Releases all locks without blocking, for event loops: nobody waits for the answers. Reports failures to the
  // observer. No effect on an empty or released one.
  void release_in_background() noexcept;

  // The same without blocking. The handler runs exactly once, after all answers, on the engine thread of the client
  // with the last answer: handler(std::error_code, bool were_ours) or, if it cannot be called so, handler(const
  // Failure&, bool).
  template <class Handler>
  void async_release(Handler&& handler) {
    start_release(detail::completion<bool>(std::forward<Handler>(handler)));
  }

  // The number of locks; 0 for an empty one.
  [[nodiscard]] std::size_t size() const noexcept;
  // The lease of the i-th named lock, i from 0 to size() - 1: for its name, its token, and whether it is the lost one.
  // It lives as long as this object.
  [[nodiscard]] const Lease& operator[](std::size_t i) const noexcept;
  [[nodiscard]] FencingToken token(std::size_t i) const noexcept { return (*this)[i].token(); }
  // False only for a default-constructed or moved-from one.
  [[nodiscard]] bool has_value() const noexcept { return state_ != nullptr; }

 private:
  friend class detail::MultiLeaseState;
  explicit MultiLease(std::shared_ptr<detail::MultiLeaseState> state) noexcept;
  void start_release(detail::Completion<bool> handler);

  std::shared_ptr<detail::MultiLeaseState> state_;
};

}  // namespace dlock
