#include "cli/run.hpp"

#include <poll.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <dlock/url.hpp>

#include "cli/acquire.hpp"
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
          {"DLOCK_KIND", std::string(kind_word(arguments.space))},
          {"DLOCK_URL", Url::parse(url).without_secrets()}};
}

// Frees the lock and says how it went; the exit status for the whole run.
int conclude(Held& held, const Arguments& arguments, int command_status, const Reporter& reporter) {
  const std::string first = held.first_to_go();
  std::error_code ec;
  const bool ours = held.release(ec);
  if (ec) {
    say(fmt::format("warning: the release of {} was not confirmed ({}); it ends with its lease",
                    quoted(arguments.names), ec.message()));
    return command_status;
  }
  if (ours) return command_status;
  say(fmt::format("lost \"{}\"{}; the command had ended with status {}", first, reporter.loss_reason(),
                  command_status));
  return static_cast<int>(ExitCode::lost);
}

}  // namespace

int run_command(const Arguments& arguments, Inherited& inherited) {
  inherited.take_over_signals();
  std::optional<Guardian> guardian(std::in_place);
  start_messages();
  SignalQueue signals;
  const std::string url = service_url(arguments.url);
  const auto reporter = std::make_shared<Reporter>(arguments.quiet, arguments.wait == Duration());
  const Client client = connect_for_command(url, arguments, label_for(arguments.command.front()), reporter);
  warn_if_private(client, arguments.quiet);

  WaitExplainer explainer(client, *reporter);
  auto acquired = acquire(client, arguments, inherited, signals, *reporter, explainer);
  if (const int* status = std::get_if<int>(&acquired)) return *status;
  Held held = std::move(std::get<Held>(acquired));
  const TimePoint hold_until = saturating_add(LeaseClock::now(), arguments.hold_at_least.value());

  const Command command{.arguments = arguments.command, .variables = variables(arguments, held, url)};
  const auto outcome = Supervisor({.command = command,
                                   .inherited = inherited,
                                   .signals = signals,
                                   .held = held,
                                   .kill_after = arguments.kill_after.value(),
                                   .quiet = arguments.quiet},
                                  guardian)
                           .run();
  guardian.reset();
  if (outcome.lost) {
    reporter->fall_silent();
    const std::string text =
        fmt::format("lost \"{}\"{}; the command {}", held.first_to_go(), reporter->loss_reason(),
                    outcome.ended_early ? "was ended" : fmt::format("had ended with status {}", outcome.status));
    // Perhaps it was only about to be lost. It is freed before dlock speaks: standard error may be held up.
    { const Held ended = std::move(held); }
    say(text);
    return static_cast<int>(ExitCode::lost);
  }
  if (outcome.started && keep(held, hold_until, signals).reason == Kept::lost) {
    say(fmt::format("warning: lost \"{}\"{} after the command had ended, before --hold-at-least was over",
                    held.first_to_go(), reporter->loss_reason()));
    return outcome.status;
  }
  return conclude(held, arguments, outcome.status, *reporter);
}

}  // namespace dlock::cli
