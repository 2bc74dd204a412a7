// strategy=advisory: the session on which locks are tried for, and where those stay that were free.
// Nothing that is sent on it waits for others for longer than a small part of the lease, so its locks can always be
// given back, and heartbeats are in time.
//
// What is asked while a query is under way goes out together, when that is answered. Unlocks go before tries: only what
// was sent behind the unlock of a lock may ask for it again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include <dlock/spi/backend.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/common/connection_news.hpp"
#include "backends/common/session_holds.hpp"
#include "backends/postgres/session_locks/try_answer.hpp"
#include "backends/postgres/sessions/session.hpp"
#include "backends/postgres/sql/lock_key.hpp"
#include "backends/postgres/sql/sqlstate.hpp"

namespace dlock::postgres {

// In tasks only.
class AdvisoryTries final : private Session::User, private common::SessionHolds<LockKey, Watch> {
 public:
  using Handler = std::function<void(const TryAnswer&)>;
  using Id = std::uint64_t;  // never 0
  using ReleaseHandler = Backend::ReleaseHandler;

  // All outlive it. most_locks: that it may hold. when_quiet: called when quiet() may have become true.
  AdvisoryTries(BackendHost& host, const Options& options, const Dialling& dialling, const AdvisorySql& sql,
                std::size_t most_locks, std::function<void()> when_quiet);
  ~AdvisoryTries();

  // The handler is called at most once, never inside the call. Where it fails, nothing is left held.
  [[nodiscard]] Id ask(const LockRequest& request, const LockKey& key, Handler done);
  // The answer is not wanted any more: what is granted later is given back. False: it was not sent and never will be.
  bool withdraw(Id id);
  // Something was not answered in time. Where there is no lock to lose, another connection may do better.
  void overdue();
  // A question that is about no lock, and waits for none.
  void ask(Query query);

  // False: that lock is not, or no longer, here. The unlock goes on until the lock is free or the session gone.
  [[nodiscard]] bool release(const OwnerId& owner, ReleaseHandler done);
  [[nodiscard]] bool holds_any() const noexcept { return !empty(); }
  // Nothing is under way.
  [[nodiscard]] bool quiet() const noexcept { return flights_.empty() && unlocks_.empty() && pending_.empty(); }

 private:
  using KeySpace = AdvisoryKey::KeySpace;
  using FlightId = std::uint64_t;

  struct Try {
    LockRequest request;
    LockKey key;
    Handler done;
    bool alone = false;  // it may have been its fault that a query of several was refused
  };
  // Tries for one key: one is sent, and a lock that it finds busy is busy for all that had been asked by then.
  struct Group {
    LockKey key;
    std::string row;  // token_row()
    std::vector<Id> tries = {};
    bool alone = false;
    bool joins = false;  // those who share it in this session already; counted in held_ meanwhile
  };
  struct Unlock {
    LockKey key;
    ReleaseHandler done = nullptr;  // empty: no caller waits
  };
  struct Flight {  // a query under way, of one kind
    std::vector<Group> groups = {};
    std::vector<Unlock> unlocks = {};
    Outcome outcome = {};  // of the tries, until the proof is there
    Results results = {};
  };

  // Locks that are held, or may be by what is under way, or are not given back yet.
  [[nodiscard]] std::size_t taken() const noexcept { return holds_.size() + tried_ + unlocks_.size() + unlocked_; }
  [[nodiscard]] bool excludes(const LockKey& key) const;
  void pump();
  [[nodiscard]] std::vector<Group> next_groups();
  void send_tries(std::vector<Group> groups);
  [[nodiscard]] Command command_for(const std::vector<Group>& groups) const;
  void send_flight(Flight flight, Command command);
  void prove(FlightId id, const Outcome& outcome, const Results& results);
  void tries_answered(FlightId id, const Outcome& outcome, const Results& results);
  void take_rows(const Flight& flight, TimePoint sent, const Results& results);
  void take_row(const Group& group, const Rows& rows, std::size_t row, std::size_t column, TimePoint sent);
  void granted(Id id, const Try& wanted, FencingToken token, TimePoint sent);
  void refused(const Flight& flight, const Outcome& outcome);
  void ask_again(const std::vector<Id>& tries, bool alone);
  void give_answers(const std::vector<Id>& tries, const TryAnswer& answer);
  void fail_pending(Remedy remedy, const Failure& why);
  void deliver();
  void settle_soon();
  void settle();

  void unlock_later(Unlock unlock);
  void leave(const LockKey& key, std::size_t readers);
  void send_unlocks();
  void unlocks_answered(FlightId id, const Outcome& outcome, const Results& results);
  void give_up(const Failure& why);

  void look(const OwnerId& /*owner*/, Hold& /*hold*/) override {}
  void remove(const OwnerId& owner, LockKey key) override;

  void session_ready() override;
  void session_answered() override { observer_.connected(); }
  void session_down(const Failure& why, bool was_ready) override;
  void session_alive(TimePoint sent) override;
  void session_ending(const Failure& why) override;

  const Options& options_;
  const AdvisorySql& sql_;
  const std::chrono::nanoseconds response_timeout_;
  const std::size_t most_locks_;
  const std::function<void()> when_quiet_;

  std::unordered_map<Id, Try> tries_;  // that have waiting callers
  std::set<Id> pending_;               // of those, the ones that are not sent, in the order in which they were asked
  std::deque<std::pair<Id, TryAnswer>> answers_;
  std::vector<Unlock> unlocks_;         // not sent
  std::map<FlightId, Flight> flights_;  // in the order in which they are answered
  std::size_t tried_ = 0;               // the locks that flights try for
  std::size_t unlocked_ = 0;            // the locks that they give back
  Id last_try_ = 0;
  FlightId last_flight_ = 0;

  // What the session has, without what is to be unlocked, and how many share it: the session has it once.
  std::map<LockKey, std::size_t> held_;
  std::optional<Failure> refusal_;  // why no lock can live here
  bool proven_ = false;             // a lock that was granted in this session is one
  common::ConnectionNews news_;
  common::ConnectionNews::Source observer_;
  bool warned_ = false;
  bool warned_of_proof_ = false;
  bool settling_ = false;  // a task will
  bool ending_ = false;    // the session is
  Lifetime lifetime_;
  Session session_;  // goes first: nothing is called back any more
};

}  // namespace dlock::postgres
