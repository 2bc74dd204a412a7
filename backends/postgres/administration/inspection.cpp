#include "backends/postgres/administration/inspection.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "backends/postgres/schema/layout.hpp"
#include "backends/postgres/sql/identifier.hpp"
#include "backends/postgres/sql/lock_key.hpp"
#include "backends/postgres/sql/statements.hpp"

namespace dlock::postgres {

namespace {

// One statement forgets at most this many names, so that no row is locked for long. The server keeps advisory locks in
// shared memory, which is small.
constexpr int most_forgotten = 1000;
constexpr int most_advisory_forgotten = 100;

// The statement that breaks an advisory lock reads no table, so advice about rights to tables would be wrong.
Failure may_not_end_session(const Outcome& outcome, const Options& options, const Dialect& dialect) {
  std::string detail = outcome.failure.detail;
  const Outcome nothing_said{.problem = outcome.problem, .server_code = outcome.server_code};
  const std::string advice = dialect.failure_of(nothing_said).detail;
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

class Inspection final : public sql::Inspection {
 public:
  Inspection(Commands& commands, const Options& options)
      : sql::Inspection(commands),
        options_(options),
        advisory_(options.strategy == Strategy::advisory),
        in_sessions_(lives_in_sessions(options.strategy)) {}

  void forget(const Forgetting& what, Backend::Handler<std::vector<std::string>> done) override;

 private:
  struct Questions {
    Statement inspect;
    Statement list;
    Statement break_lock;
    Statement forget;
    Statement inspect_without_tables;  // of advisory locks
  };

  // The reference stays valid.
  [[nodiscard]] const Questions& questions_about(LockKind kind, const std::string& name = {});

  [[nodiscard]] bool is_missing_table(std::string_view server_code) const override {
    return server_code == "42P01" || server_code == "3F000";
  }
  [[nodiscard]] std::vector<Command> question(LockKind kind, const std::string& name) override {
    const Questions& questions = questions_about(kind, name);
    if (name.empty()) return about_many(questions.list, {std::to_string(most_names + 1)});
    return {{.statement = &questions.inspect, .params = key_of(kind, name)}};
  }
  [[nodiscard]] std::vector<Command> question_without_tables(LockKind kind, const std::string& name) override {
    if (!advisory_ || name.empty()) return {};
    return {{.statement = &questions_about(kind, name).inspect_without_tables, .params = key_of(kind, name)}};
  }
  [[nodiscard]] std::vector<Parameter> key_of(LockKind kind, const std::string& name) const {
    if (!advisory_) return {name};
    return {lock_key(options_, name, kind).parameter, token_row(options_, name)};
  }
  // The answer is the last of the results.
  [[nodiscard]] std::vector<Command> about_many(const Statement& question, std::vector<Parameter> params) const {
    std::vector<Command> commands;
    if (in_sessions_) commands.push_back({.text = without_nested_loops_sql});
    commands.push_back({.statement = &question, .params = std::move(params)});
    return commands;
  }

  void try_to_break(Breaking& breaking, BreakHandler done) override;
  [[nodiscard]] std::optional<Result<bool>> read_break(Breaking& breaking, const Outcome& outcome,
                                                       const Results& results) const;

  const Options& options_;
  const bool advisory_;
  const bool in_sessions_;
  std::map<std::pair<LockKind, AdvisoryKey::KeySpace>, Questions> questions_;
};

const Inspection::Questions& Inspection::questions_about(LockKind kind, const std::string& name) {
  using KeySpace = AdvisoryKey::KeySpace;
  const Options& options = options_;
  const bool by_key = advisory_ && !name.empty();
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
  if (!in_sessions_) {
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

void Inspection::try_to_break(Breaking& breaking, BreakHandler done) {
  std::string how = breaking.quiet ? std::string() : channel_of(options_.schema, breaking.kind);
  if (in_sessions_) how = breaking.ended.empty() ? bigint_array({}) : breaking.ended;
  ask({{.statement = &questions_about(breaking.kind, breaking.name).break_lock,
        .params = {key_of(breaking.kind, breaking.name).front(), std::move(how)}}},
      breaking.deadline, [this, &breaking, done = std::move(done)](const Outcome& outcome, const Results& results) {
        done(read_break(breaking, outcome, results));
      });
}

std::optional<Result<bool>> Inspection::read_break(Breaking& breaking, const Outcome& outcome,
                                                   const Results& results) const {
  const Dialect& dialect = commands().dialect();
  if (never_set_up(outcome)) return false;
  if (dialect.is_full_of_notifications(outcome) && !std::exchange(breaking.quiet, true)) return std::nullopt;
  if (outcome.server_code == "42501" && in_sessions_) return may_not_end_session(outcome, options_, dialect);
  if (outcome.problem != Problem::none) return outcome.failure;
  const Rows& rows = results[0];
  if (!in_sessions_) {
    if (rows.empty() || rows.flag(0, 0)) return !rows.empty();
    return std::nullopt;
  }
  if (const std::string prepared = rows.text(0, 1); !prepared.empty()) return has_no_session(prepared);
  // If the session is gone already, so is its lock.
  std::vector<std::int64_t> ending;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows.flag(i, 0)) ending.push_back(rows.number(i, 2).value_or(0));
  }
  if (ending.empty()) return !breaking.ended.empty();
  if (breaking.ended.empty()) breaking.ended = bigint_array(ending);
  return std::nullopt;
}

void Inspection::forget(const Forgetting& what, Backend::Handler<std::vector<std::string>> done) {
  const auto age = std::chrono::ceil<std::chrono::microseconds>(what.idle).count();
  ask(about_many(questions_about(what.kind).forget,
                 {advisory_ && !what.name.empty() ? token_row(options_, what.name) : what.name, std::to_string(age),
                  std::to_string(advisory_ ? most_advisory_forgotten : most_forgotten)}),
      [this, done = std::move(done)](const Outcome& outcome, const Results& results) {
        std::vector<std::string> names;
        if (never_set_up(outcome)) return done(std::move(names));
        if (outcome.problem != Problem::none)
          return done(with_grant(outcome.failure, grant_to_forget(options_.schema)));
        for (std::size_t i = 0; i < results.back().size(); ++i) names.push_back(results.back().text(i, 0));
        done(std::move(names));
      });
}

}  // namespace

std::unique_ptr<sql::Inspection> inspection(Commands& commands, const Options& options) {
  return std::make_unique<Inspection>(commands, options);
}

}  // namespace dlock::postgres
