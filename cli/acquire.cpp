#include "cli/acquire.hpp"

#include <poll.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <exception>
#include <iterator>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "cli/exit_code.hpp"
#include "cli/output.hpp"
#include "cli/system.hpp"
#include "cli/text.hpp"

namespace dlock::cli {

namespace {

// After this long, dlock says for whom it waits, and in the end for how long it did.
constexpr std::chrono::milliseconds patience{1000};

template <class L>
std::optional<Held> as_held(std::optional<L> lease) {
  if (!lease) return std::nullopt;
  return Held(std::move(*lease));
}

// Blocks. nullopt: somebody else held it. Throws Error.
std::optional<Held> take(const Client& client, const Arguments& arguments, const AcquireOptions& options) {
  const std::string& name = arguments.names.front();
  switch (arguments.kind) {
    case LockKind::lock:
      if (arguments.names.size() == 1) return as_held(client.make_lock(name).try_acquire_for(options.wait, options));
      return as_held(client.make_multi_lock(arguments.names).try_acquire_for(options.wait, options));
    case LockKind::read_write: {
      ReadWriteLock lock = client.make_read_write_lock(name);
      if (arguments.mode == Mode::exclusive) return as_held(lock.try_acquire_for(options.wait, options));
      return as_held(lock.try_acquire_shared_for(options.wait, options));
    }
    case LockKind::semaphore:
      return as_held(client.make_semaphore(name, arguments.permits).try_acquire_for(options.wait, options));
    case LockKind::election:
      break;
  }
  return as_held(client.make_election(name).try_campaign_for(
      options.wait, {.value = arguments.value, .lease = options.lease, .cancel = options.cancel}));
}

// Why it was not to be had; `them` are the names.
std::string obstacle(const Arguments& arguments, const std::string& them) {
  if (arguments.kind == LockKind::semaphore) {
    return fmt::format("all {} permits of {} are taken, or others wait for one", arguments.permits, them);
  }
  if (arguments.kind == LockKind::election) return fmt::format("another client leads {}", them);
  if (arguments.mode == Mode::shared) return fmt::format("another client holds {} exclusively, or waits to", them);
  return fmt::format("another client holds {}{}", arguments.names.size() > 1 ? "one of " : "", them);
}

// A blocking acquire on a thread of its own: the blocking form is the one that says in words what went wrong.
class Attempt {
 public:
  Attempt(const Client& client, const Arguments& arguments) {
    const AcquireOptions options{.wait = arguments.wait, .lease = arguments.lease, .cancel = stop_.get_token()};
    thread_ = std::jthread([this, &client, &arguments, options] { run(client, arguments, options); });
  }
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;
  ~Attempt() { cancel(); }

  void cancel() { stop_.request_stop(); }
  [[nodiscard]] int done_fd() const noexcept { return done_.fd(); }

  // Call when done_fd() is readable. nullopt: somebody else held the lock. Throws what acquire() threw.
  std::optional<Held> result() {
    thread_.join();
    if (failure_) std::rethrow_exception(failure_);
    return std::move(taken_);
  }

 private:
  void run(const Client& client, const Arguments& arguments, const AcquireOptions& options) noexcept {
    try {
      taken_ = take(client, arguments, options);
    } catch (...) {
      failure_ = std::current_exception();
    }
    done_.notify();
  }

  std::stop_source stop_;
  Event done_;
  std::optional<Held> taken_;
  std::exception_ptr failure_;
  std::jthread thread_;
};

// Why the wait was cancelled, if it was.
struct Cancelled {
  std::optional<int> by;   // a signal
  bool unreached = false;  // nobody at the service has answered
};

void obey_signals(SignalQueue& signals, const Inherited& inherited, Attempt& attempt, Cancelled& cancelled) {
  while (const std::optional<int> signal = signals.next()) {
    if (*signal == SIGTSTP) (void)signals.stop_job();  // ignored or orphaned: then TSTP has no effect, as usual
    if (!SignalQueue::ends(*signal) || inherited.ignored(*signal) || cancelled.by) continue;
    cancelled.by = signal;
    attempt.cancel();
  }
}

NotHeld interrupted(int signal) {
  return {Account::Result::interrupted, signalled(signal), fmt::format("signal {} ended the wait", signal)};
}

NotHeld unreached(const Client& client, const Arguments& arguments, Reporter& reporter) {
  std::string why = reporter.last_failure();
  if (why.empty()) why = client.url() + " has not answered";
  reporter.fall_silent();
  const std::string text = fmt::format("the lock service was not reached within {} (--connect-wait): {}",
                                       for_people(arguments.connect_wait.value()), why);
  say(text);
  return {Account::Result::failed, static_cast<int>(ExitCode::unavailable), text};
}

void say_how_long(const Arguments& arguments, std::chrono::nanoseconds waited) {
  const char* const verb = arguments.kind == LockKind::election ? "leads" : "holds";
  say(fmt::format("{} {} after waiting for {}", verb, quoted(arguments.names), for_people(waited)));
}

NotHeld conflict(const Arguments& arguments) {
  const std::string names = quoted(arguments.names);
  const bool tried = arguments.wait == Duration();
  const std::string text = tried ? obstacle(arguments, names)
                                 : fmt::format("timed out waiting for {}: {}", names,
                                               obstacle(arguments, arguments.names.size() > 1 ? "them" : "it"));
  if (!arguments.quiet) say(text);
  const auto usual = static_cast<int>(tried ? ExitCode::busy : ExitCode::timed_out);
  return {Account::Result::conflict, arguments.conflict_status.value_or(usual), text};
}

std::variant<Held, NotHeld> conclude(Attempt& attempt, const Client& client, const Arguments& arguments,
                                     const Cancelled& cancelled, Reporter& reporter) {
  try {
    if (std::optional<Held> held = attempt.result()) {
      if (!cancelled.by) return std::move(*held);
      return interrupted(*cancelled.by);  // granted in the same moment; given back here
    }
  } catch (const Error& error) {
    if ((!cancelled.by && !cancelled.unreached) || error.code() != errc::cancelled) throw;
    if (!cancelled.by) return unreached(client, arguments, reporter);
  }
  if (cancelled.by) return interrupted(*cancelled.by);
  return conflict(arguments);
}

// The service was to be reached by now.
void lose_patience(Alarm& impatience, const Reporter& reporter, Attempt& attempt, Cancelled& cancelled) {
  impatience.set(TimePoint::max());
  impatience.clear();
  cancelled.unreached = !reporter.reached();
  if (cancelled.unreached) attempt.cancel();
}

// Whoever it is on the leash of has ended.
void let_go(Attempt& attempt, Cancelled& cancelled) {
  if (cancelled.by) return;
  cancelled.by = SIGHUP;
  attempt.cancel();
}

}  // namespace

std::variant<Held, NotHeld> acquire(const Client& client, const Arguments& arguments, const Inherited& inherited,
                                    SignalQueue& signals, Reporter& reporter, WaitExplainer& explainer, int leash) {
  signals.keep_user_signals_pending();
  Alarm impatience;
  // What is no further away than this machine is always reached.
  if (client.capabilities().scope == Scope::network) {
    impatience.set(saturating_add(LeaseClock::now(), arguments.connect_wait.value()));
  }
  const TimePoint began = LeaseClock::now();
  if (arguments.verbose) say(fmt::format("asking for {} at {}", quoted(arguments.names), client.url()));
  Attempt attempt(client, arguments);
  // A try does not wait, even if the service takes its time to answer it.
  bool explain = !arguments.quiet && arguments.wait != Duration();
  bool explained = false;
  Cancelled cancelled;
  for (;;) {
    pollfd sources[] = {{.fd = attempt.done_fd(), .events = POLLIN, .revents = 0},
                        {.fd = signals.fd(), .events = POLLIN, .revents = 0},
                        {.fd = impatience.fd(), .events = POLLIN, .revents = 0},
                        {.fd = cancelled.by ? -1 : leash, .events = POLLIN, .revents = 0}};
    const int ready = ::poll(sources, std::size(sources), explain ? static_cast<int>(patience.count()) : -1);
    if (ready < 0 && errno != EINTR) check(ready, "poll");
    obey_signals(signals, inherited, attempt, cancelled);
    if (ready > 0 && sources[3].revents != 0) let_go(attempt, cancelled);
    if (ready > 0 && sources[0].revents != 0) break;
    if (ready > 0 && sources[2].revents != 0) lose_patience(impatience, reporter, attempt, cancelled);
    if (ready == 0) {
      explain = false;
      explained = true;
      explainer.explain(arguments.names, arguments.kind);
    }
  }
  explainer.wait_is_over();
  signals.read_all_signals();
  std::variant<Held, NotHeld> outcome = conclude(attempt, client, arguments, cancelled, reporter);
  if (explained && std::holds_alternative<Held>(outcome)) say_how_long(arguments, LeaseClock::now() - began);
  flush_messages();  // what was said about the wait comes before what the command says
  return outcome;
}

}  // namespace dlock::cli
