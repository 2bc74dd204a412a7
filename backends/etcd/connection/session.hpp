// The session of the client: one lease of etcd at a time, to which all keys of the client belong. The session keeps the
// lease alive, judges it by its own clock, and replaces it once it has ended.
//
// The answer to a keep-alive proves nothing: a deposed leader that does not know of the new one answers, too, although
// the others have let the lease expire. So a keep-alive counts, from when it was sent, only if a later read returns the
// same term of Raft and the session's own key. For such a read the leader asks the others, so it was the leader when it
// renewed the lease. A later leader starts all leases anew with their whole time.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <dlock/spi/backoff.hpp>
#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/etcd/connection/client.hpp"
#include "backends/etcd/wire/messages.hpp"

namespace dlock::etcd {

// In tasks only.
class Session final {
 public:
  // Never called inside a call to the session.
  class User {
   public:
    // There is a session, and a connection.
    virtual void session_ready() = 0;
    // The cluster keeps the session's keys at least until then.
    virtual void session_alive(TimePoint valid_until) = 0;
    // There is no connection, or no session can be made. The session retries, except after a final refusal.
    virtual void session_suspended(const Failure& why) = 0;
    // The session's keys are no longer reliable. The reason is errc::lost.
    virtual void session_lost(const Failure& why) = 0;

   protected:
    ~User() = default;
  };
  // The key of a session.
  using KeyOf = std::string (*)(const Options& options, std::int64_t lease);

  Session(Client& client, KeyOf key_of, User& user);

  // Begins a session, and replaces it when it ends. Before the first call, there is none, because queries need none.
  void want();
  // Events of the client; in_order: the client reconnects at once, so the user is not notified.
  void client_ready();
  void client_down(const Failure& why, bool in_order);

  // Whether requests that name the lease may be sent.
  [[nodiscard]] bool ready() const noexcept;
  // 0: there is no session. A session without a connection keeps its lease.
  [[nodiscard]] std::int64_t lease() const noexcept { return lease_; }
  // The cluster keeps its keys until then, whatever fails.
  [[nodiscard]] TimePoint valid_until() const noexcept { return valid_until_; }
  [[nodiscard]] std::chrono::nanoseconds ttl() const noexcept { return ttl_; }
  // The reason why it is not ready.
  [[nodiscard]] const Failure& problem() const noexcept { return problem_; }
  // A member reports that the lease does not exist. Takes effect in a later task.
  void expired(std::int64_t lease);

  // Ends the session for good and revokes the lease if the cluster can be reached. Then calls done.
  void close(std::function<void()> done);

 private:
  void begin();
  void granted(const Result<LeaseAnswer>& answer, TimePoint sent, std::int64_t lease);
  void key_created(const Result<TransactionAnswer>& answer, const LeaseAnswer& grant, TimePoint sent);
  void no_session(Failure why);

  void send_keep_alive();
  void keep_alive_at(TimePoint at);
  void kept_alive(const Result<LeaseAnswer>& answer);
  void confirmed(const Result<TransactionAnswer>& answer, const LeaseAnswer& kept);
  void keep_alive_failed(const Failure& why);
  [[nodiscard]] TimePoint keep_alive_by() const;
  void alive_until(TimePoint valid_until);
  void lose(const std::string& why);
  void revoke(std::int64_t lease);
  // Ignores the answers to requests in flight.
  void stop_requests();

  Executor& executor_;
  Client& client_;
  const KeyOf key_of_;
  User& user_;
  bool wanted_ = false;
  bool closing_ = false;
  bool refused_ = false;                             // finally, at the last attempt to begin
  std::optional<Lifetime> requests_{std::in_place};  // of the answers that still matter
  std::int64_t lease_ = 0;
  std::chrono::nanoseconds ttl_{};
  TimePoint valid_until_ = TimePoint::min();
  Failure problem_;
  TimePoint keep_alive_sent_;
  std::string last_error_;               // of keep-alives since the last confirmed one
  bool was_confirmed_ = false;           // a keep-alive of this lease
  std::vector<std::int64_t> to_revoke_;  // leases of earlier sessions
  Backoff backoff_{std::chrono::seconds(1)};
  Timer timer_;  // of the next keep-alive, or of the next attempt to begin
  Timer deadline_timer_;
  Lifetime lifetime_;
};

}  // namespace dlock::etcd
