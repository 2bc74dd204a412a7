#include "backends/postgres/session_locks/for_update_contention.hpp"

#include <algorithm>
#include <utility>

#include <dlock/duration.hpp>

#include "backends/postgres/session_locks/for_update.hpp"
#include "backends/postgres/sql/sqlstate.hpp"
#include "util/names.hpp"

namespace dlock::postgres {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

namespace {

constexpr seconds longest_backoff(1);
// Another client inserts the same row just now. Mostly that takes a moment; but it may be a transaction of a program's
// own that takes the lock for the first time, and keeps it.
constexpr milliseconds insertion_patience(200);
constexpr int most_insertions = 3;
// How much of the lease may be gone when the lock is reported.
constexpr int freshness = 4;

}  // namespace

RowContention::RowContention(ForUpdateLocks& locks, const LockRequest& request, GrantSink& sink)
    : locks_(locks),
      request_(request),
      sink_(sink),
      patience_(locks.executor(), locks.services().dialling.response_timeout),
      backoff_(longest_backoff),
      timer_(locks.executor()) {}

RowContention::~RowContention() {
  if (stage_ != Stage::over) withdraw();
}

void RowContention::withdraw() {
  leave(Stage::over);
  ++round_;  // nor is an answer about the schema wanted
  locks_.transactions().leave(*this);
  locks_.turns().leave(*this);
  if (!member_) return;
  const bool unsent = query_ != 0 && member_->session().withdraw(query_);
  const bool queued = query_ != 0 && blocked_;
  // Only the end of the connection gets it out of the server's queue. The rest is rolled back behind the query.
  let_go(!unsent && !queued);
}

// --- The connection --------------------------------------------------------------------------------------------------

void RowContention::seek() {
  leave(Stage::seeking);
  member_ = locks_.transactions().take(*this, request_.wait);
  if (!member_) return apply_for_connection();
  if (!member_->session().ready() || serves(member_->session().server())) ask();
}

// Where all of them hold locks, it is unknown when one comes free, and a try does not wait for that.
void RowContention::apply_for_connection() {
  const Failure why = locks_.transactions().exhausted();
  if (!request_.wait && locks_.all_hold()) return fail(why);
  locks_.transactions().wait_for_one(*this);
  locks_.connection_wanted();
  if (!request_.wait) {
    return patience_.note(why, [this](const Failure& last) {
      withdraw();
      sink_.failed(last);
    });
  }
  // What is known of the lock goes before what is known of connections.
  if (!contended_) sink_.unreachable(why);
}

void RowContention::connection_free() {
  seek();
}

void RowContention::session_answered() {
  locks_.transactions().connected();
}

void RowContention::session_ready() {
  (void)serves(member_->session().server());
}

bool RowContention::serves(const ServerInfo& server) {
  const std::string endpoint = server.endpoint;  // it belongs to the connection
  if (server.pooled) {
    let_go(false);
    fail({errc::unsupported, endpoint +
                                 ": there is a pooler in front of the server, and strategy=for-update needs sessions "
                                 "of its own; connect to the server itself, use strategy=table, or set pooler=session "
                                 "if the pooler keeps a session for each client"});
    return false;
  }
  if (server.standby) {
    const Failure why{errc::unavailable, endpoint + ": it is a standby; locks need the primary"};
    let_go(false);
    if (request_.wait) {
      again_later(why, Tell::yes);
    } else {
      fail(why);
    }
    return false;
  }
  return true;
}

void RowContention::let_go(bool usable) {
  ++round_;
  query_ = 0;
  if (!member_) return;
  if (usable) {
    locks_.transactions().roll_back(std::move(member_));
  } else {
    locks_.transactions().close(std::move(member_));
  }
  open_ = false;
}

void RowContention::leave(Stage stage) {
  stage_ = stage;
  timer_.disarm();
  if (stage == Stage::over) patience_.over();
}

// --- Questions -------------------------------------------------------------------------------------------------------

void RowContention::send(std::vector<Command> commands, bool blocks, Answer answer) {
  Session& session = member_->session();
  const Dialling& dialling = locks_.services().dialling;
  nanoseconds patience = dialling.response_timeout;
  if (!session.ready()) patience += dialling.connect_timeout;
  if (blocks) patience += slice_;
  const TimePoint deadline = saturating_add(locks_.executor().now(), patience);
  auto done = lifetime_.guard([this, answer, round = round_](const Outcome& outcome, const Results& results) {
    if (round != round_) return;
    query_ = 0;
    (this->*answer)(outcome, results);
  });
  leave(Stage::asking);
  blocked_ = blocks;
  query_ = session.request({.query = {.commands = std::move(commands), .done = std::move(done)},
                            .deadline = request_.wait ? deadline : std::min(deadline, patience_.until()),
                            .blocks = blocks});
}

std::vector<Command> RowContention::anew(std::vector<Command> commands) {
  if (open_) commands.insert(commands.begin(), Command{.statement = &locks_.statements().rollback});
  return commands;
}

Command RowContention::set_patience(nanoseconds patience) const {
  const auto ms = std::chrono::ceil<milliseconds>(patience).count();
  return {.statement = &locks_.statements().set_patience, .params = {std::to_string(ms)}};
}

void RowContention::ask() {
  const ForUpdateStatements& use = locks_.statements();
  const auto asking = [&](const Statement& lock) {
    return Command{.statement = &lock, .params = {request_.name, request_.holder}};
  };
  std::vector<Command> commands;
  if (inside_) {
    slice_ = locks_.turns().slice(*this);
    commands = anew({{.statement = &use.begin}, set_patience(slice_), asking(use.lock), {.statement = &use.heartbeat}});
  } else {
    commands = anew({{.statement = &use.begin}, asking(use.try_lock), {.statement = &use.heartbeat}});
  }
  open_ = true;
  send(std::move(commands), inside_, &RowContention::answered);
  if (inside_) locks_.connection_wanted();
}

// There is no row to lock, or none that can be seen. To be committed before it is locked, so that others see it.
void RowContention::insert_row() {
  if (++insertions_ > most_insertions) {
    return fail({errc::protocol, "another client keeps removing the row of lock " + util::quoted(request_.name)});
  }
  slice_ = inside_ ? locks_.turns().slice(*this) : nanoseconds(insertion_patience);
  auto commands = anew({set_patience(slice_), {.statement = &locks_.statements().ensure, .params = {request_.name}}});
  open_ = false;
  send(std::move(commands), true, &RowContention::inserted);
}

void RowContention::inserted(const Outcome& outcome, const Results& /*results*/) {
  if (outcome.problem != Problem::none) return problem(outcome);
  ask();
}

void RowContention::answered(const Outcome& outcome, const Results& results) {
  if (outcome.problem != Problem::none) return problem(outcome);
  const Rows& rows = results.at(results.size() - 2);  // the heartbeat is the last
  if (rows.empty()) return insert_row();
  const auto token = rows.number(0, 0);
  if (!token || *token <= 0) {
    return fail({errc::protocol, "the token of lock " + util::quoted(request_.name) + " is not a positive number"});
  }
  token_ = FencingToken(static_cast<std::uint64_t>(*token));
  // After a long wait, the query was sent long ago, and the lease would count from then.
  if (locks_.executor().now() >= saturating_add(outcome.sent, locks_.services().options.lease / freshness)) {
    return confirm();
  }
  grant(outcome.sent);
}

void RowContention::confirm() {
  send({{.statement = &locks_.statements().heartbeat}}, false, &RowContention::confirmed);
}

void RowContention::confirmed(const Outcome& outcome, const Results& /*results*/) {
  if (outcome.problem != Problem::none) return problem(outcome);
  grant(outcome.sent);
}

// --- Answers ---------------------------------------------------------------------------------------------------------

void RowContention::grant(TimePoint sent) {
  const nanoseconds lease = locks_.services().options.lease;
  const Grant grant{.name = request_.name,
                    .owner = request_.owner,
                    .token = token_,
                    .valid_until = lease_valid_until(sent, lease),
                    .lease = lease};
  leave(Stage::over);
  locks_.turns().leave(*this);
  locks_.hold(grant, std::move(member_));
  sink_.granted(grant);
}

void RowContention::busy(const Outcome& outcome) {
  const bool first = !std::exchange(contended_, true);
  insertions_ = 0;
  if (!request_.wait) {
    leave(Stage::over);
    let_go(true);
    return sink_.busy();
  }
  if (inside_) {
    sink_.busy();
    return slice_over(outcome);
  }
  const Turns::Place place = locks_.turns().enter(request_.name, *this);
  inside_ = place == Turns::Place::inside;
  sink_.busy();
  if (first && place == Turns::Place::no_room) {
    // For the observer. The last report, when the wait ends, is what is known of the lock.
    sink_.unreachable(locks_.transactions().exhausted());
    sink_.busy();
  }
  backoff_.reset();
  if (inside_) return ask();
  go_outside();
}

void RowContention::slice_over(const Outcome& outcome) {
  // A server that says so without having waited would be asked again and again.
  if (blocked_ && locks_.executor().now() < saturating_add(outcome.sent, slice_ / 2)) {
    return again_later(outcome.failure, Tell::no);
  }
  backoff_.reset();
  // Where it has not waited yet, its turn came while it tried.
  if (!blocked_ || locks_.turns().stays(*this)) return ask();
  inside_ = false;
  go_outside();
}

void RowContention::go_outside() {
  leave(Stage::outside);
  let_go(true);
}

void RowContention::turn_came() {
  inside_ = true;
  if (stage_ == Stage::outside) seek();
}

void RowContention::worth_a_try() {
  if (stage_ == Stage::outside) seek();
}

void RowContention::give_way() {
  inside_ = false;
  leave(Stage::outside);
  let_go(false);
}

void RowContention::problem(const Outcome& outcome) {
  const Meaning meaning = meaning_of(outcome);
  const Failure why = failure_of(outcome, locks_.services().options.schema);
  const bool refused = outcome.problem == Problem::refused;
  if (meaning.remedy == Remedy::busy || (blocked_ && is_end_of_patience(outcome))) return busy(outcome);
  if (!refused) locks_.transactions().broken(why);
  // Without an answer it may still be granted the lock, for as long as there is the connection.
  let_go(refused && meaning.remedy != Remedy::reconnect);
  switch (meaning.remedy) {
    case Remedy::busy:
      return;
    case Remedy::retry:
      return again_later(why, Tell::no);
    case Remedy::retry_later:
      return request_.wait ? again_later(why, Tell::yes) : fail(why);
    case Remedy::reconnect:
      return request_.wait || refused ? again_later(why, Tell::yes) : fail(why);
    case Remedy::set_up:
      return set_up(why);
    case Remedy::final:
      return fail(why);
  }
}

void RowContention::set_up(const Failure& why) {
  if (std::exchange(set_up_, true)) return fail(why);
  leave(Stage::seeking);
  const nanoseconds patience = locks_.services().dialling.connect_timeout + locks_.services().dialling.response_timeout;
  const TimePoint deadline = saturating_add(locks_.executor().now(), patience);
  locks_.services().schema.set_up(request_.wait ? deadline : std::min(deadline, patience_.until()),
                                  lifetime_.guard([this, round = round_](const std::optional<Failure>& why_not) {
                                    if (round != round_) return;
                                    if (!why_not) return seek();
                                    const bool may_pass =
                                        why_not->code == errc::unavailable || why_not->code == errc::ambiguous;
                                    if (!may_pass || !request_.wait) return fail(*why_not);
                                    set_up_ = false;
                                    again_later(*why_not, Tell::yes);
                                  }));
}

void RowContention::again_later(const Failure& why, Tell tell) {
  let_go(true);
  const TimePoint at = saturating_add(locks_.executor().now(), backoff_.next(locks_.executor()));
  if (!request_.wait && at >= patience_.until()) return fail(why);
  leave(Stage::pausing);
  timer_.arm(at, [this] { seek(); });
  if (!request_.wait) {
    return patience_.note(why, [this](const Failure& last) {
      withdraw();
      sink_.failed(last);
    });
  }
  if (tell == Tell::yes) sink_.unreachable(why);
}

void RowContention::fail(Failure why) {
  leave(Stage::over);
  locks_.turns().leave(*this);
  let_go(true);
  sink_.failed(std::move(why));
}

}  // namespace dlock::postgres
