// strategy=advisory: who waits for a lock, in the server as far as there are connections, and the others in a queue for
// the next connection. Those try now and then all the same: what they wait for may have nothing to do with what the
// others wait for, and even be what lets those go on.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include <dlock/backend.hpp>

#include "backends/postgres/lock_key.hpp"
#include "backends/postgres/member_lock.hpp"
#include "backends/postgres/pool.hpp"

namespace dlock::postgres {

// In tasks only.
class WaitingRoom final {
 public:
  class Guest : public MemberLock::Waiter {
   public:
    [[nodiscard]] virtual const LockRequest& request() const noexcept = 0;
    [[nodiscard]] virtual const LockKey& key() const noexcept = 0;
    // It has a connection now, and waits there; it is in the queue no longer.
    virtual void seated(MemberLock& lock) = 0;
    // While it is in the queue: the lock may be free.
    virtual void worth_a_try() = 0;

   protected:
    ~Guest() = default;
  };

  // when_quiet: called when quiet() has become true.
  WaitingRoom(BackendHost& host, const Options& options, const Dialling& dialling, const AdvisorySql& sql,
              WaitSlices slices, std::function<void()> when_quiet);
  ~WaitingRoom();

  // True: seated() was called. False: it is in the queue; no_seat() says why.
  [[nodiscard]] bool admit(Guest& guest);
  [[nodiscard]] Failure no_seat() const { return pool_.exhausted(); }
  // Out of the queue. Whoever is not in it is ignored.
  void leave(Guest& guest);

  // False: that lock is not, or no longer, here.
  [[nodiscard]] bool release(const OwnerId& owner, Backend::ReleaseHandler done);
  [[nodiscard]] bool has_queue() const noexcept { return !queue_.empty(); }
  // This client has just let go of it.
  void freed(const LockKey& key);

  [[nodiscard]] bool quiet() const noexcept { return locks_.empty() && over_.empty(); }

 private:
  [[nodiscard]] bool seat(Guest& guest);
  void set_aside(MemberLock& lock);
  void clear_away();
  void poll_later();
  void poll();

  Executor& executor_;
  const std::function<void()> when_quiet_;
  Pool pool_;
  MemberLock::Common common_;
  std::deque<Guest*> queue_;
  std::unordered_map<const MemberLock*, std::unique_ptr<MemberLock>> locks_;
  std::unordered_map<OwnerId, MemberLock*> by_owner_;  // of those that may be held
  std::vector<std::unique_ptr<MemberLock>> over_;
  Timer poll_timer_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace dlock::postgres
