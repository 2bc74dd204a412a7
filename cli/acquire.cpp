#include "cli/acquire.hpp"

#include <poll.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <future>
#include <iterator>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "cli/exit_code.hpp"
#include "cli/output.hpp"
#include "cli/system.hpp"
#include "cli/text.hpp"

namespace dlock::cli {

namespace {

// After this long, dlock reports what it waits for, and at the end how long it waited.
constexpr std::chrono::milliseconds patience{1000};

template <class L>
std::optional<Held> as_held(std::optional<L> lease) {
  if (!lease) return std::nullopt;
  return Held(std::move(*lease));
}

// Blocks. nullopt: another client held it. Throws Error.
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

// Why it was not acquired; `them`: the names.
std::string obstacle(const Arguments& arguments, const std::string& them) {
  if (arguments.kind == LockKind::semaphore) {
    return fmt::format("all {} permits of {} are taken, or others wait for one", arguments.permits, them);
  }
  if (arguments.kind == LockKind::election) return fmt::format("another client leads {}", them);
  if (arguments.mode == Mode::shared) return fmt::format("another client holds {} exclusively, or waits to", them);
  return fmt::format("another client holds {}{}", arguments.names.size() > 1 ? "one of " : "", them);
}

// An acquire, until it has ended.
class Wait {
 public:
  Wait(Session& session, Account& account) : session_(session), account_(account) {
    const AcquireOptions options{
        .wait = session.arguments.wait, .lease = session.arguments.lease, .cancel = stop_.get_token()};
    // In its own thread: only the blocking form throws Error with a text.
    attempt_ = std::async(std::launch::async, [this, options] {
      struct Notifier {
        const Event& event;
        ~Notifier() { event.notify(); }
      } const at_end{done_};
      return take(session_.client, session_.arguments, options);
    });
  }
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;
  ~Wait() { stop_.request_stop(); }

  std::optional<Held> run(int leash) {
    const Arguments& arguments = session_.arguments;
    // A service without a network is always reachable.
    if (session_.client.capabilities().scope == Scope::network) {
      impatience_.set(saturating_add(began_, arguments.connect_wait.value()));
    }
    // A try does not wait, even if the service answers slowly.
    bool explain = !arguments.quiet && arguments.wait != Duration();
    const bool explains = explain;
    for (;;) {
      pollfd sources[] = {{.fd = done_.fd(), .events = POLLIN, .revents = 0},
                          {.fd = session_.signals.fd(), .events = POLLIN, .revents = 0},
                          {.fd = impatience_.fd(), .events = POLLIN, .revents = 0},
                          {.fd = signal_ ? -1 : leash, .events = POLLIN, .revents = 0}};
      const int ready = ::poll(sources, std::size(sources), explain ? static_cast<int>(patience.count()) : -1);
      if (ready < 0 && errno != EINTR) check(ready, "poll");
      obey_signals();
      if (ready > 0 && sources[3].revents != 0) cancel(SIGHUP);  // the process that holds the leash has ended
      if (ready > 0 && sources[0].revents != 0) break;
      if (ready > 0 && sources[2].revents != 0) lose_patience();
      if (ready == 0) {
        explain = false;
        session_.reporter->explain_wait(session_.client, arguments.names, arguments.kind);
      }
    }
    session_.reporter->end_wait();
    session_.signals.read_all_signals();
    std::optional<Held> held = conclude();
    if (held) session_.reporter->await_taken(arguments.names.size());
    if (held && explain != explains) say_how_long();
    return held;
  }

 private:
  void obey_signals() {
    while (const std::optional<int> signal = session_.signals.next()) {
      if (*signal == SIGTSTP) (void)session_.signals.stop_job();  // ignored or orphaned: then TSTP has no effect
      if (SignalQueue::ends(*signal) && !session_.inherited.ignored(*signal)) cancel(*signal);
    }
  }

  void cancel(int signal) {
    if (signal_) return;
    signal_ = signal;
    stop_.request_stop();
  }

  // The service was not reached in time.
  void lose_patience() {
    impatience_.set(TimePoint::max());
    impatience_.clear();
    unreached_ = !session_.reporter->reached();
    if (unreached_) stop_.request_stop();
  }

  std::optional<Held> conclude() {
    try {
      std::optional<Held> held = attempt_.get();
      if (held && !signal_) return held;  // otherwise it was granted in the same moment; released here
    } catch (const Error& error) {
      if ((!signal_ && !unreached_) || error.code() != errc::cancelled) throw;
      if (!signal_) return unreached();
    }
    if (!signal_) return conflict();
    account_.conclude(Account::Result::interrupted, signalled(*signal_),
                      fmt::format("signal {} ended the wait", *signal_));
    return std::nullopt;
  }

  std::nullopt_t unreached() {
    std::string why = session_.reporter->last_failure();
    if (why.empty()) why = session_.client.url() + " has not answered";
    session_.reporter->fall_silent();
    account_.conclude(Account::Result::failed, static_cast<int>(ExitCode::unavailable),
                      fmt::format("the lock service was not reached within {} (--connect-wait): {}",
                                  for_people(session_.arguments.connect_wait.value()), why));
    say(account_.reason);
    return std::nullopt;
  }

  std::nullopt_t conflict() {
    const Arguments& arguments = session_.arguments;
    const std::string names = quoted(arguments.names);
    const bool tried = arguments.wait == Duration();
    const auto usual = static_cast<int>(tried ? ExitCode::busy : ExitCode::timed_out);
    account_.conclude(Account::Result::conflict, arguments.conflict_status.value_or(usual),
                      tried ? obstacle(arguments, names)
                            : fmt::format("timed out waiting for {}: {}", names,
                                          obstacle(arguments, arguments.names.size() > 1 ? "them" : "it")));
    if (!arguments.quiet) say(account_.reason);
    return std::nullopt;
  }

  void say_how_long() const {
    const Arguments& arguments = session_.arguments;
    const char* const verb = arguments.kind == LockKind::election ? "leads" : "holds";
    say(fmt::format("{} {} after waiting for {}", verb, quoted(arguments.names),
                    for_people(LeaseClock::now() - began_)));
  }

  Session& session_;
  Account& account_;
  const TimePoint began_ = LeaseClock::now();
  Alarm impatience_;
  std::optional<int> signal_;  // the signal that cancelled it
  bool unreached_ = false;     // cancelled, because the service did not answer in time
  std::stop_source stop_;
  const Event done_;
  std::future<std::optional<Held>> attempt_;  // its end waits for the thread
};

}  // namespace

std::optional<Held> acquire(Session& session, Account& account, int leash) {
  const Stopwatch waiting(account.waited);
  session.signals.keep_user_signals_pending();
  if (session.arguments.verbose) {
    say(fmt::format("asking for {} at {}", quoted(session.arguments.names), session.client.url()));
  }
  std::optional<Held> held = Wait(session, account).run(leash);
  flush_messages();  // messages about the wait come before the command's output
  if (!held) return held;
  account.tokens = held->tokens();
  held->measure(account.held.emplace());
  session.reporter->expect_renewals(held->valid_until() - held->began());
  return held;
}

}  // namespace dlock::cli
