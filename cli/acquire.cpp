#include "cli/acquire.hpp"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <optional>
#include <stop_token>
#include <thread>

#include <fmt/format.h>

#include "cli/exit_code.hpp"
#include "cli/output.hpp"
#include "cli/system.hpp"

namespace dlock::cli {

namespace {

// After this long, a person at a terminal is told for whom dlock waits.
constexpr std::chrono::milliseconds patience{1000};

// A blocking acquire on a thread of its own: the blocking form is the one that says in words what went wrong.
class Attempt {
 public:
  Attempt(const Client& client, const Arguments& arguments) : lock_(client.lock(arguments.name)) {
    AcquireOptions options{.wait = arguments.wait, .lease = arguments.lease, .cancel = stop_.get_token()};
    thread_ = std::jthread([this, options] { run(options); });
  }
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;
  ~Attempt() { cancel(); }

  void cancel() { stop_.request_stop(); }
  [[nodiscard]] int done_fd() const noexcept { return done_.fd(); }

  // Call when done_fd() is readable. nullopt: somebody else held the lock. Throws what acquire() threw.
  std::optional<Lease> result() {
    thread_.join();
    if (failure_) std::rethrow_exception(failure_);
    return std::move(lease_);
  }

 private:
  void run(const AcquireOptions& options) noexcept {
    try {
      lease_ = lock_.try_acquire_for(options.wait, options);
    } catch (...) {
      failure_ = std::current_exception();
    }
    done_.notify();
  }

  DistributedLock lock_;
  std::stop_source stop_;
  Event done_;
  std::optional<Lease> lease_;
  std::exception_ptr failure_;
  std::jthread thread_;
};

std::variant<Lease, int> conclude(Attempt& attempt, const Arguments& arguments, std::optional<int> signal) {
  try {
    if (std::optional<Lease> lease = attempt.result()) {
      if (!signal) return std::move(*lease);
      return signalled(*signal);  // granted in the same moment; given back here
    }
  } catch (const Error& error) {
    if (!signal || error.code() != errc::cancelled) throw;
  }
  if (signal) return signalled(*signal);
  if (arguments.wait == Duration()) {
    if (!arguments.quiet) say(fmt::format("somebody else holds \"{}\"", arguments.name));
    return static_cast<int>(ExitCode::busy);
  }
  if (!arguments.quiet) say(fmt::format("timed out waiting for \"{}\": somebody else holds it", arguments.name));
  return static_cast<int>(ExitCode::timed_out);
}

}  // namespace

std::variant<Lease, int> acquire(const Client& client, const Arguments& arguments, const Inherited& inherited,
                                 SignalQueue& signals, WaitExplainer& explainer) {
  signals.keep_user_signals_pending();
  Attempt attempt(client, arguments);
  // A try does not wait, even if the service takes its time to answer it.
  bool explain = !arguments.quiet && arguments.wait != Duration() && ::isatty(STDERR_FILENO) == 1;
  std::optional<int> ended_by;
  for (;;) {
    pollfd sources[] = {{.fd = attempt.done_fd(), .events = POLLIN, .revents = 0},
                        {.fd = signals.fd(), .events = POLLIN, .revents = 0}};
    const int ready = ::poll(sources, 2, explain ? static_cast<int>(patience.count()) : -1);
    if (ready < 0 && errno != EINTR) check(ready, "poll");
    while (const std::optional<int> signal = signals.next()) {
      if (*signal == SIGTSTP) (void)signals.stop_job();  // ignored or orphaned: then TSTP has no effect, as usual
      if (!SignalQueue::ends(*signal) || inherited.ignored(*signal) || ended_by) continue;
      ended_by = signal;
      attempt.cancel();
    }
    if (ready > 0 && sources[0].revents != 0) break;
    if (ready == 0) {
      explain = false;
      explainer.explain(arguments.name);
    }
  }
  explainer.wait_is_over();
  signals.read_all_signals();
  flush_messages();  // what was said about the wait comes before what the command says
  return conclude(attempt, arguments, ended_by);
}

}  // namespace dlock::cli
