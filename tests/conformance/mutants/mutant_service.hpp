// A small lock service within the process, correct unless told otherwise. It has no clock: callers bring the time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include <dlock/backend.hpp>

#include "mutants/mutation.hpp"

namespace dlock::conformance {

// Thread-safe.
class MutantService {
 public:
  // Where a client is told that one of its waiters was granted, at `since`. Called with the service locked.
  class Inbox {
   public:
    Inbox() = default;
    Inbox(const Inbox&) = delete;
    Inbox& operator=(const Inbox&) = delete;
    virtual void granted(const OwnerId& owner, FencingToken token, TimePoint since) = 0;

   protected:
    ~Inbox() = default;
  };

  struct Answer {
    bool granted = false;
    FencingToken token = {};
    TimePoint lease_ends = {};  // of whoever holds
  };

  explicit MutantService(Mutation mutation) : mutation_(mutation) {}

  [[nodiscard]] Mutation mutation() const noexcept { return mutation_; }

  // inbox: where to send the grant of a request that waits; nullptr if it does not.
  Answer acquire(const LockRequest& request, Inbox* inbox, TimePoint now);
  bool renew(const std::string& name, const OwnerId& owner, std::chrono::nanoseconds lease, TimePoint now);
  // Afterwards the owner neither holds nor waits. Answers whether it held.
  bool release(const std::string& name, const OwnerId& owner, TimePoint now);
  // Lets leases run out. When the current one does.
  std::optional<TimePoint> look(const std::string& name, TimePoint now);
  LockInfo inspect(const std::string& name, TimePoint now);
  bool break_lock(const std::string& name, TimePoint now);
  void detach(const Inbox& inbox);

  // --- For the fixture ---
  [[nodiscard]] std::size_t residue(const std::string& name, TimePoint now);
  void cut(bool is_cut);
  // Whether what this client sends gets lost.
  [[nodiscard]] bool unreachable(const std::string& holder) const;

 private:
  struct Waiter {
    OwnerId owner;
    std::string holder;
    std::chrono::nanoseconds lease;
    Inbox* inbox;
  };
  struct Lock {
    bool held = false;
    OwnerId owner;
    std::string holder;
    TimePoint lease_ends;
    FencingToken token;
    std::deque<Waiter> queue;
  };

  Lock& open(const std::string& name, TimePoint now);
  void grant(Lock& lock, const OwnerId& owner, const std::string& holder, std::chrono::nanoseconds lease,
             TimePoint now);
  void hand_over(Lock& lock, TimePoint now);

  const Mutation mutation_;
  mutable std::mutex mutex_;
  std::map<std::string, Lock> locks_;
  bool cut_ = false;
};

}  // namespace dlock::conformance
