// strategy=advisory: the session that tries for locks, and keeps those that it is granted. No statement on it waits for
// another client longer than a small part of the lease, so unlocks and heartbeats are always in time.
//
// A try that arrives while a batch is in flight is sent in the next one. Unlocks are sent before tries: a try of a lock
// that the session has is sent only behind its unlock.
//
//   a try     | the session has its lock | ends with
//   ----------+--------------------------+--------------------------------------------------------------------------
//   pending   | no                       | a batch; busy, where the session has the key; failed with the connection
//   in batch  | perhaps                  | granted, busy, failed; pending and alone, where one of its batch is at fault
//
//   a key     | the session has it       | ends with
//   ----------+--------------------------+--------------------------------------------------------------------------
//   locked_   | once, however many share | the last one that has it leaves
//   unlocks_  | perhaps                  | the unlock's answer; an unlock that is refused ends the session
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <dlock/spi/lifetime.hpp>
#include <dlock/spi/try_backend.hpp>

#include "backends/common/connection_news.hpp"
#include "backends/common/session_holds.hpp"
#include "backends/common/sql/services.hpp"
#include "backends/common/sql/session.hpp"
#include "backends/common/sql/shared_tries.hpp"
#include "backends/postgres/sql/lock_key.hpp"

namespace dlock::postgres {

// A client has no more, because the server's table of locks has a fixed size, and when it is full even logins fail.
inline constexpr std::size_t most_advisory_locks = 1000;

// In tasks only.
class AdvisoryTries final : public SharedTries, private Session::User, private common::SessionHolds<LockKey, Watch> {
 public:
  // All outlive it. when_quiet: called when quiet() may have become true.
  AdvisoryTries(const Services& services, const Options& options, common::ConnectionObserver& observer,
                std::function<void()> when_quiet);
  ~AdvisoryTries() override;

  [[nodiscard]] std::shared_ptr<Ask> ask(const LockRequest& request, AnswerHandler done) override;
  bool withdraw(Ask& asked) override;
  void ask(Query query) override;

  [[nodiscard]] bool release(const OwnerId& owner, ReleaseHandler done) override;
  [[nodiscard]] bool holds_any() const noexcept override { return !empty(); }
  [[nodiscard]] bool quiet() const noexcept override {
    return tried_ + unlocked_ == 0 && unlocks_.empty() && pending_.empty() && answers_.empty();
  }

 private:
  using KeySpace = AdvisoryKey::KeySpace;
  struct Try final : Ask {
    Try(LockRequest what, LockKey of_lock, AnswerHandler then, std::string of_token)
        : request(std::move(what)), key(std::move(of_lock)), done(std::move(then)), row(std::move(of_token)) {}

    const LockRequest request;
    const LockKey key;
    AnswerHandler done;     // empty: no answer is wanted, or no longer
    const std::string row;  // token_row()
    bool alone = false;     // it may have been its fault that a batch of several was refused
  };
  // The tries for one key. The first one is sent; if it finds the lock busy, it is busy for all of them.
  using Group = std::vector<std::shared_ptr<Try>>;
  using Batch = std::vector<Group>;  // one statement
  struct Unlock {
    LockKey key;
    ReleaseHandler done = nullptr;  // empty: no caller waits
  };
  struct Answer {
    std::shared_ptr<Try> asked;
    TryOutcome outcome;
    Remedy remedy;
  };

  // Locks that are held, or may be by what is under way, or are not given back yet.
  [[nodiscard]] std::size_t taken() const noexcept { return locked_.size() + tried_ + unlocks_.size() + unlocked_; }
  [[nodiscard]] bool excludes(const LockKey& key) const;
  void pump();
  void send_what_waits();
  [[nodiscard]] std::vector<Batch> next_batches();
  void request(Command command, postgres::Handler done);
  void prove();
  void send(Batch batch);
  [[nodiscard]] Command command_for(const Batch& batch) const;
  void answered(const Batch& batch, const Outcome& outcome, const Results& results);
  void take_rows(const Batch& batch, TimePoint sent, const Rows& rows);
  void granted(const Group& group, std::uint64_t token, TimePoint sent);
  void refused(const Batch& batch, const Outcome& outcome);
  void answer(const std::shared_ptr<Try>& asked, TryOutcome outcome, Remedy remedy = Remedy::final);
  void deliver_answers();
  void ask_again(const Group& group);
  void fail(const Group& group, const Failure& why, Remedy remedy);

  void leave(const LockKey& key, std::size_t readers, ReleaseHandler done = nullptr);
  void send_unlocks();
  void unlocked(const std::vector<Unlock>& unlocks, const Outcome& outcome, const Results& results);
  void give_up(Failure why);  // by value: it may be the refusal

  void look(const OwnerId& /*owner*/, Hold& /*hold*/) override {}
  void remove(const OwnerId& owner, LockKey key) override;

  void session_ready() override;
  void session_answered() override { observer_.connected(); }
  void session_down(const Failure& why, bool was_ready) override;
  void session_alive(TimePoint sent) override;
  void session_ending(const Failure& why) override;
  [[nodiscard]] bool session_holds() const override { return holds_any(); }

  const Options& options_;
  const Dialect& dialect_;
  const AdvisorySql sql_;
  common::ConnectionObserver& observer_;
  const std::chrono::nanoseconds response_timeout_;
  const std::size_t most_locks_;  // here: each session of a waiter has one at most
  const std::function<void()> when_quiet_;

  Group pending_;
  std::vector<Unlock> unlocks_;  // not sent
  std::size_t tried_ = 0;        // the locks that are tried for just now
  std::size_t unlocked_ = 0;     // those that are given back
  std::deque<Answer> answers_;   // not delivered
  // The keys that the session has and keeps, and how many share each.
  std::map<LockKey, std::size_t> locked_;

  std::optional<Failure> refusal_;  // why no lock can live here
  bool proving_ = false;            // this session was asked whether its locks exclude others
  bool ending_ = false;             // the session is, or has ended
  bool warned_ = false;
  bool warned_of_proof_ = false;
  Lifetime lifetime_;
  Session session_;  // destroyed first: it calls nothing any more
};

}  // namespace dlock::postgres
