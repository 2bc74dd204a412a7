// One acquire of strategy=for-update, from the search for a connection to the grant or to giving up.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <dlock/spi/backend.hpp>
#include <dlock/spi/backoff.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/postgres/session_locks/for_update_transactions.hpp"
#include "backends/postgres/session_locks/try_patience.hpp"
#include "backends/postgres/session_locks/turns.hpp"
#include "backends/postgres/sql/statements.hpp"

namespace dlock::postgres {

class ForUpdateLocks;

//   stage    | its connection
//   ---------+-----------------------------------------------------------------------------------
//   seeking  | none: all are taken, or the schema is being set up
//   asking   | taken, perhaps still being made; one query is under way on it
//   outside  | none: another client has the lock, and others of this client wait for it in the server, or for a turn to
//   pausing  | none, until the timer runs
//   over     | none: handed on with the lock, or ended
//
// The first query tries: NOWAIT, one round trip. Once that has found another holder, and if the request waits, the
// others stand in the server's queue, for a while each: a query that is blocked there keeps rows from being vacuumed.
// Turns says who may do that; outside it the request tries now and then.
class RowContention final : public Contention,
                            private Session::User,
                            private Transactions::Applicant,
                            private Turns::Waiter {
 public:
  RowContention(ForUpdateLocks& locks, const LockRequest& request, GrantSink& sink);
  ~RowContention() override;

  void start() { seek(); }

 private:
  enum class Stage { seeking, asking, outside, pausing, over };
  using Answer = void (RowContention::*)(const Outcome& outcome, const Results& results);

  void seek();
  void apply_for_connection();
  void connection_free() override;
  [[nodiscard]] bool patient() const noexcept override { return request_.wait; }
  [[nodiscard]] bool serves(const ServerInfo& server);

  void ask();
  void insert_row();
  void inserted(const Outcome& outcome, const Results& results);
  void answered(const Outcome& outcome, const Results& results);
  void confirm();
  void confirmed(const Outcome& outcome, const Results& results);
  void grant(TimePoint sent);

  void busy(const Outcome& outcome);
  void slice_over(const Outcome& outcome);
  void go_outside();
  void turn_came() override;
  void worth_a_try() override;
  [[nodiscard]] bool has_connection() const noexcept override { return member_ && query_ != 0 && blocked_; }
  void give_way() override;
  void problem(const Outcome& outcome);
  void set_up(const Failure& why);
  enum class Tell { yes, no };
  void again_later(const Failure& why, Tell tell);
  void fail(Failure why);  // by value: it may be the connection's, which goes

  void send(std::vector<Command> commands, bool blocks, Answer answer);
  // What begins with a transaction that is open ends that one first.
  [[nodiscard]] std::vector<Command> anew(std::vector<Command> commands);
  [[nodiscard]] Command set_patience(std::chrono::nanoseconds patience) const;
  void let_go(bool usable);
  void withdraw();
  void leave(Stage stage);

  void session_ready() override;
  void session_answered() override;
  void session_down(const Failure& /*why*/, bool /*was_ready*/) override {}  // the query has been answered before

  ForUpdateLocks& locks_;
  const LockRequest request_;
  GrantSink& sink_;
  TryPatience patience_;
  Stage stage_ = Stage::seeking;
  Transactions::Member member_;
  Session::RequestId query_ = 0;  // under way
  bool blocked_ = false;          // and the server may keep it waiting
  bool open_ = false;             // there is a transaction, or what an error has left of it
  bool contended_ = false;        // another client had the lock
  bool inside_ = false;           // may wait in the server
  bool set_up_ = false;           // the schema is no longer what is missing
  int insertions_ = 0;            // of the row, with no holder there
  FencingToken token_;
  std::uint64_t round_ = 0;  // answers of an earlier one are of no interest
  std::chrono::nanoseconds slice_{};
  Backoff backoff_;
  Timer timer_;
  Lifetime lifetime_;
};

}  // namespace dlock::postgres
