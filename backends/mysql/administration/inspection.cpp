#include "backends/mysql/administration/inspection.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <utility>

#include "backends/mysql/client/preamble.hpp"
#include "backends/mysql/sql/layout.hpp"
#include "backends/mysql/sql/questions.hpp"

namespace dlock::mysql {

using sql::Command;
using sql::Outcome;
using sql::Problem;
using sql::Results;
using sql::Rows;

namespace {

constexpr int most_forgotten = 500;  // in one transaction

constexpr const char* no_such_table = "1146";
constexpr const char* no_such_database = "1049";
constexpr const char* no_such_session = "1094";

class Inspection final : public sql::Inspection {
 public:
  Inspection(sql::Commands& commands, const Options& options) : sql::Inspection(commands), options_(options) {}

  void forget(const Forgetting& what, Backend::Handler<std::vector<std::string>> done) override;

 private:
  using Names = std::vector<std::string>;

  // The reference stays valid.
  [[nodiscard]] const Questions& questions_about(LockKind kind);

  [[nodiscard]] bool is_missing_table(std::string_view server_code) const override {
    return server_code == no_such_table || server_code == no_such_database;
  }
  [[nodiscard]] std::vector<Command> question(LockKind kind, const std::string& name) override;
  [[nodiscard]] Rows read(const Results& results) const override {
    return options_.strategy == Strategy::for_update ? read_uncommitted(results) : results.front();
  }

  void try_to_break(Breaking& breaking, BreakHandler done) override;
  void end_session(Breaking& breaking, BreakHandler done);
  void forget_names(const Questions& questions, Names names, const std::string& age, Backend::Handler<Names> done);

  const Options& options_;
  std::map<LockKind, Questions> questions_;
};

const Questions& Inspection::questions_about(LockKind kind) {
  const auto found = questions_.find(kind);
  if (found != questions_.end()) return found->second;
  const auto make = [this, kind] {
    const std::string& schema = options_.schema;
    const KeyNames keys = options_.verbatim_keys ? KeyNames::verbatim : KeyNames::sha256;
    if (options_.strategy == Strategy::for_update) return for_update_questions(schema);
    if (options_.strategy == Strategy::named) return named_questions(schema, kind, keys);
    return row_questions(schema, kind, options_.strategy == Strategy::optimistic);
  };
  return questions_.emplace(kind, make()).first->second;
}

std::vector<Command> Inspection::question(LockKind kind, const std::string& name) {
  const Questions& questions = questions_about(kind);
  const std::string parameter = name.empty() ? std::to_string(most_names + 1) : name;
  const auto& committed = name.empty() ? questions.list_committed : questions.inspect_committed;
  std::vector<Command> commands;
  if (committed) commands.push_back({.statement = &*questions.uncommitted});
  commands.push_back({.statement = name.empty() ? &questions.list : &questions.inspect, .params = {parameter}});
  if (committed) commands.push_back({.statement = &*committed, .params = {parameter}});
  return commands;
}

// --- Breaking --------------------------------------------------------------------------------------------------------

void Inspection::try_to_break(Breaking& breaking, BreakHandler done) {
  if (lives_in_sessions(options_.strategy)) return end_session(breaking, std::move(done));
  const Questions& questions = questions_about(breaking.kind);
  std::vector<Command> commands;
  if (questions.lock_row) commands.push_back({.statement = &*questions.lock_row, .params = {breaking.name}});
  commands.push_back({.statement = &questions.break_lock, .params = {breaking.name}});
  ask(std::move(commands), [this, done = std::move(done)](const Outcome& outcome, const Results& results) {
    if (never_set_up(outcome)) return done(false);
    if (outcome.problem != Problem::none) return done(outcome.failure);
    done(results.back().inserted > 0);
  });
}

// Looks, tells the server to end the session, and looks again until another session has the lock, or none.
void Inspection::end_session(Breaking& breaking, BreakHandler done) {
  look(breaking.kind, breaking.name, breaking.deadline, [=, this, &breaking](const Result<Rows>& rows) {
    if (!rows.ok()) return done(rows.failure());
    const std::string session = rows.value().flag(0, 1) ? rows.value().text(0, 6) : std::string();
    if (session.empty() || (!breaking.ended.empty() && session != breaking.ended)) return done(!breaking.ended.empty());
    if (!breaking.ended.empty()) return done(std::nullopt);
    breaking.ended = session;
    ask({{.statement = &questions_about(breaking.kind).break_lock, .params = {session}}},
        [=, this, &breaking](const Outcome& outcome, const Results&) {
          const bool gone = outcome.problem == Problem::refused && outcome.server_code == no_such_session;
          if (outcome.problem == Problem::none || gone) return end_session(breaking, done);
          Failure why = outcome.failure;
          if (why.code == errc::access_denied) {
            why.detail += "; this lock belongs to its holder's session; to end that session: " +
                          grant_to_break(is_mariadb(commands().server().version));
          }
          done(std::move(why));
        });
  });
}

// --- Forgetting ------------------------------------------------------------------------------------------------------

void Inspection::forget(const Forgetting& what, Backend::Handler<Names> done) {
  const Questions& questions = questions_about(what.kind);
  const std::string age = std::to_string(std::chrono::ceil<std::chrono::microseconds>(what.idle).count());
  ask({{.statement = &questions.forgettable, .params = {what.name, what.name, age, std::to_string(most_forgotten)}}},
      [this, &questions, age, done = std::move(done)](const Outcome& outcome, const Results& results) {
        if (never_set_up(outcome)) return done(Names());
        if (outcome.problem != Problem::none) return done(unanswered_question(outcome.failure));
        Names names;
        const Rows& rows = results.front();
        for (std::size_t i = 0; i < rows.size(); ++i) names.push_back(rows.text(i, 0));
        if (names.empty()) return done(std::move(names));
        std::sort(names.begin(), names.end());
        forget_names(questions, std::move(names), age, done);
      });
}

void Inspection::forget_names(const Questions& questions, Names names, const std::string& age,
                              Backend::Handler<Names> done) {
  std::vector<Command> commands;
  for (const std::string& name : names) {
    if (questions.lock_row) commands.push_back({.statement = &*questions.lock_row, .params = {name}});
    commands.push_back({.statement = &questions.forget, .params = {name, age}});
    if (questions.forget_slots) commands.push_back({.statement = &*questions.forget_slots, .params = {name, name}});
  }
  const std::size_t each = commands.size() / names.size();
  const std::size_t place = questions.lock_row ? 1 : 0;
  ask(std::move(commands),
      [=, this, names = std::move(names), done = std::move(done)](const Outcome& outcome, const Results& results) {
        if (outcome.problem != Problem::none)
          return done(with_grant(outcome.failure, grant_to_forget(options_.schema)));
        Names forgotten;
        for (std::size_t i = 0; i < names.size(); ++i) {
          if (results[i * each + place].affected > 0) forgotten.push_back(names[i]);
        }
        done(std::move(forgotten));
      });
}

}  // namespace

std::unique_ptr<sql::Inspection> inspection(sql::Commands& commands, const Options& options) {
  return std::make_unique<Inspection>(commands, options);
}

}  // namespace dlock::mysql
