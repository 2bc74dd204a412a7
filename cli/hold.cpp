#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/acquire.hpp"
#include "cli/commands.hpp"
#include "cli/exit_code.hpp"
#include "cli/json.hpp"
#include "cli/keep.hpp"
#include "cli/location.hpp"
#include "cli/output.hpp"
#include "cli/reporter.hpp"
#include "cli/session.hpp"
#include "cli/wait_explainer.hpp"

namespace dlock::cli {

int hold(const Arguments& arguments, Inherited& inherited) {
  inherited.take_over_signals();
  start_messages();
  SignalQueue signals;
  const auto reporter = std::make_shared<Reporter>(arguments.quiet, arguments.wait == Duration());
  const Client client = connect_for_one_lock(service_url(arguments.url), arguments, "dlock", reporter);
  warn_if_private(client, arguments.quiet);
  WaitExplainer explainer(client, *reporter);
  auto acquired = acquire(client, arguments, inherited, signals, *reporter, explainer);
  if (const int* status = std::get_if<int>(&acquired)) return *status;
  Lease lease = std::move(std::get<Lease>(acquired));
  const Printing token(arguments.json ? json_line({{"name", arguments.name},
                                                   {"token", lease.token().value()},
                                                   {"holder", client.holder()},
                                                   {"url", client.url()}})
                                      : fmt::format("{}\n", lease.token().value()));
  Kept kept = keep(lease, TimePoint::max(), signals, token.done_fd());
  if (kept.reason == Kept::other) {
    token.check();
    kept = keep(lease, TimePoint::max(), signals);
  }
  if (kept.reason != Kept::lost) {
    std::error_code ec;
    if (lease.release(ec)) return static_cast<int>(ExitCode::ok);
    if (ec) throw Error(Failure{ec, fmt::format("the release of \"{}\" was not confirmed", arguments.name)});
  }
  reporter->fall_silent();
  say(fmt::format("lost \"{}\"{}", arguments.name, reporter->loss_reason()));
  return static_cast<int>(ExitCode::lost);
}

}  // namespace dlock::cli
