// Attempts to connect: opens the handle of a session, and closes the handles that are no longer needed.
//
// While no session stands, an unresponsive host is left for the next one in the list, which each client shuffles: only
// a new handle leaves a host before two thirds of the session timeout. If hosts refuse connections, or names are
// resolved slowly, the client library continues by itself. The handle of a session that may hold locks stays: the
// library cannot close it without ending that session, if it has been re-established at that moment.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/zookeeper/connection/handle.hpp"
#include "backends/zookeeper/options.hpp"

namespace dlock::zookeeper {

using HandleFactory =
    std::function<std::unique_ptr<Handle>(Executor& executor, const Options& options, Handle::Listener& listener)>;

// In tasks only.
class Connector {
 public:
  // The host of the attempt did not answer in its time. last: nor did any other host of this round.
  using Unresponsive = std::function<void(const Failure& why, bool last)>;

  Connector(Executor& executor, const Options& options, HandleFactory handles, Handle::Listener& listener,
            Unresponsive unresponsive);

  // The next attempt begins with another host.
  void next_host();
  // Begins an attempt. False: too many handles are being closed; later.
  [[nodiscard]] bool open();
  // The handle of the attempt got a session. False: it was requested so long ago that a session that is requested now
  // will be of more use, so the handle was closed. Not twice in a row: such servers are slow.
  [[nodiscard]] bool accept(std::chrono::milliseconds granted);
  // The attempt is over. Closes the handle, so that the nodes of its session go.
  void close_handle();
  // Then calls done, when all handles are closed. For good.
  void close(std::function<void()> done);

  // nullptr between attempts.
  [[nodiscard]] Handle* handle() const noexcept { return handle_.get(); }
  // Before the handle was made: a session counts from then.
  [[nodiscard]] TimePoint opened_at() const noexcept { return opened_at_; }

 private:
  void check();
  void check_later();
  [[nodiscard]] std::chrono::nanoseconds patience() const;
  void finish_closing();

  Executor& executor_;
  const Options& options_;
  Options dialled_;  // the same, with the host in front that the next handle begins with
  const HandleFactory handles_;
  Handle::Listener& listener_;
  const Unresponsive unresponsive_;
  std::unique_ptr<Handle> handle_;
  std::vector<std::unique_ptr<Handle>> closing_;
  std::function<void()> closed_;
  TimePoint opened_at_;
  TimePoint unresponsive_since_;
  std::size_t unresponsive_hosts_ = 0;  // left since a session stood
  bool requested_again_ = false;
  Timer timer_;
  Lifetime lifetime_;
};

}  // namespace dlock::zookeeper
