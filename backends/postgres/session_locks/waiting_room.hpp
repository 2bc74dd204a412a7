// strategy=advisory: who waits for a lock, in the server or outside it, as Turns says, and the locks that are held
// where they were waited for.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <dlock/spi/backend.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/postgres/session_locks/member_lock.hpp"
#include "backends/postgres/session_locks/turns.hpp"
#include "backends/postgres/sessions/pool.hpp"
#include "backends/postgres/sql/lock_key.hpp"

namespace dlock::postgres {

// In tasks only.
class WaitingRoom final {
 public:
  class Waiter : public MemberLock::Waiter, public Turns::Waiter {
   public:
    [[nodiscard]] virtual const LockRequest& request() const noexcept = 0;
    [[nodiscard]] virtual const LockKey& key() const noexcept = 0;
    // It has a connection now, and waits there.
    virtual void admitted(MemberLock& lock) = 0;

   protected:
    ~Waiter() = default;
  };

  // when_quiet: called when quiet() has become true.
  WaitingRoom(BackendHost& host, const Options& options, const Dialling& dialling, const AdvisorySql& sql,
              WaitSlices slices, std::function<void()> when_quiet);
  ~WaitingRoom();

  // Inside: admitted() was called. No room: why_no_connection() says why.
  [[nodiscard]] Turns::Place admit(Waiter& waiter);
  // One whose turn has come.
  void give_connection(Waiter& waiter);
  [[nodiscard]] Failure why_no_connection() const;
  // It waits no longer. One that does not wait here is ignored.
  void leave(Waiter& waiter) { turns_.leave(waiter); }

  // False: that lock is not, or no longer, here.
  [[nodiscard]] bool release(const OwnerId& owner, Backend::ReleaseHandler done);
  [[nodiscard]] bool has_queue() const noexcept { return turns_.any_outside(); }
  // How many wait for it in the client.
  [[nodiscard]] std::size_t queueing(const LockKey& key) const { return turns_.outside(place_of(key)); }
  // This client has just let go of it.
  void freed(const LockKey& key) { turns_.freed(place_of(key)); }
  [[nodiscard]] bool holds_any() const;

  [[nodiscard]] Turns& turns() noexcept { return turns_; }

  [[nodiscard]] bool quiet() const noexcept { return locks_.empty() && over_.empty(); }

 private:
  [[nodiscard]] static std::string place_of(const LockKey& key);
  [[nodiscard]] bool makes_room() const;
  void set_aside(MemberLock& lock);
  void clear_away();

  Executor& executor_;
  FullServer* const full_;
  const std::function<void()> when_quiet_;
  Pool pool_;
  MemberLock::Common common_;
  std::unordered_map<const MemberLock*, std::unique_ptr<MemberLock>> locks_;
  std::unordered_map<OwnerId, MemberLock*> by_owner_;  // of those that may be held
  std::vector<std::unique_ptr<MemberLock>> over_;
  Turns turns_;
  Lifetime lifetime_;
};

}  // namespace dlock::postgres
