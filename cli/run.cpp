#include "cli/run.hpp"

#include <chrono>
#include <csignal>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <variant>
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
#include "cli/keep.hpp"
#include "cli/location.hpp"
#include "cli/output.hpp"
#include "cli/reporter.hpp"
#include "cli/session.hpp"
#include "cli/supervisor.hpp"
#include "cli/text.hpp"
#include "cli/wait_explainer.hpp"

namespace dlock::cli {

namespace {

// What the command is told of what dlock holds. Those of one lock are removed where there are several: they would be of
// another dlock, under which this one runs.
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

// A candidate whose command ends at once, again and again, leaves others this long to lead.
constexpr std::chrono::seconds shortest_term{1};

// From an acquire to the release.
struct Term {
  int status = 0;            // that dlock exits with if it was the last
  bool ran = false;          // the command was started
  bool lost = false;         // and its lock was lost
  bool interrupted = false;  // dlock was sent a signal that is to be the end of it
  TimePoint began = {};
};

class Runner {
 public:
  // With `once`, there is one term.
  Runner(const Arguments& arguments, const Inherited& inherited, std::optional<Guardian>& guardian, bool once)
      : arguments_(arguments),
        inherited_(inherited),
        guardian_(guardian),
        once_(once),
        url_(service_url(arguments.url)),
        reporter_(reporter_for(arguments)),
        client_(connect_for_command(url_, arguments, label_for(arguments.command.front()), reporter_)) {
    warn_if_private(client_, arguments.quiet);
  }

  // Takes what the arguments ask for, runs the command, and frees.
  Term run_term(Account& account);
  // Holds nothing until then, or until a signal comes that ends waits.
  std::optional<int> pause(TimePoint until);

 private:
  std::variant<Held, NotHeld> wait(WaitExplainer& explainer, Account& account);
  // Frees, and says how it went.
  void conclude(Held& held, const Supervisor::Outcome& outcome, TimePoint began, Account& account);
  void release(Held& held, Account& account);
  void lose(const std::string& name, const std::string& what_became_of_the_command, Account& account);

  const Arguments& arguments_;
  const Inherited& inherited_;
  std::optional<Guardian>& guardian_;
  const bool once_;
  SignalQueue signals_;
  const std::string url_;
  const std::shared_ptr<Reporter> reporter_;
  const Client client_;
};

Term Runner::run_term(Account& account) {
  WaitExplainer explainer(client_, *reporter_);  // outlives the hold: its end waits for an answer
  auto acquired = wait(explainer, account);
  if (const NotHeld* obstacle = std::get_if<NotHeld>(&acquired)) {
    account.result = obstacle->why;
    account.status = obstacle->status;
    account.reason = obstacle->reason;
    return {.status = obstacle->status};
  }
  account.held.emplace();
  const Stopwatch holding(*account.held);
  Held held = std::move(std::get<Held>(acquired));
  account.tokens = held.tokens();
  reporter_->expect_renewals(held.valid_until() - holding.began());
  const Command command{.arguments = arguments_.command, .variables = variables(arguments_, held, url_)};
  const auto outcome = Supervisor({.command = command,
                                   .inherited = inherited_,
                                   .signals = signals_,
                                   .held = held,
                                   .kill_after = arguments_.kill_after.value(),
                                   .quiet = arguments_.quiet,
                                   .verbose = arguments_.verbose},
                                  guardian_)
                           .run();
  if (once_) guardian_.reset();
  conclude(held, outcome, holding.began(), account);
  return {.status = account.status,
          .ran = outcome.started,
          .lost = account.status == static_cast<int>(ExitCode::lost) && account.result == Account::Result::lost,
          .interrupted = outcome.interrupted || outcome.status == signalled(SIGHUP),
          .began = holding.began()};
}

std::variant<Held, NotHeld> Runner::wait(WaitExplainer& explainer, Account& account) {
  const Stopwatch waiting(account.waited);
  return acquire(client_, arguments_, inherited_, signals_, *reporter_, explainer);
}

void Runner::conclude(Held& held, const Supervisor::Outcome& outcome, TimePoint began, Account& account) {
  account.result = outcome.started ? Account::Result::ran : Account::Result::failed;
  account.status = outcome.status;
  account.reason = outcome.failure;
  if (outcome.started) account.command_status = outcome.status;
  if (outcome.lost) {
    if (once_) reporter_->fall_silent();
    const std::string name = held.first_to_go();
    const std::string ended =
        outcome.ended_early ? "was ended" : fmt::format("had ended with status {}", outcome.status);
    // Perhaps it was only about to be lost. It is freed before dlock speaks: standard error may be held up.
    { const Held freed = std::move(held); }
    return lose(name, ended, account);
  }
  const TimePoint until = saturating_add(began, arguments_.hold_at_least.value());
  if (outcome.started && keep(held, until, signals_).reason == Kept::lost) {
    account.result = Account::Result::lost;
    account.reason = fmt::format("lost \"{}\"{} after the command had ended, before --hold-at-least was over",
                                 held.first_to_go(), reporter_->loss_reason());
    say("warning: " + account.reason);
    return;
  }
  release(held, account);
}

void Runner::lose(const std::string& name, const std::string& what_became_of_the_command, Account& account) {
  account.result = Account::Result::lost;
  account.status = static_cast<int>(ExitCode::lost);
  account.reason =
      fmt::format("lost \"{}\"{}; the command {}", name, reporter_->loss_reason(), what_became_of_the_command);
  say(account.reason);
}

void Runner::release(Held& held, Account& account) {
  const std::string first = held.first_to_go();
  std::error_code ec;
  const bool ours = held.release(ec);
  if (ec) {
    say(fmt::format("warning: the release of {} was not confirmed ({}); it ends with its lease",
                    quoted(arguments_.names), ec.message()));
  } else if (!ours) {
    lose(first, fmt::format("had ended with status {}", account.status), account);
  }
}

std::optional<int> Runner::pause(TimePoint until) {
  const Held nothing{Lease()};
  for (;;) {
    const Kept kept = keep(nothing, until, signals_);
    if (kept.reason != Kept::signal) return std::nullopt;
    if (!inherited_.ignored(kept.by)) return kept.by;
  }
}

}  // namespace

int run_command(const Arguments& arguments, Inherited& inherited) {
  Bookkeeping books(arguments);
  inherited.take_over_signals();
  std::optional<Guardian> guardian(std::in_place);
  start_messages();
  return books.keep(
      [&](Account& account) { return Runner(arguments, inherited, guardian, true).run_term(account).status; });
}

int elect(const Arguments& arguments, Inherited& inherited) {
  Bookkeeping books(arguments);
  inherited.take_over_signals();
  std::optional<Guardian> guardian(std::in_place);
  start_messages();
  std::optional<Runner> runner;
  for (;;) {
    const Term term = books.keep([&](Account& account) {
      if (!runner) runner.emplace(arguments, inherited, guardian, arguments.once);
      return runner->run_term(account);
    });
    if (arguments.once || !term.ran || term.interrupted) return term.status;
    if (!arguments.quiet) {
      say(term.lost ? std::string("campaigning again")
                    : fmt::format("the command ended with status {}; campaigning again", term.status));
    }
    const std::optional<int> signal = runner->pause(saturating_add(term.began, shortest_term));
    if (signal) return signalled(*signal);
  }
}

}  // namespace dlock::cli
