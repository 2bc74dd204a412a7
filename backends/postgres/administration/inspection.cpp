#include "backends/postgres/administration/inspection.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <dlock/spi/backoff.hpp>

#include "backends/common/sql/lock_rows.hpp"
#include "backends/postgres/schema/layout.hpp"
#include "backends/postgres/sql/identifier.hpp"
#include "backends/postgres/sql/lock_key.hpp"
#include "backends/postgres/sql/sqlstate.hpp"

namespace dlock::postgres {

namespace {

constexpr std::size_t most_names = 100'000;

// One statement forgets at most so many, so that no row is locked for long. The server keeps advisory locks in shared
// memory, which is small.
constexpr int most_forgotten = 1000;
constexpr int most_advisory_forgotten = 100;

// No lock was ever acquired here.
bool never_set_up(const Outcome& outcome) {
  return outcome.problem == Problem::refused && (outcome.server_code == "42P01" || outcome.server_code == "3F000");
}

// The statement that breaks an advisory lock reads no table, so advice about rights to tables would be wrong.
Failure may_not_end_session(const Outcome& outcome, const Options& options) {
  std::string detail = outcome.failure.detail;
  const Outcome nothing_said{.problem = outcome.problem, .server_code = outcome.server_code};
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

// The message already names the rights that locks need.
Failure may_not_delete(const Outcome& outcome, const Options& options) {
  return {errc::access_denied, outcome.failure.detail + "; and to forget names: " + grant_to_forget(options.schema)};
}

}  // namespace

struct Inspection::Breaking {
  Breaking(Executor& executor, LockKind of, std::string lock, Backend::Handler<bool> then, TimePoint at_the_latest)
      : kind(of), name(std::move(lock)), done(std::move(then)), deadline(at_the_latest), pause(executor) {}

  // nullopt: not yet.
  [[nodiscard]] std::optional<Result<bool>> read(const Outcome& outcome, const Results& results,
                                                 const Options& options) {
    const bool session = lives_in_sessions(options.strategy);
    if (never_set_up(outcome)) return false;
    if (is_full_of_notifications(outcome) && !std::exchange(quiet, true)) return std::nullopt;
    if (outcome.server_code == "42501" && session) return may_not_end_session(outcome, options);
    if (outcome.problem != Problem::none) return outcome.failure;
    const Rows& rows = results[0];
    if (!session) {
      if (rows.empty() || rows.flag(0, 0)) return !rows.empty();
      return std::nullopt;
    }
    if (const std::string prepared = rows.text(0, 1); !prepared.empty()) return has_no_session(prepared);
    // If the session is gone already, so is its lock.
    std::vector<std::int64_t> ending;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows.flag(i, 0)) ending.push_back(rows.number(i, 2).value_or(0));
    }
    if (ending.empty()) return !ended.empty();
    if (ended.empty()) ended = std::move(ending);
    return std::nullopt;
  }

  const LockKind kind;
  const std::string name;
  Backend::Handler<bool> done;
  const TimePoint deadline;
  bool quiet = false;               // notifies no waiter
  std::vector<std::int64_t> ended;  // sessions that the server was asked to end
  Backoff backoff{std::chrono::milliseconds(200)};
  Timer pause;
};

Inspection::Inspection(Commands& commands, const Options& options) : commands_(commands), options_(options) {}

Inspection::~Inspection() = default;

const Inspection::Questions& Inspection::questions_about(LockKind kind, const std::string& name) {
  using KeySpace = AdvisoryKey::KeySpace;
  const Options& options = options_;
  const bool by_key = options.strategy == Strategy::advisory && !name.empty();
  const KeySpace space = by_key ? lock_key(options, name, kind).space : KeySpace::bigint;
  const auto [found, first] = questions_.try_emplace({kind, space});
  Questions& questions = found->second;
  const auto take = [&](auto statements) {
    questions.inspect = std::move(statements.inspect);
    questions.list = std::move(statements.list);
    questions.break_lock = std::move(statements.break_lock);
    questions.forget = std::move(statements.forget);
  };
  if (!first) return questions;
  if (!lives_in_sessions(options.strategy)) {
    take(row_statements(options.strategy, options.schema, options.durability, kind));
  } else if (options.strategy == Strategy::for_update) {
    take(for_update_statements(options.schema, options.durability));
  } else {
    AdvisoryStatements statements = advisory_statements(options.schema, options.durability, space, kind);
    questions.inspect_without_tables = std::move(statements.inspect_without_tables);
    take(std::move(statements));
  }
  return questions;
}

void Inspection::inspect(LockKind kind, const std::string& name, Backend::Handler<LockInfo> done) {
  const Options& options = options_;
  const Questions& questions = questions_about(kind, name);
  const auto read = [this, kind, name, done = std::move(done)](const Outcome& outcome, const Results& results) {
    LockInfo info{.name = name, .kind = kind};
    if (never_set_up(outcome)) return done(std::move(info));
    if (outcome.problem != Problem::none) return done(unanswered_question(outcome.failure));
    if (auto infos = read_infos(kind, results[0]); !infos.empty()) info = std::move(infos.front());
    info.name = name;
    if (info.waiters && waiting_) *info.waiters += waiting_(kind, name);
    done(std::move(info));
  };
  if (options.strategy != Strategy::advisory) return ask(questions.inspect, {name}, read);
  const std::vector<Parameter> params = {lock_key(options, name, kind).parameter, token_row(options, name)};
  ask(questions.inspect, params, [this, &questions, params, read](const Outcome& outcome, const Results& results) {
    if (never_set_up(outcome)) return ask(questions.inspect_without_tables, params, read);
    read(outcome, results);
  });
}

void Inspection::list(LockKind kind, Backend::Handler<std::vector<LockInfo>> done) {
  ask_about_many(
      questions_about(kind).list, {std::to_string(most_names + 1)},
      [kind, done = std::move(done)](const Outcome& outcome, const Results& results) {
        if (never_set_up(outcome)) return done(std::vector<LockInfo>());
        if (outcome.problem != Problem::none) return done(unanswered_question(outcome.failure));
        const Rows& rows = results.back();
        if (rows.size() <= most_names) return done(read_infos(kind, rows));
        done(Failure{errc::unavailable, "more than " + std::to_string(most_names) + " locks; too many to list"});
      });
}

void Inspection::ask(const Statement& question, std::vector<Parameter> params, Handler done) {
  commands_.run({.commands = {{.statement = &question, .params = std::move(params)}}, .done = std::move(done)},
                commands_.answer_by(), MissingSchema::refuse);
}

void Inspection::ask_about_many(const Statement& question, std::vector<Parameter> params, Handler done) {
  Query query{.done = std::move(done)};
  if (lives_in_sessions(options_.strategy)) query.commands.push_back({.text = without_nested_loops_sql});
  query.commands.push_back({.statement = &question, .params = std::move(params)});
  commands_.run(std::move(query), commands_.answer_by(), MissingSchema::refuse);
}

void Inspection::break_lock(LockKind kind, const std::string& name, Backend::Handler<bool> done) {
  try_to_break(
      breaking_.emplace(breaking_.end(), commands_.executor(), kind, name, std::move(done), commands_.answer_by()));
}

void Inspection::try_to_break(Breakings::iterator breaking) {
  const Options& options = options_;
  const auto& [kind, name] = std::tie(breaking->kind, breaking->name);
  const std::string key = options.strategy == Strategy::advisory ? lock_key(options, name, kind).parameter : name;
  std::string how = breaking->quiet ? std::string() : channel_of(options.schema, kind);
  if (lives_in_sessions(options.strategy)) how = bigint_array(breaking->ended);
  Query query{.commands = {{.statement = &questions_about(kind, name).break_lock, .params = {key, std::move(how)}}},
              .done = [this, breaking](const Outcome& outcome, const Results& results) {
                break_answered(breaking, outcome, results);
              }};
  commands_.run(std::move(query), breaking->deadline, MissingSchema::refuse);
}

void Inspection::break_answered(Breakings::iterator breaking, const Outcome& outcome, const Results& results) {
  Executor& executor = commands_.executor();
  auto result = breaking->read(outcome, results, options_);
  if (!result) {
    const TimePoint at = saturating_add(executor.now(), breaking->backoff.next(executor));
    // Until the deadline, the last attempt has a quarter of the time: the outcome of one without an answer is unknown.
    if (at < breaking->deadline - options_.response_timeout / 4) {
      return breaking->pause.arm(at, [this, breaking] { try_to_break(breaking); });
    }
    result = Failure{errc::unavailable, breaking->ended.empty()
                                            ? "another transaction keeps the row of this lock locked"
                                            : "dlock told the holder's session to end, but it still holds the lock"};
  }
  const auto done = std::move(breaking->done);
  (void)breaking_.erase(breaking);
  done(*result);
}

void Inspection::forget(const Forgetting& what, Backend::Handler<std::vector<std::string>> done) {
  const Options& options = options_;
  const bool advisory = options.strategy == Strategy::advisory;
  const auto age = std::chrono::ceil<std::chrono::microseconds>(what.idle).count();
  ask_about_many(questions_about(what.kind).forget,
                 {advisory && !what.name.empty() ? token_row(options, what.name) : what.name, std::to_string(age),
                  std::to_string(advisory ? most_advisory_forgotten : most_forgotten)},
                 [&options, done = std::move(done)](const Outcome& outcome, const Results& results) {
                   std::vector<std::string> names;
                   if (never_set_up(outcome)) return done(std::move(names));
                   if (outcome.server_code == "42501") return done(may_not_delete(outcome, options));
                   if (outcome.problem != Problem::none) return done(outcome.failure);
                   for (std::size_t i = 0; i < results.back().size(); ++i) names.push_back(results.back().text(i, 0));
                   done(std::move(names));
                 });
}

}  // namespace dlock::postgres
