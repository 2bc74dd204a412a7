// Attempts to connect: opens the handle of a session, and closes the handles that are no longer needed.
//
// Until there is a session, the connector leaves an unresponsive host for the next one in the list, which each client
// shuffles: by itself, the library stays with a host for two thirds of the session timeout. If hosts refuse
// connections, or names are resolved slowly, the library continues by itself. The handle of a session that may hold
// locks stays: the library cannot close it without ending that session, if it is re-established at that moment.
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
  // The host of the attempt did not answer in time. last: nor did any other host of this round.
  using Unresponsive = std::function<void(const Failure& why, bool last)>;

  Connector(Executor& executor, const Options& options, HandleFactory handles, Handle::Listener& listener,
            Unresponsive unresponsive);

  // The next attempt begins with a different host.
  void next_host();
  // Begins an attempt. False: too many handles are closing; retry later.
  [[nodiscard]] bool open();
  // The handle of the attempt got a session. False: it was requested so long ago that a new one is worth more, so the
  // handle was closed. Never twice in a row: such servers are slow.
  [[nodiscard]] bool accept(std::chrono::milliseconds granted);
  // Ends the attempt. Closes the handle, so that the server removes the nodes of its session.
  void close_handle();
  // Ends all activity, and calls done once all handles are closed.
  void close(std::function<void()> done);

  // nullptr between attempts.
  [[nodiscard]] Handle* handle() const noexcept { return handle_.get(); }
  // When the handle was about to be made: the earliest start of a session.
  [[nodiscard]] TimePoint opened_at() const noexcept { return opened_at_; }

 private:
  void check();
  void check_later();
  [[nodiscard]] std::chrono::nanoseconds patience() const;
  void finish_closing();

  Executor& executor_;
  const Options& options_;
  Options dialled_;  // the same, beginning with the host for the next handle
  const HandleFactory handles_;
  Handle::Listener& listener_;
  const Unresponsive unresponsive_;
  std::unique_ptr<Handle> handle_;
  std::vector<std::unique_ptr<Handle>> closing_;
  std::function<void()> closed_;
  TimePoint opened_at_;
  TimePoint unresponsive_since_;
  std::size_t unresponsive_hosts_ = 0;  // since the last session
  bool requested_again_ = false;
  Timer timer_;
  Lifetime lifetime_;
};

}  // namespace dlock::zookeeper
