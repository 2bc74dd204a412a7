#include "backends/postgres/administration/inspection.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include <dlock/spi/backoff.hpp>

#include "backends/postgres/schema/layout.hpp"
#include "backends/postgres/sql/identifier.hpp"
#include "backends/postgres/sql/lock_key.hpp"
#include "backends/postgres/sql/sqlstate.hpp"

namespace dlock::postgres {

namespace {

constexpr std::size_t most_names = 100'000;

// In one statement, so that no row is locked for long. Advisory locks are kept in the shared memory of
// the server, which has little of it.
constexpr int most_forgotten = 1000;
constexpr int most_advisory_forgotten = 100;

bool by_session(Strategy strategy) {
  return strategy == Strategy::for_update || strategy == Strategy::advisory;
}

// No lock was ever taken here.
bool never_set_up(const Outcome& outcome) {
  return outcome.problem == Problem::refused && (outcome.sqlstate == "42P01" || outcome.sqlstate == "3F000");
}

LockInfo read_info(LockKind kind, const Rows& rows, std::size_t row) {
  LockInfo info{.name = rows.text(row, 0), .held = rows.flag(row, 1), .kind = kind};
  set_holder(info, rows.text(row, 2));
  info.token = FencingToken(static_cast<std::uint64_t>(rows.number(row, 3).value_or(0)));
  if (const auto ms = rows.number(row, 4)) info.remaining = std::chrono::milliseconds(*ms);
  if (const auto waiters = rows.number(row, 5)) info.waiters = static_cast<std::uint64_t>(*waiters);
  return info;
}

// One for each name. Where several may hold a lock, its rows are those of its holders, with
//   permits in all, how many this one has, its token
std::vector<LockInfo> read_infos(LockKind kind, const Rows& rows) {
  std::vector<LockInfo> infos;
  infos.reserve(rows.size());
  for (std::size_t row = 0; row < rows.size(); ++row) {
    LockInfo info = read_info(kind, rows, row);
    const auto permits = rows.number(row, 6);
    if (info.held && permits) {
      const std::int64_t weight = rows.number(row, 7).value_or(0);
      const bool shared = kind == LockKind::read_write && weight != *permits;
      const auto token = static_cast<std::uint64_t>(rows.number(row, 8).value_or(0));
      info.holders.push_back(
          {info.holder, shared ? Mode::shared : Mode::exclusive, FencingToken(token), info.remaining});
      if (kind == LockKind::semaphore) info.permits = static_cast<std::uint32_t>(*permits);
    }
    if (infos.empty() || infos.back().name != info.name || info.holders.empty()) {
      infos.push_back(std::move(info));
      continue;
    }
    LockInfo& lock = infos.back();
    lock.holders.push_back(std::move(info.holders.front()));
    if (info.remaining <= lock.remaining) continue;
    lock.holder = info.holder;
    lock.remaining = info.remaining;
  }
  return infos;
}

// To ask for the session of an advisory lock takes no right to a table; that of a row's lock may lack both.
Failure may_not_end_session(const Outcome& outcome, const Options& options) {
  std::string detail = outcome.failure.detail;
  const Outcome nothing_said{.problem = outcome.problem, .sqlstate = outcome.sqlstate};
  const std::string advice = failure_of(nothing_said, options.schema).detail;
  if (options.strategy == Strategy::advisory && detail.ends_with(advice)) detail.resize(detail.size() - advice.size());
  return {errc::access_denied, detail +
                                   "; this lock belongs to its holder's session; to end that session, be a member of "
                                   "the holder's role, or GRANT pg_signal_backend TO <role>"};
}

Failure has_no_session(const std::string& prepared) {
  return {errc::unsupported,
          "this lock is held by a prepared transaction, which belongs to no session; run in its database: ROLLBACK "
          "PREPARED " +
              prepared};
}

// The message already says what locks need.
Failure may_not_delete(const Outcome& outcome, const Options& options) {
  return {errc::access_denied, outcome.failure.detail + "; and to forget names: " + grant_to_forget(options.schema)};
}

}  // namespace

struct Inspection::Breaking {
  Breaking(Executor& executor, LockKind of, std::string lock, Backend::Handler<bool> then, TimePoint at_the_latest)
      : kind(of), name(std::move(lock)), done(std::move(then)), deadline(at_the_latest), pause(executor) {}

  const LockKind kind;
  const std::string name;
  Backend::Handler<bool> done;
  const TimePoint deadline;
  bool quiet = false;               // wakes no waiter
  std::vector<std::int64_t> ended;  // sessions that were told to end
  Backoff backoff{std::chrono::milliseconds(200)};
  Timer pause;
};

Inspection::Inspection(Commands& commands) : commands_(commands) {}

Inspection::~Inspection() = default;

Inspection::Questions Inspection::questions_for(LockKind kind, KeySpace space) const {
  const auto& [schema, durability] = std::tie(commands_.options().schema, commands_.options().durability);
  const Strategy strategy = commands_.options().strategy;
  const auto of = [](auto statements) {
    return Questions{std::move(statements.inspect),
                     std::move(statements.list),
                     std::move(statements.break_lock),
                     std::move(statements.forget),
                     {}};
  };
  switch (strategy) {
    case Strategy::table:
    case Strategy::optimistic:
      return of(row_statements(strategy, schema, durability, kind));
    case Strategy::for_update:
      return of(for_update_statements(schema, durability));
    case Strategy::advisory:
      break;
  }
  const AdvisoryStatements statements = advisory_statements(schema, durability, space, kind);
  Questions questions = of(statements);
  questions.inspect_without_tables = statements.inspect_without_tables;
  return questions;
}

const Inspection::Questions& Inspection::questions_about(LockKind kind, const std::string& name) {
  const Options& options = commands_.options();
  const bool by_key = options.strategy == Strategy::advisory && !name.empty();
  const KeySpace space = by_key ? lock_key(options, name, kind).space : KeySpace::bigint;
  const auto found = questions_.find({kind, space});
  if (found != questions_.end()) return found->second;
  return questions_.emplace(std::pair(kind, space), questions_for(kind, space)).first->second;
}

// --- Looking ---------------------------------------------------------------------------------------------------------

void Inspection::inspect(LockKind kind, const std::string& name, Backend::Handler<LockInfo> done) {
  look(kind, name, true, std::move(done));
}

void Inspection::look(LockKind kind, const std::string& name, bool tables, Backend::Handler<LockInfo> done) {
  const Options& options = commands_.options();
  const bool advisory = options.strategy == Strategy::advisory;
  std::vector<Parameter> params = {name};
  if (advisory) params = {lock_key(options, name, kind).parameter, token_row(options, name)};
  const Questions& questions = questions_about(kind, name);
  ask(tables ? questions.inspect : questions.inspect_without_tables, std::move(params),
      [this, kind, name, advisory, tables, done = std::move(done)](const Outcome& outcome, const Results& results) {
        if (never_set_up(outcome) && advisory && tables) return look(kind, name, false, done);
        if (never_set_up(outcome)) return done(LockInfo{.name = name, .kind = kind});
        if (outcome.problem != Problem::none) return done(unanswered_question(outcome.failure));
        auto infos = read_infos(kind, results[0]);
        LockInfo info = infos.empty() ? LockInfo{.name = name, .kind = kind} : std::move(infos.front());
        info.name = name;
        if (info.waiters && waiting_) *info.waiters += waiting_(kind, name);
        done(std::move(info));
      });
}

void Inspection::list(LockKind kind, Backend::Handler<std::vector<LockInfo>> done) {
  ask(questions_about(kind).list, {std::to_string(most_names + 1)},
      [kind, done = std::move(done)](const Outcome& outcome, const Results& results) {
        if (never_set_up(outcome)) return done(std::vector<LockInfo>());
        if (outcome.problem != Problem::none) return done(unanswered_question(outcome.failure));
        if (results[0].size() <= most_names) return done(read_infos(kind, results[0]));
        done(Failure{errc::unavailable, "more than " + std::to_string(most_names) + " locks; too many to list"});
      });
}

void Inspection::ask(const Statement& question, std::vector<Parameter> params, Handler done) {
  commands_.run({.commands = {{.statement = &question, .params = std::move(params)}}, .done = std::move(done)},
                commands_.answer_by(), MissingSchema::refuse);
}

// --- Breaking --------------------------------------------------------------------------------------------------------

void Inspection::break_lock(LockKind kind, const std::string& name, Backend::Handler<bool> done) {
  try_to_break(
      breaking_.emplace(breaking_.end(), commands_.executor(), kind, name, std::move(done), commands_.answer_by()));
}

void Inspection::try_to_break(std::list<Breaking>::iterator breaking) {
  const Options& options = commands_.options();
  const auto& [kind, name] = std::tie(breaking->kind, breaking->name);
  const bool advisory = options.strategy == Strategy::advisory;
  Command command{.statement = &questions_about(kind, name).break_lock,
                  .params = {advisory ? lock_key(options, name, kind).parameter : name}};
  if (by_session(options.strategy)) {
    command.params.emplace_back(bigint_array(breaking->ended));
  } else {
    command.params.emplace_back(breaking->quiet ? "" : channel_of(options.schema, kind));
  }
  Query query{.commands = {std::move(command)},
              .done = [this, breaking](const Outcome& outcome, const Results& results) {
                if (const auto result = broken(*breaking, outcome, results)) return finish(breaking, *result);
                try_later(breaking);
              }};
  commands_.run(std::move(query), breaking->deadline, MissingSchema::refuse);
}

void Inspection::try_later(std::list<Breaking>::iterator breaking) {
  Executor& executor = commands_.executor();
  const TimePoint at = saturating_add(executor.now(), breaking->backoff.next(executor));
  // An attempt that is cut off leaves in doubt what became of it: the last has a quarter of the time for its answer.
  if (at < breaking->deadline - commands_.options().response_timeout / 4) {
    return breaking->pause.arm(at, [this, breaking] { try_to_break(breaking); });
  }
  finish(breaking,
         Failure{errc::unavailable, breaking->ended.empty()
                                        ? "another transaction keeps the row of this lock locked"
                                        : "dlock told the holder's session to end, but it still holds the lock"});
}

void Inspection::finish(std::list<Breaking>::iterator breaking, const Result<bool>& result) {
  const auto done = std::move(breaking->done);
  (void)breaking_.erase(breaking);
  done(result);
}

// nullopt: not yet.
std::optional<Result<bool>> Inspection::broken(Breaking& breaking, const Outcome& outcome, const Results& results) {
  const Options& options = commands_.options();
  const bool session = by_session(options.strategy);
  if (never_set_up(outcome)) return false;
  if (is_full_of_notifications(outcome) && !std::exchange(breaking.quiet, true)) return std::nullopt;
  if (outcome.sqlstate == "42501" && session) return may_not_end_session(outcome, options);
  if (outcome.problem != Problem::none) return outcome.failure;
  const Rows& rows = results[0];
  if (session) {
    if (const std::string prepared = rows.text(0, 1); !prepared.empty()) return has_no_session(prepared);
    // Where the session that we meant to end is gone already, so is its lock.
    std::vector<std::int64_t> ending;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows.flag(i, 0)) ending.push_back(rows.number(i, 2).value_or(0));
    }
    if (ending.empty()) return !breaking.ended.empty();
    if (breaking.ended.empty()) breaking.ended = std::move(ending);
  } else if (rows.empty() || rows.flag(0, 0)) {
    return !rows.empty();
  }
  return std::nullopt;
}

// --- Forgetting ------------------------------------------------------------------------------------------------------

void Inspection::forget(const Forgetting& what, Backend::Handler<std::vector<std::string>> done) {
  const Options& options = commands_.options();
  const bool advisory = options.strategy == Strategy::advisory;
  const auto age = std::chrono::ceil<std::chrono::microseconds>(what.idle).count();
  ask(questions_about(what.kind).forget,
      {advisory && !what.name.empty() ? token_row(options, what.name) : what.name, std::to_string(age),
       std::to_string(advisory ? most_advisory_forgotten : most_forgotten)},
      [&options, done = std::move(done)](const Outcome& outcome, const Results& results) {
        std::vector<std::string> names;
        if (never_set_up(outcome)) return done(std::move(names));
        if (outcome.sqlstate == "42501") return done(may_not_delete(outcome, options));
        if (outcome.problem != Problem::none) return done(outcome.failure);
        for (std::size_t i = 0; i < results[0].size(); ++i) names.push_back(results[0].text(i, 0));
        done(std::move(names));
      });
}

}  // namespace dlock::postgres
