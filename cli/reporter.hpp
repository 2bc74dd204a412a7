// Reports to a person on the connection, on the lock, and on a wait for it, while dlock has nothing else to say.
#pragma once

#include <dlock/client.hpp>
#include <dlock/clock.hpp>
#include <dlock/observer.hpp>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace dlock::cli {

// Every retry that fails is an event. A person is told of each kind of trouble once, until it has changed or is over. A
// person who wants errors only is told of each outage its first failure:
//
//   event                            | is said                                       | ends
//   ---------------------------------+-----------------------------------------------+-------------------------------
//   connection broken                | unless it was broken already, but the first   |
//                                    | time for a reason that stays (access denied)  |
//   connection answered              | if it was broken                              | the outage; trouble with locks
//   lock acquired or renewed         |                                               | trouble with locks
//   warning about a lock             | unless it was, or only is a consequence of an |
//                                    | outage that was                               |
//   warning about the service itself | unless it was                                 |
//
// With -v, a person is also told of the first connection, of locks that are taken and freed, and of renewals that come
// late.
class Reporter final : public Observer {
 public:
  // Quiet: says nothing but errors. With `tries`, the failure of the first acquire is no news: it ends dlock, which
  // then says why.
  explicit Reporter(bool quiet, bool tries = false, bool verbose = false,
                    std::function<TimePoint()> now = LeaseClock::now)
      : speech_(verbose ? Speech::everything
                : quiet ? Speech::errors
                        : Speech::all),
        trying_(tries),
        now_(std::move(now)) {}

  void acquired(const AcquiredEvent& event) override;
  void released(const ReleasedEvent& event) override;
  void renewed(const RenewedEvent& event) override;
  void lost(const LostEvent& event) override;
  void connection(const ConnectionEvent& event) override;
  void warning(const WarningEvent& event) override;

  // Says for what dlock waits, and for whom when the service has answered that. Does not block: the service is asked on
  // a thread of its own, so that the caller receives signals and the grant even if the service does not answer.
  void explain_wait(const Client& client, const std::vector<std::string>& names, LockKind kind = LockKind::lock);
  // From here on, nothing is said about this wait. Does not block.
  void end_wait();
  // Waits for an answer that is still to come: for 1.25 times ClientOptions::response_timeout at
  // most. Call it before the client of explain_wait() ends.
  void finish_asking();

  // Events come on a thread of their own. With -v, waits until it has said that so many locks were taken, so that this
  // is said before what follows from it: for one second at most.
  void await_taken(std::size_t locks);
  // How long the lease is: a renewal that comes when half of it has passed is late. It is due after a third.
  void expect_renewals(std::chrono::nanoseconds lease);
  // Says nothing from here on: dlock has said how it ends, and only cleans up.
  void fall_silent();

  // Whether there was ever a connection, or a lock.
  [[nodiscard]] bool reached() const;
  // Why the service was out of reach the last time; empty if it never was, as far as is known.
  [[nodiscard]] std::string last_failure() const;
  // 'lost "NAME"', and why it was lost, or could not be relied on any more, as far as that is known (yet).
  [[nodiscard]] std::string loss_of(const std::string& name) const;

 private:
  enum class Speech { everything, all, errors, nothing };

  void ask(const Client& client, const std::vector<std::string>& names, LockKind kind, std::uint64_t wait);
  // With mutex_ held:
  void say_unless_quiet(const std::string& text) const;
  void say_if_verbose(const std::string& text) const;
  void say_out_of_reach(const std::string& meaning, const std::string& why);
  void forget_trouble_with_locks();

  mutable std::mutex mutex_;  // guards what follows, but for the thread
  Speech speech_;
  bool trying_;
  std::function<TimePoint()> now_;
  std::chrono::nanoseconds lease_ = std::chrono::nanoseconds::max();
  std::map<std::string, TimePoint> renewed_;  // when each lock was last taken or renewed
  std::size_t taken_ = 0;                     // not awaited yet
  std::condition_variable taken_changed_;
  bool reached_ = false;
  bool out_of_reach_ = false;  // since the last time that something worked
  std::string last_failure_;
  std::string loss_;
  std::string renewal_failure_;  // of the last renewal, if that failed
  bool connected_ = false;
  bool cut_off_ = false;
  bool refused_ = false;  // during this outage, for a reason that stays: what fails later is no better explanation
  std::set<std::pair<std::string, std::string>> said_;  // warnings that are not over: the lock's name, and the text
  std::uint64_t waits_ = 0;                             // that are over
  bool asking_ = false;
  std::jthread asker_;
};

}  // namespace dlock::cli
