// A MultiLease is the proof of holding several locks, for as long as all of them can be relied on.
//
//   dlock::MultiLease leases = locks.acquire();
//   std::stop_callback stop(leases.lost(), [&] { abort_transaction(); });
//   while (leases.held() && step(leases.token(0), leases.token(1))) {}
//   leases.release();                                         // or let the destructor do it
//
//   state       | held()              | lost()          | release()         | left by
//   ------------+---------------------+-----------------+-------------------+-------------------------------------
//   empty       | false               | never fires     | false             | move assignment
//   held        | now < valid_until() | not fired       | true (if still so)| release(), a loss, ~MultiLease
//   one lost    | false               | fired           | false             | release() or ~MultiLease, which give
//               |                     |                 |                   | back those that are still held
//   released    | false               | never fires now | false             | nothing
//
// Its leases have the order in which the locks were named. A loss of one does not release the others: the program
// stops its work first, and then gives them back.
//
// All functions may be called from any thread, at the same time, except move and destruction. A MultiLease may outlive
// its clients: it is lost then. In a child made by fork() it is never held, and destroying it touches nothing.
#pragma once

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
  // Releases what this held, like the destructor.
  MultiLease& operator=(MultiLease&& other) noexcept;
  // Releases the locks that are still held, all in one go. Waits for the services' word, but in all no longer than
  // ClientOptions::close_timeout, and not at all on an engine thread. A failure is reported to the observer.
  ~MultiLease();

  // Whether all locks can be relied on right now. Reads the clock and never blocks. Look right before each step that
  // needs the locks.
  [[nodiscard]] bool held() const noexcept;

  // Until when all leases are safe without another renewal: the earliest valid_until() of them.
  [[nodiscard]] TimePoint valid_until() const noexcept;

  // Fires once when the first of the leases can no longer be relied on, as Lease::lost() does. Release does not fire
  // it. Callbacks run on the engine thread of the client that lost its lock, or on the thread that calls lost() when
  // that one notices first; they must neither block nor throw.
  [[nodiscard]] std::stop_token lost() const;

  // Gives all locks back, in the reverse of the order in which they were taken, and goes on where one fails. True: all
  // had been ours until now. False: one was lost, or they were released already. Blocks for one round trip for all of
  // them together, at most a quarter longer than ClientOptions::response_timeout (the longest, of several clients).
  // held() is false from the start of the call. Throws the first Error, after all were tried: it names the lock, and
  // dlock goes on trying in the background. On the engine thread of one of the clients, where nothing may block, it
  // throws std::errc::resource_deadlock_would_occur unless the backend answers at once; use async_release() there.
  bool release();
  bool release(std::error_code& ec) noexcept;

  // The same without blocking. The handler runs exactly once, when all were answered, on the engine thread of the
  // client that was last: handler(std::error_code, bool were_ours) or, if it does not take that, handler(const
  // Failure&, bool).
  template <class Handler>
  void async_release(Handler&& handler) {
    start_release(detail::completion<bool>(std::forward<Handler>(handler)));
  }

  // How many locks; 0 for an empty one.
  [[nodiscard]] std::size_t size() const noexcept;
  // The lease of the lock that was named as the i-th, from 0 to size() - 1: its name, its token, whether it is the one
  // that was lost. Lives as long as this.
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
