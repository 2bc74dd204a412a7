// Locks that live in sessions of the server, and are lost with them. Each wait has a session of its own, in which the
// lock then lives. Tries have a session each, too, or share one (SharedTries).
//
// There are at most max_connections sessions for one lock each, including those that are kept for the next try or wait.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <dlock/spi/backoff.hpp>
#include <dlock/spi/lifetime.hpp>
#include <dlock/spi/try_backend.hpp>

#include "backends/common/connection_news.hpp"
#include "backends/common/sql/dedicated_session.hpp"
#include "backends/common/sql/services.hpp"
#include "backends/common/sql/session_dialect.hpp"
#include "backends/common/sql/shared_tries.hpp"
#include "backends/common/sql/waiter_queues.hpp"

namespace dlock::sql {

class SessionLocks final : public TryBackend, private DedicatedSession::User, private WaiterQueues::Sessions {
 public:
  // Called once: when_quiet of the tries, when SharedTries::quiet() may have become true.
  using MakeTries = std::function<std::unique_ptr<SharedTries>(common::ConnectionObserver& observer,
                                                               std::function<void()> when_quiet)>;

  // capabilities: max_lease is how long a session lasts without its client. make_tries: empty if tries have sessions of
  // their own.
  SessionLocks(const Services& services, const Capabilities& capabilities, std::size_t max_connections,
               std::unique_ptr<SessionDialect> dialect, const MakeTries& make_tries = nullptr);
  ~SessionLocks() override;

  [[nodiscard]] Capabilities capabilities() const noexcept override { return capabilities_; }

  [[nodiscard]] std::unique_ptr<Contention> contend(const LockRequest& request, GrantSink& sink) override;
  void try_acquire(const LockRequest& request, TryHandler done) override;
  [[nodiscard]] std::unique_ptr<Watch> wait_for(const LockRequest& request, std::function<void()> changed) override;
  void abandon(const LockRequest& request) override;
  void release(const Grant& grant, ReleaseHandler done) override;
  void close(std::function<void()> done) override;

  // How many acquires of that name wait in this client, and not in the server.
  [[nodiscard]] std::size_t waiting_here(LockKind kind, const std::string& name) const;

 private:
  struct Attempt;
  class Acquire;
  using AttemptPtr = std::shared_ptr<Attempt>;

  void carry_out(const AttemptPtr& attempt);
  void try_on_session(const AttemptPtr& attempt);
  void ask(DedicatedSession& session, const AttemptPtr& attempt);
  void answered(const AttemptPtr& attempt, TryOutcome outcome, Remedy remedy);
  void retry(const AttemptPtr& attempt, const Failure& why);
  void set_up(const AttemptPtr& attempt, const Failure& why);
  void at(TimePoint time, const AttemptPtr& attempt, void (SessionLocks::*then)(const AttemptPtr& attempt));
  void give_up(const AttemptPtr& attempt);
  void withdraw(const OwnerId& owner);
  void finish(const AttemptPtr& attempt, TryOutcome outcome);
  void fail(const AttemptPtr& attempt, Failure why);

  [[nodiscard]] std::size_t held() const;
  [[nodiscard]] DedicatedSession* take_session(bool patient);
  [[nodiscard]] Failure no_answer(errc code) const;
  [[nodiscard]] Failure exhausted() const;
  void assign_sessions();
  void report_if_quiet();

  [[nodiscard]] std::size_t most_waits() const override;
  [[nodiscard]] DedicatedSession* session_for_wait() override;
  void ask(Query query) override;
  void assign_sessions_soon() override;

  void session_free(DedicatedSession& session) override;
  void session_over(DedicatedSession& session) override;

  const Services services_;
  const Capabilities capabilities_;
  const std::size_t max_connections_;
  const std::unique_ptr<SessionDialect> dialect_;
  common::ConnectionNews news_;
  common::ConnectionNews::Source observer_;  // of the sessions for tries
  const std::unique_ptr<SharedTries> tries_;

  std::unordered_map<const DedicatedSession*, std::unique_ptr<DedicatedSession>> sessions_;
  std::vector<DedicatedSession*> free_;  // the last one was used last
  std::vector<std::unique_ptr<DedicatedSession>> over_;

  std::unordered_map<OwnerId, AttemptPtr> attempts_;  // by owner, until they are answered
  std::deque<AttemptPtr> want_session_;               // no wait begins before they have sessions
  bool assigning_ = false;                            // a task that assigns sessions is posted
  WaiterQueues waiters_;
  std::function<void()> closed_;
  Lifetime lifetime_;
};

}  // namespace dlock::sql
