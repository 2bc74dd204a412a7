// strategy=advisory: one acquire. It tries on one of the client's holder sessions and, where it may wait, goes on
// waiting over a connection of the pool.
//
//   trying --> granted | busy | failed          a request that does not wait
//   trying --> (queueing for a connection <-->) waiting --> granted | failed
//
// Whatever breaks, it pauses and begins again by trying.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include <dlock/spi/backend.hpp>
#include <dlock/spi/backoff.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/postgres/session_locks/holders.hpp"
#include "backends/postgres/session_locks/try_patience.hpp"
#include "backends/postgres/session_locks/waiting_room.hpp"

namespace dlock::postgres {

// In tasks only.
class AdvisoryContention final : public Contention, private HolderSession::Asker, private WaitingRoom::Waiter {
 public:
  // Makes the schema where there is none: Schema::set_up().
  using SetUp = std::function<void(TimePoint deadline, std::function<void(std::optional<Failure> why_not)> done)>;

  // Outlives them.
  struct Common {
    Executor& executor;
    Holders& holders;
    WaitingRoom& room;
    SetUp set_up;
    std::chrono::nanoseconds response_timeout{};
  };

  AdvisoryContention(const Common& common, LockRequest request, LockKey key, GrantSink& sink);
  ~AdvisoryContention() override;

  void start() { ask(); }

 private:
  void ask();
  void busy();
  void granted(const Grant& grant);
  void failed(Remedy remedy, const Failure& why);
  void final_failure(const Failure& why);
  // After a pause. Where it may not wait: unless there is no time for that.
  void retry(const Failure& why);
  void trouble(const Failure& why);
  void set_up();
  void stop_trying();
  void leave_queue();
  void end();

  void try_granted(const Grant& grant) override;
  void try_busy() override;
  void try_failed(Remedy remedy, const Failure& why) override;
  void try_delayed(const Failure& why) override;

  [[nodiscard]] const LockRequest& request() const noexcept override { return request_; }
  [[nodiscard]] const LockKey& key() const noexcept override { return key_; }
  void admitted(MemberLock& lock) override;
  void turn_came() override;
  void worth_a_try() override;
  [[nodiscard]] bool has_connection() const noexcept override;
  void give_way() override;
  void member_granted(const Grant& grant) override;
  void member_yielded() override;
  void member_failed(Remedy remedy, const Failure& why) override;

  const Common& common_;
  const LockRequest request_;
  const LockKey key_;
  GrantSink& sink_;
  TryPatience patience_;
  HolderSession& holder_;
  HolderSession::TryId try_ = 0;  // 0: none is under way
  MemberLock* member_ = nullptr;
  bool queueing_ = false;  // for a connection
  bool setting_up_ = false;
  bool was_set_up_ = false;
  bool over_ = false;
  Timer timer_;  // of the pause
  Backoff backoff_{std::chrono::seconds(1)};
  Lifetime lifetime_;
};

}  // namespace dlock::postgres
