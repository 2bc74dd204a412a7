#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <dlock/clock.hpp>
#include <dlock/lock_kind.hpp>
#include <dlock/token.hpp>

namespace dlock::memory {

// A client as the store knows it. The functions are called on any thread with the store locked: they only pass the news
// on.
class Session {
 public:
  explicit Session(std::string holder) : holder_(std::move(holder)) {}
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  [[nodiscard]] const std::string& holder() const noexcept { return holder_; }

  // A queued owner got the lock; its lease counts from `since`.
  virtual void granted(LockKind kind, const std::string& name, const OwnerId& owner, FencingToken token,
                       TimePoint since) = 0;
  // A queued owner has become the first in line, and so the one to ask again when the first of the current leases ends.
  virtual void first_in_line(LockKind kind, const std::string& name, const OwnerId& owner, TimePoint lease_ends) = 0;
  // The lock that is watched under this number became free.
  virtual void freed(std::uint64_t watch) = 0;
  // The store has forgotten what this client held, waited for and watched.
  virtual void killed() {}

 protected:
  ~Session() = default;

 private:
  std::string holder_;
};

}  // namespace dlock::memory
