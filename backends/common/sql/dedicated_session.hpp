// A session of the server for one lock: it asks for the lock, has it, and gives it back, again and again, for one
// acquire after the other. Nothing else is under way on it, so it may wait in the server.
//
//   state   | the session has   | ends with
//   --------+-------------------+-------------------------------------------------------------------------------
//   free    | nothing           | ask(); the end of its connection, after some seconds
//   asking  | perhaps the lock  | the answer: granted and held, or parked where it waited; busy; failed
//   busy    | perhaps the lock  | ask() of the same request; clean()
//   parked  | the lock          | hold(), clean()
//   held    | the lock          | free(); loss of the session
//   freeing | perhaps the lock  | free
//   over    | no connection     | from all of them: the connection broke, or is of no use
#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include <dlock/spi/lifetime.hpp>
#include <dlock/spi/try_backend.hpp>

#include "backends/common/connection_news.hpp"
#include "backends/common/session_holds.hpp"
#include "backends/common/sql/session.hpp"
#include "backends/common/sql/session_dialect.hpp"

namespace dlock::sql {

// In tasks only.
class DedicatedSession final : private Session::User, private common::SessionHolds<LockRequest, Watch> {
 public:
  // The user of all sessions. No function is called inside a call to the session, except inside close().
  class User {
   public:
    User() = default;
    User(const User&) = delete;
    User& operator=(const User&) = delete;
    virtual void session_free(DedicatedSession& session) = 0;
    // The user destroys the session, though not inside this call.
    virtual void session_over(DedicatedSession& session) = 0;

   protected:
    ~User() = default;
  };
  // remedy: of a failure.
  using AnswerHandler = std::function<void(const TryOutcome& outcome, Remedy remedy)>;
  using ReleaseHandler = Backend::ReleaseHandler;

  // All outlive it. observer: may be nullptr.
  DedicatedSession(BackendHost& host, const Dialling& dialling, const SessionDialect& dialect,
                   std::chrono::nanoseconds lease, common::ConnectionObserver* observer, User& user);
  ~DedicatedSession();

  // Connects first if there is no connection yet. The handler is called once, never inside the call, unless the session
  // is closed. A lock that was waited for is parked until an owner takes it.
  void ask(const LockRequest& request, SessionDialect::Patience patience, AnswerHandler done);
  // Gives this owner the lock that the session has.
  [[nodiscard]] Grant hold(const OwnerId& owner);
  [[nodiscard]] bool holds() const noexcept { return state_ == State::held; }
  // False: it has no lock of that owner. Answers when the server has, or the session is over.
  [[nodiscard]] bool free(const OwnerId& owner, ReleaseHandler done);
  // No acquire wants the lock: makes the session free.
  void clean();
  // At once, whatever is under way: only the end of its connection ends a wait in the server.
  void close();

  [[nodiscard]] bool is_ready() const noexcept { return session_.ready(); }

 private:
  enum class State { free, asking, busy, parked, held, freeing, over };
  using Answered = void (DedicatedSession::*)(const Outcome& outcome, const Results& results);

  void send();
  void request(std::vector<Command> commands, SessionDialect::Patience waits, Answered done);
  void answered(const Outcome& outcome, const Results& results);
  void prepared(const Outcome& outcome, const Results& results);
  void confirmed(const Outcome& outcome, const Results& results);
  void cleaned(const Outcome& outcome, const Results& results);
  void problem(const Outcome& outcome, bool waited);
  void grant(TimePoint sent);
  void answer(const TryOutcome& outcome, Remedy remedy = Remedy::final);
  void give_back(Command command);
  void lose(const Failure& why, Remedy remedy);
  void fail(const Failure& why, Remedy remedy);
  void end();

  void look(const OwnerId& /*owner*/, Hold& /*hold*/) override {}
  void remove(const OwnerId& owner, LockRequest request) override;

  void session_ready() override;
  void session_answered() override {
    if (observer_ != nullptr) observer_->connected();
  }
  void session_down(const Failure& why, bool was_ready) override;
  void session_alive(TimePoint sent) override;
  void session_ending(const Failure& why) override { lose(why, Remedy::reconnect); }

  const Dialling& dialling_;
  const SessionDialect& dialect_;
  const std::chrono::nanoseconds lease_;
  common::ConnectionObserver* const observer_;
  User& user_;
  State state_ = State::free;
  LockRequest request_;
  SessionDialect::Patience patience_;
  AnswerHandler done_;
  ReleaseHandler released_;
  bool used_ = false;      // the session may have the lock of the request, or a failed transaction
  bool is_unfit_ = false;  // for another acquire
  int insertions_ = 0;     // of the row that is to be locked
  FencingToken token_;
  TimePoint sent_;
  Timer free_timer_;
  Lifetime lifetime_;
  Session session_;  // destroyed first: it calls nothing any more
};

}  // namespace dlock::sql
