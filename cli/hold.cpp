#include <optional>
#include <string>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "cli/account.hpp"
#include "cli/acquire.hpp"
#include "cli/bookkeeping.hpp"
#include "cli/commands.hpp"
#include "cli/exit_code.hpp"
#include "cli/held.hpp"
#include "cli/json.hpp"
#include "cli/leash.hpp"
#include "cli/output.hpp"
#include "cli/session.hpp"
#include "cli/text.hpp"

namespace dlock::cli {

namespace {

std::string what_is_held(const Held& held, const Session& session) {
  if (!session.arguments.json) return fmt::format("{}\n", fmt::join(held.tokens(), "\n"));
  Json json = names_and_tokens(session.arguments.names, held.tokens());
  json["kind"] = kind_word(session.arguments.kind);
  json["holder"] = session.client.holder();
  json["url"] = session.client.url();
  return json_line(json);
}

Kept::Reason keep_until_the_end(const Held& held, Session& session, const Leash& leash) {
  const Printing tokens(what_is_held(held, session));
  const Kept kept = keep(held, TimePoint::max(), session.signals, tokens.done_fd(), leash.ended_fd());
  if (kept.reason != Kept::other) return kept.reason;
  tokens.check();
  return keep(held, TimePoint::max(), session.signals, -1, leash.ended_fd()).reason;
}

// Whether it had still been held. Throws Error.
bool release(Held& held, const Session& session) {
  std::error_code ec;
  const bool ours = held.release(ec);
  if (ec) {
    throw Error(Failure{ec, fmt::format("the release of {} was not confirmed", quoted(session.arguments.names))});
  }
  return ours;
}

void take_and_keep(Session& session, const Leash& leash, Account& account) {
  std::optional<Held> held = acquire(session, account, leash.ended_fd());
  if (!held) return;
  const Kept::Reason end = keep_until_the_end(*held, session, leash);
  const std::string first = held->first_to_go();
  if (end != Kept::lost && release(*held, session)) {
    return account.conclude(Account::Result::ran, static_cast<int>(ExitCode::ok));
  }
  session.reporter->fall_silent();
  account.conclude(Account::Result::lost, static_cast<int>(ExitCode::lost), session.reporter->loss_of(first));
  say(account.reason);
}

}  // namespace

int hold(const Arguments& arguments, Inherited& inherited) {
  Bookkeeping books(arguments);
  inherited.take_over_signals();
  start_messages();
  const Leash leash({.with_input = arguments.until_eof, .with_process = arguments.parent});
  const auto hold_it = [&](Account& account) {
    Session session(arguments, inherited, "dlock");
    take_and_keep(session, leash, account);
  };
  return books.keep(hold_it).status;
}

}  // namespace dlock::cli
