#include "cli/run.hpp"

#include <chrono>
#include <csignal>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <dlock/spi/url.hpp>

#include "cli/account.hpp"
#include "cli/acquire.hpp"
#include "cli/bookkeeping.hpp"
#include "cli/exit_code.hpp"
#include "cli/guardian.hpp"
#include "cli/held.hpp"
#include "cli/output.hpp"
#include "cli/session.hpp"
#include "cli/supervisor.hpp"
#include "cli/text.hpp"

namespace dlock::cli {

namespace {

// Name the locks for the command. With several, the variables of a single lock are removed: an outer dlock may have set
// them.
decltype(Command::variables) variables(const Arguments& arguments, const Held& held, const std::string& url) {
  const std::vector<std::uint64_t> tokens = held.tokens();
  const bool one = tokens.size() == 1;
  return {{"DLOCK_NAME", one ? std::optional(arguments.name()) : std::nullopt},
          {"DLOCK_TOKEN", one ? std::optional(std::to_string(tokens.front())) : std::nullopt},
          {"DLOCK_NAMES", fmt::format("{}", fmt::join(arguments.names, "\n"))},
          {"DLOCK_TOKENS", fmt::format("{}", fmt::join(tokens, "\n"))},
          {"DLOCK_KIND", std::string(kind_word(arguments.kind))},
          {"DLOCK_URL", Url::parse(url).without_secrets()}};
}

// If a candidate's command ends at once, again and again, other candidates get this long to lead.
constexpr std::chrono::seconds shortest_term{1};

// From an acquire to the release.
class Term {
 public:
  // With `last`, no other term follows.
  Term(Session& session, std::optional<Guardian>& guardian, bool last, Account& account)
      : session_(session), guardian_(guardian), last_(last), account_(account) {}

  // Acquires what the arguments request, runs the command, and releases.
  void run();

  // The command was started, and no signal that ends dlock arrived.
  [[nodiscard]] bool may_be_repeated() const noexcept { return may_be_repeated_; }
  [[nodiscard]] TimePoint began() const noexcept { return began_; }

 private:
  // Releases, and reports the outcome.
  void conclude(Held& held, const Supervisor::Outcome& outcome);
  void release(Held& held);
  void lose(const std::string& name, const std::string& end_of_command);

  Session& session_;
  std::optional<Guardian>& guardian_;
  const bool last_;
  Account& account_;
  TimePoint began_ = {};
  bool may_be_repeated_ = false;
};

void Term::run() {
  std::optional<Held> held = acquire(session_, account_);
  if (!held) return;
  const Arguments& arguments = session_.arguments;
  began_ = held->began();
  const Command command{.arguments = arguments.command, .variables = variables(arguments, *held, session_.url)};
  const auto outcome = Supervisor({.command = command,
                                   .inherited = session_.inherited,
                                   .signals = session_.signals,
                                   .held = *held,
                                   .kill_after = arguments.kill_after.value(),
                                   .quiet = arguments.quiet,
                                   .verbose = arguments.verbose},
                                  guardian_)
                           .run();
  may_be_repeated_ = outcome.started && !outcome.interrupted && outcome.status != signalled(SIGHUP);
  if (last_) guardian_.reset();
  conclude(*held, outcome);
}

void Term::conclude(Held& held, const Supervisor::Outcome& outcome) {
  account_.conclude(outcome.started ? Account::Result::ran : Account::Result::failed, outcome.status, outcome.failure);
  if (outcome.started) account_.command_status = outcome.status;
  if (outcome.lost) {
    if (last_) session_.reporter->fall_silent();
    const std::string name = held.first_to_go();
    // Perhaps it was only about to be lost. Released before the message, which may block on standard error.
    { const Held freed = std::move(held); }
    return lose(name, outcome.ended_early ? "was ended" : fmt::format("had ended with status {}", outcome.status));
  }
  const TimePoint until = saturating_add(began_, session_.arguments.hold_at_least.value());
  if (outcome.started && keep(held, until, session_.signals).reason == Kept::lost) {
    account_.conclude(Account::Result::lost, outcome.status,
                      session_.reporter->loss_of(held.first_to_go()) +
                          " after the command had ended, before --hold-at-least was over");
    return say("warning: " + account_.reason);
  }
  release(held);
}

void Term::lose(const std::string& name, const std::string& end_of_command) {
  account_.conclude(Account::Result::lost, static_cast<int>(ExitCode::lost),
                    fmt::format("{}; the command {}", session_.reporter->loss_of(name), end_of_command));
  say(account_.reason);
}

void Term::release(Held& held) {
  const std::string first = held.first_to_go();
  std::error_code ec;
  const bool ours = held.release(ec);
  if (ec) {
    say(fmt::format("warning: the release of {} was not confirmed ({}); it ends with its lease",
                    quoted(session_.arguments.names), ec.message()));
  } else if (!ours) {
    lose(first, fmt::format("had ended with status {}", account_.status));
  }
}

// Waits without a lock until then, or until a signal that ends waits.
std::optional<int> pause(Session& session, TimePoint until) {
  const Held nothing{Lease()};
  for (;;) {
    const Kept kept = keep(nothing, until, session.signals);
    if (kept.reason != Kept::signal) return std::nullopt;
    if (!session.inherited.ignored(kept.by)) return kept.by;
  }
}

int run_terms(const Arguments& arguments, Inherited& inherited, bool once) {
  Bookkeeping books(arguments);
  inherited.take_over_signals();
  std::optional<Guardian> guardian(std::in_place);
  start_messages();
  std::unique_ptr<Session> session;
  for (;;) {
    TimePoint began;
    const Account ended = books.keep([&](Account& account) {
      auto current = std::move(session);
      if (!current) current = std::make_unique<Session>(arguments, inherited, label_for(arguments.command.front()));
      Term term(*current, guardian, once, account);
      term.run();
      began = term.began();
      if (!once && term.may_be_repeated()) session = std::move(current);  // else it ends before the account is written
    });
    if (!session) return ended.status;
    if (!arguments.quiet) {
      const bool lost = ended.result == Account::Result::lost && ended.status == static_cast<int>(ExitCode::lost);
      say(lost ? "campaigning again"
               : fmt::format("the command ended with status {}; campaigning again", ended.status));
    }
    const std::optional<int> signal = pause(*session, saturating_add(began, shortest_term));
    if (signal) return signalled(*signal);
  }
}

}  // namespace

int run_command(const Arguments& arguments, Inherited& inherited) {
  return run_terms(arguments, inherited, true);
}

int elect(const Arguments& arguments, Inherited& inherited) {
  return run_terms(arguments, inherited, arguments.once);
}

}  // namespace dlock::cli
