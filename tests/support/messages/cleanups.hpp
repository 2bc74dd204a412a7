// Removes what owners that gave up have left in the store, even if messages are lost.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include <dlock/clock.hpp>
#include <dlock/spi/backoff.hpp>
#include <dlock/spi/executor.hpp>
#include <dlock/token.hpp>

#include "tests/support/messages/connection.hpp"

namespace dlock::messages {

// Releases by owner id, again and again until the store confirms it. A request of the owner that was delayed or doubled
// may arrive even after that, however late; the store's answer to it, or its news when that owner's turn comes, shows
// that there is something to release again. In tasks only.
class Cleanups {
 public:
  explicit Cleanups(Connection& connection) noexcept : connection_(connection) {}

  // What the owner may have in the store: a lease, which ends by itself, or also a place in the queue, which does not.
  enum class Stake { lease, place };
  void start(LockKind kind, const std::string& name, const OwnerId& owner, std::chrono::nanoseconds lease, Stake stake);

  // The owner has been granted the lock, so messages about it are no sign of anything left behind, until it releases
  // the lock or has lost it. Needed only for owners about which messages may yet arrive.
  void keep(const OwnerId& owner) { kept_.insert(owner); }
  void drop(const OwnerId& owner) { kept_.erase(owner); }
  // The store sent something for this owner, which waits for nothing.
  void heard_of(LockKind kind, const std::string& name, const OwnerId& owner);

  // Calls done once nothing is left to be confirmed.
  void finish(std::function<void()> done);

 private:
  struct Entry {
    explicit Entry(Executor& executor) : timer(executor) {}
    LockKind kind = LockKind::lock;
    std::string name;
    TimePoint moot;      // when there can be nothing left of the owner
    bool again = false;  // a message about the owner came since the last release was sent
    Backoff backoff{std::chrono::seconds(1)};
    Timer timer;
  };

  void start_until(LockKind kind, const std::string& name, const OwnerId& owner, TimePoint moot);
  void release(const OwnerId& owner);
  void confirmed(const OwnerId& owner);
  void failed(const OwnerId& owner);
  void forget(const OwnerId& owner);
  void report_if_finished();

  Connection& connection_;
  std::unordered_map<OwnerId, Entry> entries_;  // until the store has confirmed
  std::unordered_set<OwnerId> kept_;
  std::function<void()> finished_;
};

}  // namespace dlock::messages
