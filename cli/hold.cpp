#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <variant>

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
  Json json = names_and_tokens(arguments.names, held.tokens());
  json["kind"] = kind_word(arguments.kind);
  json["holder"] = client.holder();
  json["url"] = client.url();
  return json;
}

class Holder {
 public:
  Holder(const Arguments& arguments, const Inherited& inherited, SignalQueue& signals, const Leash& leash)
      : arguments_(arguments),
        inherited_(inherited),
        signals_(signals),
        leash_(leash),
        reporter_(reporter_for(arguments)),
        client_(connect_for_command(service_url(arguments.url), arguments, "dlock", reporter_)) {
    warn_if_private(client_, arguments.quiet);
  }

  int hold(Account& account) {
    WaitExplainer explainer(client_, *reporter_);  // outlives the hold: its end waits for an answer
    auto acquired = wait(explainer, account);
    if (const NotHeld* obstacle = std::get_if<NotHeld>(&acquired)) {
      account.result = obstacle->why;
      account.reason = obstacle->reason;
      return account.status = obstacle->status;
    }
    account.held.emplace();
    const Stopwatch holding(*account.held);
    Held held = std::move(std::get<Held>(acquired));
    account.tokens = held.tokens();
    reporter_->expect_renewals(held.valid_until() - holding.began());
    account.result = Account::Result::ran;
    account.status = static_cast<int>(ExitCode::ok);
    const Kept::Reason end = keep_until_the_end(held);
    const std::string first = held.first_to_go();
    if (end == Kept::lost || !release(held)) {
      reporter_->fall_silent();
      account.result = Account::Result::lost;
      account.status = static_cast<int>(ExitCode::lost);
      account.reason = fmt::format("lost \"{}\"{}", first, reporter_->loss_reason());
      say(account.reason);
    }
    return account.status;
  }

 private:
  std::variant<Held, NotHeld> wait(WaitExplainer& explainer, Account& account) {
    const Stopwatch waiting(account.waited);
    return acquire(client_, arguments_, inherited_, signals_, *reporter_, explainer, leash_.ended_fd());
  }

  Kept::Reason keep_until_the_end(const Held& held) {
    const Printing tokens(arguments_.json ? json_line(to_json(held, arguments_, client_))
                                          : fmt::format("{}\n", fmt::join(held.tokens(), "\n")));
    const Kept kept = keep(held, TimePoint::max(), signals_, tokens.done_fd(), leash_.ended_fd());
    if (kept.reason != Kept::other) return kept.reason;
    tokens.check();
    return keep(held, TimePoint::max(), signals_, -1, leash_.ended_fd()).reason;
  }

  // Whether it had still been held. Throws Error.
  bool release(Held& held) {
    std::error_code ec;
    const bool ours = held.release(ec);
    if (ec) throw Error(Failure{ec, fmt::format("the release of {} was not confirmed", quoted(arguments_.names))});
    return ours;
  }

  const Arguments& arguments_;
  const Inherited& inherited_;
  SignalQueue& signals_;
  const Leash& leash_;
  const std::shared_ptr<Reporter> reporter_;
  const Client client_;
};

}  // namespace

int hold(const Arguments& arguments, Inherited& inherited) {
  Bookkeeping books(arguments);
  inherited.take_over_signals();
  start_messages();
  SignalQueue signals;
  const Leash leash({.with_input = arguments.until_eof, .with_process = arguments.parent});
  return books.keep([&](Account& account) { return Holder(arguments, inherited, signals, leash).hold(account); });
}

}  // namespace dlock::cli
