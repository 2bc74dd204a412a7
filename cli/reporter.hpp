// Reports about the connection, the lock, and a wait for it, while dlock has no other output.
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

// Every failed retry is an event. Each kind of problem is reported once, until it changes or ends. In quiet mode, only
// the first failure of each outage is reported:
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
// With -v, it also reports the first connection, locks that are acquired and released, and late renewals.
class Reporter final : public Observer {
 public:
  // quiet: only errors. tries: the failure of the first acquire is not reported, because it ends dlock, which then
  // prints the reason.
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

  // Prints what dlock waits for, and who holds it once the service has answered that. Does not block: a separate thread
  // queries the service, so the caller gets signals and the grant even if the service does not answer.
  void explain_wait(const Client& client, const std::vector<std::string>& names, LockKind kind = LockKind::lock);
  // Reports nothing more about this wait. Does not block.
  void end_wait();
  // Waits for a pending answer: at most 1.25 times ClientOptions::response_timeout. Call it before the client of
  // explain_wait() is destroyed.
  void finish_asking();

  // Events come on a different thread. With -v, waits until the acquires of so many locks were printed, so that this
  // precedes later messages: at most one second.
  void await_taken(std::size_t locks);
  // lease: a renewal after more than half of it is late. It is due after a third.
  void expect_renewals(std::chrono::nanoseconds lease);
  // Reports nothing more: dlock has printed how it ends, and only cleans up.
  void fall_silent();

  // Whether there was ever a connection, or a lock.
  [[nodiscard]] bool reached() const;
  // Why the service was last unreachable; empty if it never was, as far as is known.
  [[nodiscard]] std::string last_failure() const;
  // 'lost "NAME"', and why it was lost, or was no longer reliable, as far as that is known (yet).
  [[nodiscard]] std::string loss_of(const std::string& name) const;

 private:
  enum class Speech { everything, all, errors, nothing };

  void ask(const Client& client, const std::vector<std::string>& names, LockKind kind, std::uint64_t wait);
  // With mutex_ held:
  void say_unless_quiet(const std::string& text) const;
  void say_if_verbose(const std::string& text) const;
  void say_out_of_reach(const std::string& meaning, const std::string& why);
  void forget_trouble_with_locks();

  mutable std::mutex mutex_;  // guards what follows, except the thread
  Speech speech_;
  bool trying_;
  std::function<TimePoint()> now_;
  std::chrono::nanoseconds lease_ = std::chrono::nanoseconds::max();
  std::map<std::string, TimePoint> renewed_;  // when each lock was last taken or renewed
  std::size_t taken_ = 0;                     // and not awaited yet
  std::condition_variable taken_changed_;
  bool reached_ = false;
  bool out_of_reach_ = false;  // since the last success
  std::string last_failure_;
  std::string loss_;
  std::string renewal_failure_;  // of the last renewal, if that failed
  bool connected_ = false;
  bool cut_off_ = false;
  bool refused_ = false;  // in this outage, for a permanent reason: later failures explain it no better
  std::set<std::pair<std::string, std::string>> said_;  // current warnings: the lock's name, and the text
  std::uint64_t waits_ = 0;                             // that have ended
  bool asking_ = false;
  std::jthread asker_;
};

}  // namespace dlock::cli
