#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "cli/acquire.hpp"
#include "cli/commands.hpp"
#include "cli/exit_code.hpp"
#include "cli/held.hpp"
#include "cli/json.hpp"
#include "cli/keep.hpp"
#include "cli/leash.hpp"
#include "cli/location.hpp"
#include "cli/output.hpp"
#include "cli/reporter.hpp"
#include "cli/session.hpp"
#include "cli/text.hpp"
#include "cli/wait_explainer.hpp"

namespace dlock::cli {

namespace {

Json to_json(const Held& held, const Arguments& arguments, const Client& client) {
  const std::vector<std::uint64_t> tokens = held.tokens();
  Json json;
  if (arguments.names.size() == 1) {
    json = {{"name", arguments.name()}, {"token", tokens.front()}};
  } else {
    json = {{"names", arguments.names}, {"tokens", tokens}};
  }
  json["kind"] = kind_word(arguments.space);
  json["holder"] = client.holder();
  json["url"] = client.url();
  return json;
}

}  // namespace

int hold(const Arguments& arguments, Inherited& inherited) {
  inherited.take_over_signals();
  start_messages();
  SignalQueue signals;
  const Leash leash({.with_input = arguments.until_eof, .with_process = arguments.parent});
  const auto reporter = std::make_shared<Reporter>(arguments.quiet, arguments.wait == Duration());
  const Client client = connect_for_command(service_url(arguments.url), arguments, "dlock", reporter);
  warn_if_private(client, arguments.quiet);
  WaitExplainer explainer(client, *reporter);
  auto acquired = acquire(client, arguments, inherited, signals, *reporter, explainer, leash.ended_fd());
  if (const int* status = std::get_if<int>(&acquired)) return *status;
  Held held = std::move(std::get<Held>(acquired));
  const Printing tokens(arguments.json ? json_line(to_json(held, arguments, client))
                                       : fmt::format("{}\n", fmt::join(held.tokens(), "\n")));
  Kept kept = keep(held, TimePoint::max(), signals, tokens.done_fd(), leash.ended_fd());
  if (kept.reason == Kept::other) {
    tokens.check();
    kept = keep(held, TimePoint::max(), signals, -1, leash.ended_fd());
  }
  const std::string first = held.first_to_go();
  if (kept.reason != Kept::lost) {
    std::error_code ec;
    if (held.release(ec)) return static_cast<int>(ExitCode::ok);
    if (ec) throw Error(Failure{ec, fmt::format("the release of {} was not confirmed", quoted(arguments.names))});
  }
  reporter->fall_silent();
  say(fmt::format("lost \"{}\"{}", first, reporter->loss_reason()));
  return static_cast<int>(ExitCode::lost);
}

}  // namespace dlock::cli
