// strategy=advisory: a session on which locks are tried for, and where those stay that were free.
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
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include <dlock/spi/backend.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/common/connection_news.hpp"
#include "backends/postgres/session_locks/kept_locks.hpp"
#include "backends/postgres/sessions/session.hpp"
#include "backends/postgres/sql/lock_key.hpp"
#include "backends/postgres/sql/sqlstate.hpp"

namespace dlock::postgres {

// In tasks only.
class HolderSession final : private Session::User {
 public:
  // A request for a lock. All except try_delayed() are final. None is called inside a call to the session.
  class Asker {
   public:
    Asker() = default;
    Asker(const Asker&) = delete;
    Asker& operator=(const Asker&) = delete;
    virtual void try_granted(const Grant& grant) = 0;
    virtual void try_busy() = 0;
    // Nothing is left held, as far as this session goes. Remedy::reconnect: it does that itself.
    virtual void try_failed(Remedy remedy, const Failure& why) = 0;
    // No answer so far. It may still come.
    virtual void try_delayed(const Failure& why) = 0;

   protected:
    ~Asker() = default;
  };
  using TryId = std::uint64_t;  // never 0
  using ReleaseHandler = Backend::ReleaseHandler;
  // How many locks the client may hold in such sessions, and how many it holds or may have got by what is under way.
  struct Limit {
    std::size_t most_locks = 0;
    std::function<std::size_t()> taken = {};
  };

  // All outlive it. when_quiet: called when quiet() has become true.
  HolderSession(BackendHost& host, const Options& options, const Dialling& dialling, const AdvisorySql& sql,
                Limit limit, common::ConnectionNews& news, std::function<void()> when_quiet);
  ~HolderSession();

  // It is held here, and not to be shared: tries for it are useless.
  [[nodiscard]] bool excludes(const LockKey& key) const;
  [[nodiscard]] TryId ask(const LockRequest& request, const LockKey& key, Asker& asker);
  // A question that is about no lock, and waits for none. Answered as by Session::request(), within the response
  // timeout.
  void ask(Query query);
  [[nodiscard]] bool ready() const noexcept { return session_.ready(); }
  // The asker is not told any more. What it is granted later is given back.
  void withdraw(TryId id);

  // False: that lock is not, or no longer, here. Answers within the response timeout, perhaps inside the call; the
  // unlock goes on until the lock is free or the session gone.
  [[nodiscard]] bool release(const OwnerId& owner, ReleaseHandler done);

  [[nodiscard]] std::size_t held() const noexcept { return kept_.size(); }
  // And may have got, by what is under way, or has not given back.
  [[nodiscard]] std::size_t taken() const noexcept { return kept_.size() + tried_ + unlocks_.size() + unlocked_; }
  // Nothing is under way.
  [[nodiscard]] bool quiet() const noexcept { return flights_.empty() && unlocks_.empty() && pending_.empty(); }

 private:
  using KeySpace = AdvisoryKey::KeySpace;
  using FlightId = std::uint64_t;

  struct Try {
    LockRequest request;
    LockKey key;
    Asker* asker;
    bool alone = false;  // it may have been its fault that a query of several was refused
  };
  // Tries for one key: one is sent, and a lock that it finds busy is busy for all that had been asked by then.
  struct Group {
    LockKey key;
    std::string row;  // token_row()
    TryId leader = 0;
    std::vector<TryId> followers = {};
    bool alone = false;
    bool joins = false;  // those who share it in this session already; counted in held_ meanwhile

    [[nodiscard]] std::size_t size() const noexcept { return 1 + followers.size(); }
  };
  struct Unlock {
    LockKey key;
    ReleaseHandler done = nullptr;  // empty: no caller waits (any longer)
    TimePoint due = TimePoint::max();
  };
  struct Flight {  // a query under way, of one kind
    TimePoint since;
    std::vector<Group> groups = {};
    std::vector<Unlock> unlocks = {};
    Outcome outcome = {};  // of the tries, until the proof is there
    Results results = {};
  };
  struct Answer {
    enum class Kind { granted, busy, failed } kind;
    TryId id = 0;
    Grant grant = {};
    Remedy remedy = Remedy::final;
    Failure why = {};
  };

  void pump();
  [[nodiscard]] std::vector<Group> next_groups();
  void send_tries(std::vector<Group> groups);
  void send_shared(Group group);
  void send_flight(Flight flight, Command command);
  void send_tries(const AdvisoryStatements& statements, std::vector<Group> groups);
  void prove(FlightId id, const Outcome& outcome, const Results& results);
  void tries_answered(FlightId id, const Outcome& outcome, const Results& results);
  void take_rows(const Flight& flight, TimePoint sent, const Results& results);
  void take_row(const Group& group, const Rows& rows, std::size_t row, std::size_t column, TimePoint sent);
  void take_shared(const Group& group, FencingToken last, TimePoint sent);
  void granted(const Try& wanted, TryId id, FencingToken token, TimePoint sent);
  void refused(const Flight& flight, const Outcome& outcome);
  void ask_again(const Group& group, bool alone);
  void give_answers(const Group& group, const Answer& answer);
  void fail_pending(Remedy remedy, const Failure& why);
  void deliver();
  void deliver_soon();

  void unlock_later(Unlock unlock);
  void leave(const LockKey& key, std::size_t readers);
  void send_unlocks();
  void send_unlocks(const AdvisoryStatements& statements, std::vector<Unlock> unlocks);
  [[nodiscard]] static std::set<std::string> freed_by(const Flight& flight, const Outcome& outcome,
                                                      const Results& results);
  void unlocks_answered(FlightId id, const Outcome& outcome, const Results& results);
  [[nodiscard]] std::vector<ReleaseHandler> take_overdue(TimePoint now);

  void watch();
  void look_at_clock_at(TimePoint at);
  void look_at_clock();
  void look_again();
  void tell_delayed(const Failure& why);
  void settle();
  void give_up(const Failure& why);

  void session_ready() override;
  void session_answered() override { news_.connected(); }
  void session_down(const Failure& why, bool was_ready) override;
  void session_alive(TimePoint sent) override;
  void session_ending(const Failure& why) override { kept_.lose_all(why); }

  BackendHost& host_;
  Executor& executor_;
  const Options& options_;
  const AdvisorySql& sql_;
  const std::chrono::nanoseconds response_timeout_;
  const Limit limit_;
  const std::function<void()> when_quiet_;

  std::unordered_map<TryId, Try> tries_;  // that have waiting callers
  std::set<TryId> pending_;               // of those, the ones that are not sent, in the order in which they were asked
  std::deque<Answer> answers_;
  std::vector<Unlock> unlocks_;         // not sent
  std::map<FlightId, Flight> flights_;  // in the order in which they are answered
  std::size_t try_flights_ = 0;
  std::size_t tried_ = 0;  // the locks that they try for
  std::size_t unlock_flights_ = 0;
  std::size_t unlocked_ = 0;  // the locks that they give back
  TryId last_try_ = 0;
  FlightId last_flight_ = 0;

  KeptLocks kept_;
  // What the session has, without what is to be unlocked, and how many share it: the session has it once.
  std::map<LockKey, std::size_t> held_;
  std::optional<Failure> refusal_;  // why no lock can live here
  bool proven_ = false;             // a lock that was granted in this session is one
  common::ConnectionNews::Source news_;
  bool warned_ = false;
  bool warned_of_proof_ = false;
  bool delivering_ = false;
  Timer timer_;
  Lifetime lifetime_;
  Session session_;  // goes first: nothing is called back any more
};

}  // namespace dlock::postgres
