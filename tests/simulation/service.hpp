// A lock service as the simulation sees it: the real backend, over a fake of its service in memory.
//
// Each simulation program defines subjects(). A service runs in the simulation's single thread. It has an executor of
// its own, for its timers; what it sends to a process runs as tasks of that process's executor, which may be stopped.
#pragma once

#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <dlock/lock_kind.hpp>
#include <dlock/spi/backend.hpp>
#include <dlock/spi/executor.hpp>

namespace dlock::simulation {

// The fate of one request. A service whose protocol cannot do one of these does the one that is closest to it.
enum class Fate : std::uint8_t {
  answer,
  lose_request,  // the service never receives it, and the connection breaks
  lose_answer,   // carried out, and the connection breaks before the answer
  late,          // carried out and answered after Service::delay(); the connection may have broken by then
  hold,          // carried out; answered by release_held()
  duplicate,     // carried out twice, the second time after Service::delay()
  refuse,        // not carried out; answered with an error of the service that is worth a retry
  silence,       // neither carried out nor answered, like all that follows on that connection
  expire,        // answered, and then the service ends the sessions of the process
};
inline constexpr std::size_t fates = 9;

class Service {
 public:
  Service() = default;
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;
  virtual ~Service() = default;

  // The fate of each request, called once, when the process sends it. `request` names it for people and tests:
  // "acquire", "create".
  std::function<Fate(int process, std::string_view request)> fate = [](int, std::string_view) { return Fate::answer; };
  // How long a late answer takes.
  std::function<std::chrono::nanoseconds()> delay = [] { return std::chrono::milliseconds(100); };

  [[nodiscard]] virtual std::string url() const = 0;
  // The backend of a process, numbered from 1. One process may have several, one after the other.
  [[nodiscard]] virtual std::unique_ptr<Backend> connect(int process, BackendHost& host,
                                                         const BackendConfig& config) = 0;

  // Each does nothing where the service has no such thing.
  // Breaks the connections of a process that are open now.
  virtual void cut(int /*process*/) {}
  // While it is not, the process gets no new connections: they are refused.
  virtual void set_reachable(int /*process*/, bool /*reachable*/) {}
  // Ends the sessions that the service keeps for a process, with what they hold.
  virtual void expire(int /*process*/) {}
  // Removes what is in the service of a holder or a waiter, as another program does.
  virtual void remove_owner(LockKind /*kind*/, const std::string& /*name*/) {}
  // Answers what was held.
  virtual void release_held() {}
  // The process is dead, and its connections are closed: nothing more is delivered to it, whatever its backend does.
  virtual void bury(int /*process*/) {}

  // How many owners the service knows now, holders, waiters and leftovers. Leases that have expired do not count.
  [[nodiscard]] virtual std::size_t owners(LockKind kind, const std::string& name) = 0;
  // The process that holds the lock, or one of them; 0: nobody, or one that is not known.
  [[nodiscard]] virtual int holder(LockKind kind, const std::string& name) = 0;
};

// "host:pid:7" is a holder in process 7; 0 for what is no holder's text.
[[nodiscard]] inline int process_of(std::string_view holder) {
  const std::string_view label = holder.substr(holder.rfind(':') + 1);
  int number = 0;
  (void)std::from_chars(label.data(), label.data() + label.size(), number);
  return number;
}
[[nodiscard]] inline int process_of(const LockInfo& info) {
  return info.held ? process_of(info.holder) : 0;
}

// One service in one of the ways to use it.
struct Subject {
  std::string name;  // "queue", "cluster_queue": letters, digits and _
  std::vector<LockKind> kinds;
  bool spoils = true;   // whether it has requests that meet with fates
  bool queries = true;  // whether its fake answers queries and breaks locks
  // Whether expire() ends sessions that hold locks. Their holders learn of it later than the service.
  bool expires_holders = false;
  std::chrono::nanoseconds min_lease = std::chrono::milliseconds(50);  // of acquires
  // How long after everything was healed a lock may be free in spite of waiters: the longest session, back-off or poll.
  std::chrono::nanoseconds recovery{};
  // How long what a dead process leaves may stay in the service: the longest session. A lease is at most 3 s.
  std::chrono::nanoseconds session{};
  // How long a hand-over may take in sound times.
  std::chrono::nanoseconds hand_over = std::chrono::milliseconds(250);
  std::function<std::unique_ptr<Service>(Executor& executor, std::uint64_t seed)> make;

  friend void PrintTo(const Subject& subject, std::ostream* out) { *out << subject.name; }
};
[[nodiscard]] std::vector<Subject> subjects();

}  // namespace dlock::simulation
