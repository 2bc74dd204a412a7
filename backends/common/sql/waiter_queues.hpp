// The waiters of this client, by lock. Of each lock the first one waits in the server, on a session of its own, and the
// others behind it in the client. So order is among clients, then within each.
//
// A wait occupies a session that others may need more, such as a holder that acquires a second lock before it releases
// the first. If there are more locks than sessions, the locks take turns, and the first waiter of a lock without a
// session tries every second or two.
//
// In PostgreSQL a statement that waits keeps a snapshot, and CREATE INDEX CONCURRENTLY and its like wait for the end of
// all older ones. If the lock's holder runs them, each would wait for the other until the slice ends. So a client with
// waits in the server queries now and then whether a transaction waits in this way, and if so, its waits begin anew.
#pragma once

#include <chrono>
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

#include <dlock/spi/backend.hpp>
#include <dlock/spi/backoff.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/common/sql/connection.hpp"
#include "backends/common/sql/dedicated_session.hpp"

namespace dlock::sql {

// In tasks only.
class WaiterQueues final {
 public:
  class Sessions {
   public:
    Sessions() = default;
    Sessions(const Sessions&) = delete;
    Sessions& operator=(const Sessions&) = delete;
    // How many may wait just now.
    [[nodiscard]] virtual std::size_t most_waits() const = 0;
    // nullptr: all of them are taken.
    [[nodiscard]] virtual DedicatedSession* session_for_wait() = 0;
    // Sends a query where nothing delays it. Its handler is called once, never inside the call.
    virtual void ask(Query query) = 0;
    // There may be a session for a lock that has none: assign_sessions() is to be called, as a task.
    virtual void assign_sessions_soon() = 0;

   protected:
    ~Sessions() = default;
  };

  WaiterQueues(Executor& executor, Sessions& sessions, std::optional<Statement> question_about_snapshots);

  // lock: one text for each lock. changed: called when a try of the request is worth it.
  [[nodiscard]] std::unique_ptr<Watch> watch(const std::string& lock, const LockRequest& request,
                                             std::function<void()> changed);
  // The session that got the lock in the server for this request. nullptr: none did.
  [[nodiscard]] DedicatedSession* take(const std::string& lock, const LockRequest& request);
  // Why this request's wait in the server failed; answered once.
  [[nodiscard]] std::optional<Failure> take_failure(const std::string& lock, const LockRequest& request);
  // The session is over, and with it the lock that it may have got.
  void lost(const DedicatedSession& session);
  // This waiter was granted the lock, and waits no longer.
  void leave(const std::string& lock, const OwnerId& waiter);

  // This client is in the server's queue for the lock, so that its other waiters need not try.
  [[nodiscard]] bool in_server(const std::string& lock) const;
  // Waiters of the lock have to try now and then.
  [[nodiscard]] bool has_no_place(const std::string& lock) const;
  // How many wait in this client, and not in the server.
  [[nodiscard]] std::size_t in_client(const std::string& lock) const;
  [[nodiscard]] bool empty() const noexcept { return queues_.empty(); }

  // This client released the lock, or shares it: a waiter may get it.
  void freed(const std::string& lock, bool shared);
  // Locks without a session get those that there are, each in its turn.
  void assign_sessions();
  // A try finds no session: the wait that has lasted longest is given up. False: there is none.
  bool make_room();

 private:
  class QueuedWaiter;
  struct Waiter {
    LockRequest request;
    std::function<void()> changed;
  };
  struct Queue {
    std::map<std::uint64_t, Waiter> waiters = {};  // the one that has waited longest is the first
    DedicatedSession* session = nullptr;  // waits in the server, or has the lock; else it is in without_session_
    bool has_lock = false;
    TimePoint since = {};                           // the wait
    std::optional<Failure> failure = std::nullopt;  // for the first waiter
    TimePoint pauses_until = TimePoint::min();
    Backoff backoff{std::chrono::seconds(1)};
  };
  using Queues = std::unordered_map<std::string, Queue>;
  enum class Turn { next, last };

  void remove(const std::string& lock, std::uint64_t id);
  void first_has_gone(const std::string& lock, Queue& queue, const LockRequest& first);
  [[nodiscard]] Queue* queue_of_first(const std::string& lock, const OwnerId& waiter);
  DedicatedSession* leave_session(const std::string& lock, Queue& queue, Turn turn);
  void wait(const std::string& lock, Queue& queue);
  void answered(const std::string& lock, const TryOutcome& outcome, Remedy remedy);
  void notify(const std::string& lock, bool readers = false);
  void check();
  [[nodiscard]] Queues::iterator oldest();
  void ask_about_snapshots_in(std::chrono::nanoseconds pause);
  void ask_about_snapshots();
  void snapshots_answered(const Outcome& outcome, const Results& results);
  void restart();

  Executor& executor_;
  Sessions& sessions_;
  Queues queues_;
  std::deque<std::string> without_session_;  // locks without a session, the next one first
  std::size_t waiting_ = 0;                  // in the server
  std::uint64_t last_id_ = 0;
  Timer timer_;

  const std::optional<Statement> question_;  // about snapshots
  std::set<std::string> seen_;               // transactions that waited for snapshots at the last answer
  bool asking_ = false;
  Timer snapshot_timer_;
  Lifetime lifetime_;
};

}  // namespace dlock::sql
