// A session of the client: a lease of etcd's, to which all of its keys belong. One at a time, kept alive, judged by our
// own clock, and replaced when it has ended.
//
// That a keep-alive was answered proves nothing: a leader that was deposed and does not know it answers, too, while the
// others have let the lease expire. So it counts, from when it was sent, only once a read that was sent after its
// answer came back with the same term of Raft and the session's own key. For such a read the leader asks the others, so
// the one that answered was the leader when it renewed the lease; and a later leader gives all leases their whole time
// again.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
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
  // None of them is called from inside a call to the session.
  class User {
   public:
    User() = default;
    User(const User&) = delete;
    User& operator=(const User&) = delete;
    // A session stands (again).
    virtual void session_ready() = 0;
    // The cluster answered: keys of the session are safe until then.
    virtual void session_alive(TimePoint valid_until) = 0;
    // Not connected just now, or no session can be made. Attempts go on by themselves, unless the reason is final.
    virtual void session_suspended(const Failure& why) = 0;
    // The session's keys can no longer be relied on. The reason is errc::lost.
    virtual void session_lost(const Failure& why) = 0;

   protected:
    ~User() = default;
  };

  Session(Client& client, User& user);
  ~Session();

  // It is needed. No session is begun before, because questions need none.
  void want();
  // The client's connection stands, or is gone.
  void client_ready();
  // in_order: that is no news, as it is made again at once.
  void client_down(const Failure& why, bool in_order);

  // Whether requests of it may be sent.
  [[nodiscard]] bool ready() const noexcept;
  // Only while one stands, if only suspended; else 0.
  [[nodiscard]] std::int64_t lease() const noexcept { return lease_; }
  // Until when its keys are safe, whatever fails.
  [[nodiscard]] TimePoint valid_until() const noexcept { return valid_until_; }
  [[nodiscard]] std::chrono::nanoseconds ttl() const noexcept { return ttl_; }
  // Why it is not ready.
  [[nodiscard]] const Failure& problem() const noexcept { return problem_; }
  // A member says that there is no such lease. Told later.
  void expired(std::int64_t lease);

  // For good: ends the lease, and with it all of its keys, where the cluster can be reached. Then calls done.
  void close(std::function<void()> done);

 private:
  void begin();
  void granted(const Result<std::string>& answer, TimePoint sent, std::int64_t lease);
  void marked(const Result<TransactionAnswer>& answer, const LeaseAnswer& grant, TimePoint sent);
  void no_session(Failure why);

  void beat();
  void beat_later(TimePoint at);
  // Answers to what is under way are ignored.
  void stop_attempts();
  void kept(const Result<std::string>& answer, TimePoint sent);
  void beat_failed(const Failure& why);
  [[nodiscard]] TimePoint beat_by() const;
  void confirm(const LeaseAnswer& kept, TimePoint sent);
  void confirmed(const Result<std::string>& answer, const LeaseAnswer& kept, TimePoint sent);
  void alive_until(TimePoint valid_until);
  void lose(const std::string& why);
  void revoke(std::int64_t lease);

  Executor& executor_;
  Client& client_;
  User& user_;
  bool wanted_ = false;
  bool closing_ = false;
  bool refused_ = false;       // the last attempt, for good
  std::uint64_t attempt_ = 0;  // answers to an earlier one are of no interest
  std::int64_t lease_ = 0;
  std::chrono::nanoseconds ttl_{};
  TimePoint valid_until_ = TimePoint::min();
  Failure problem_;
  bool beating_ = false;
  TimePoint beat_sent_;
  std::string trouble_;             // with beats since then
  bool confirmed_ = false;          // a beat of this lease
  std::vector<std::int64_t> over_;  // leases to be revoked
  Backoff backoff_{std::chrono::seconds(1)};
  Timer timer_;  // of the next beat, or of the next attempt
  Timer deadline_timer_;
  Lifetime lifetime_;
};

}  // namespace dlock::etcd
