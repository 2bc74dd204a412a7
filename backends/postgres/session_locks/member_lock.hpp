// strategy=advisory: one connection of the pool at work for one acquire. It is kept waiting by the server until it is
// its turn, and then it is where the lock lives, which cannot move.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include <dlock/spi/backend.hpp>

#include "backends/postgres/session_locks/kept_locks.hpp"
#include "backends/postgres/sessions/pool.hpp"
#include "backends/postgres/sql/lock_key.hpp"
#include "backends/postgres/sql/sqlstate.hpp"

namespace dlock::postgres {

//   connecting --> waiting --> confirming --> held --> unlocking --> over
//                     |   \__________________/            ^
//                     +-----------------------------------+       and from each of them, when the connection breaks:
//                     over
//
// In tasks only.
class MemberLock final : private Session::User {
 public:
  // The acquire. All are final.
  class Waiter {
   public:
    Waiter() = default;
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;
    virtual void member_granted(const Grant& grant) = 0;
    // Its slice has ended, and others need the connection more.
    virtual void member_yielded() = 0;
    // Nothing is left held. Remedy::reconnect: the connection broke.
    virtual void member_failed(Remedy remedy, const Failure& why) = 0;

   protected:
    ~Waiter() = default;
  };
  // What they all have in common; outlives them.
  struct Common {
    BackendHost& host;
    const Options& options;
    const AdvisorySql& sql;
    std::chrono::nanoseconds response_timeout{};
    // How long it may wait in the server, and whether it may go on after that.
    std::function<std::chrono::nanoseconds(Waiter&)> slice;
    std::function<bool(Waiter&)> stays;
    // Nothing more comes of it: to be destroyed, though not inside this call.
    std::function<void(MemberLock&)> over;
  };

  MemberLock(const Common& common, LockRequest request, LockKey key, Waiter& waiter);
  ~MemberLock();

  // For Pool::take().
  [[nodiscard]] Session::User& user() noexcept { return *this; }
  void begin(std::unique_ptr<Pool::Member> member);

  // The acquire was given up. Where the server keeps it waiting, only the end of the connection can tell it so.
  void abandon();
  // False: it is not, or no longer, held. Answers within the response timeout.
  [[nodiscard]] bool release(Backend::ReleaseHandler done);

  // The server keeps it waiting, so that nothing is lost but its place in the queue when it is abandoned.
  [[nodiscard]] bool is_kept_waiting() const noexcept { return state_ == State::waiting; }
  [[nodiscard]] const OwnerId& owner() const noexcept { return request_.owner; }
  [[nodiscard]] const LockKey& key() const noexcept { return key_; }
  [[nodiscard]] bool holds() const noexcept { return !kept_.empty(); }
  // Once it has ended: for others to use, if there is anything left of it.
  [[nodiscard]] std::unique_ptr<Pool::Member> take_member();

 private:
  enum class State { connecting, waiting, confirming, held, unlocking, over };

  [[nodiscard]] Session& session() noexcept { return member_->session(); }
  [[nodiscard]] Executor& executor() const noexcept { return common_.host.executor(); }
  void wait();
  void waited(const Outcome& outcome, const Results& results);
  void refused(const Outcome& outcome);
  void confirm();
  void granted(TimePoint sent);
  void unlock(Backend::ReleaseHandler done);
  void fail(Remedy remedy, const Failure& why);
  void end(bool reusable);

  void session_ready() override;
  void session_down(const Failure& why, bool was_ready) override;
  void session_alive(TimePoint sent) override;
  void session_ending(const Failure& why) override { kept_.lose_all(why); }

  const Common& common_;
  const LockRequest request_;
  const LockKey key_;
  Waiter* waiter_;  // nullptr: was told, or gave up
  State state_ = State::connecting;
  FencingToken token_;
  KeptLocks kept_;
  bool fit_ = true;  // for others to use afterwards
  bool reusable_ = false;
  std::unique_ptr<Pool::Member> member_;
};

}  // namespace dlock::postgres
