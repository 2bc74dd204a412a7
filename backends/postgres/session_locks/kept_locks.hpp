// The locks that live in one session: they are safe as long as the session is confirmed, and are lost with it.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <dlock/spi/backend.hpp>

#include "backends/postgres/sql/lock_key.hpp"

namespace dlock::postgres {

// In tasks only.
class KeptLocks {
 public:
  // lease: how long the session is safe after it was confirmed.
  KeptLocks(BackendHost& host, std::chrono::nanoseconds lease) : host_(host), lease_(lease) {}

  void add(const Grant& grant, LockKey key);
  // It is to be released: nothing more is reported about it. nullopt: it is not, or no longer, here.
  [[nodiscard]] std::optional<LockKey> take(const OwnerId& owner);

  // The session was confirmed: it knew what was sent then. Those whose lease has expired by now are lost, and answered:
  // they have to be unlocked, since their holders consider them lost.
  [[nodiscard]] std::vector<LockKey> session_alive(TimePoint sent);
  void lose_all(const Failure& why);

  [[nodiscard]] std::size_t size() const noexcept { return locks_.size(); }
  [[nodiscard]] bool empty() const noexcept { return locks_.empty(); }

 private:
  struct Lock {
    std::string name;
    LockKey key;
    TimePoint valid_until;  // as the host knows it
  };

  BackendHost& host_;
  const std::chrono::nanoseconds lease_;
  std::unordered_map<OwnerId, Lock> locks_;
  TimePoint told_ = TimePoint::min();  // at least so far the host knows all of them to be safe
};

}  // namespace dlock::postgres
