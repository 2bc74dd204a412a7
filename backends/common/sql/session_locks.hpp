// strategy=advisory and strategy=for-update: locks that live in sessions of the server, and are lost with them.
//
//                | tries                                    | waits               | a lock lives
//   -------------+------------------------------------------+---------------------+-----------------------------------
//   advisory     | together on one session (AdvisoryTries)  | a session for each  | where it was tried or waited for
//   for-update   | a session for each                       | the same            | in that session
//
// The sessions that a lock has for itself are at most max_connections, those that are kept for the next try or wait
// among them.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <dlock/spi/backoff.hpp>
#include <dlock/spi/lifetime.hpp>
#include <dlock/spi/try_backend.hpp>

#include "backends/common/sql/dedicated_session.hpp"
#include "backends/common/sql/session_dialect.hpp"
#include "backends/common/sql/waiter_queues.hpp"
#include "backends/postgres/services.hpp"
#include "backends/postgres/session_locks/advisory_tries.hpp"
#include "backends/postgres/sql/lock_key.hpp"

namespace dlock::postgres {

class SessionLocks final : public TryBackend, private DedicatedSession::User, private WaiterQueues::Sessions {
 public:
  explicit SessionLocks(const Services& services);
  ~SessionLocks() override;

  [[nodiscard]] Capabilities capabilities() const noexcept override;

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

  [[nodiscard]] LockKey key_of(LockKind kind, const std::string& name, Mode mode = Mode::exclusive) const;
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
  const AdvisorySql advisory_sql_;
  const std::unique_ptr<SessionDialect> dialect_;
  common::ConnectionNews news_;
  common::ConnectionNews::Source observer_;  // of the sessions for tries
  std::optional<AdvisoryTries> tries_;

  std::unordered_map<const DedicatedSession*, std::unique_ptr<DedicatedSession>> sessions_;
  std::vector<DedicatedSession*> free_;  // the one that was used last is the last
  std::vector<std::unique_ptr<DedicatedSession>> over_;

  std::unordered_map<OwnerId, AttemptPtr> attempts_;  // by owner, until they are answered
  std::deque<AttemptPtr> want_session_;               // of those; no wait begins before they are served
  bool assigning_ = false;                            // a task will
  WaiterQueues waiters_;
  std::function<void()> closed_;
  Lifetime lifetime_;
};

}  // namespace dlock::postgres
