#include "cli/run.hpp"

#include <poll.h>

#include <array>
#include <cerrno>
#include <functional>
#include <stop_token>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <dlock/url.hpp>

#include "cli/acquire.hpp"
#include "cli/exit_code.hpp"
#include "cli/guardian.hpp"
#include "cli/keep.hpp"
#include "cli/location.hpp"
#include "cli/output.hpp"
#include "cli/reporter.hpp"
#include "cli/session.hpp"
#include "cli/supervisor.hpp"
#include "cli/wait_explainer.hpp"

namespace dlock::cli {

namespace {

// Frees the lock and says how it went; the exit status for the whole run.
int conclude(Lease& lease, int command_status, const Reporter& reporter) {
  std::error_code ec;
  const bool ours = lease.release(ec);
  if (ec) {
    say(fmt::format("warning: the release of \"{}\" was not confirmed ({}); it ends with its lease", lease.name(),
                    ec.message()));
    return command_status;
  }
  if (ours) return command_status;
  say(fmt::format("lost \"{}\"{}; the command had ended with status {}", lease.name(), reporter.loss_reason(),
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
  const Client client = connect_for_one_lock(url, arguments, label_for(arguments.command.front()), reporter);
  warn_if_private(client, arguments.quiet);

  WaitExplainer explainer(client, *reporter);
  auto acquired = acquire(client, arguments, inherited, signals, *reporter, explainer);
  if (const int* status = std::get_if<int>(&acquired)) return *status;
  Lease lease = std::move(std::get<Lease>(acquired));
  const TimePoint hold_until = saturating_add(LeaseClock::now(), arguments.hold_at_least.value());

  const Command command{.arguments = arguments.command,
                        .variables = {{"DLOCK_NAME", arguments.name},
                                      {"DLOCK_TOKEN", std::to_string(lease.token().value())},
                                      {"DLOCK_URL", Url::parse(url).without_secrets()}}};
  const auto outcome = Supervisor({.command = command,
                                   .inherited = inherited,
                                   .signals = signals,
                                   .lease = lease,
                                   .kill_after = arguments.kill_after.value(),
                                   .quiet = arguments.quiet},
                                  guardian)
                           .run();
  guardian.reset();
  if (outcome.lost) {
    reporter->fall_silent();
    const std::string text =
        fmt::format("lost \"{}\"{}; the command {}", arguments.name, reporter->loss_reason(),
                    outcome.ended_early ? "was ended" : fmt::format("had ended with status {}", outcome.status));
    // Perhaps it was only about to be lost. It is freed before dlock speaks: standard error may be held up.
    { const Lease ended = std::move(lease); }
    say(text);
    return static_cast<int>(ExitCode::lost);
  }
  if (outcome.started && keep(lease, hold_until, signals).reason == Kept::lost) {
    say(fmt::format("warning: lost \"{}\"{} after the command had ended, before --hold-at-least was over",
                    arguments.name, reporter->loss_reason()));
    return outcome.status;
  }
  return conclude(lease, outcome.status, *reporter);
}

}  // namespace dlock::cli
