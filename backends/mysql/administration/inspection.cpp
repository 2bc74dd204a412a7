#include "backends/mysql/administration/inspection.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include <dlock/duration.hpp>
#include <dlock/spi/backoff.hpp>

#include "backends/common/sql/lock_rows.hpp"
#include "backends/mysql/client/preamble.hpp"
#include "backends/mysql/sql/layout.hpp"

namespace dlock::mysql {

using sql::Command;
using sql::Outcome;
using sql::Problem;
using sql::Results;
using sql::Rows;

namespace {

constexpr std::size_t most_names = 100'000;
constexpr int most_forgotten = 500;  // in one transaction

constexpr const char* no_such_table = "1146";
constexpr const char* no_such_database = "1049";
constexpr const char* no_such_session = "1094";

// No lock was ever acquired here.
bool never_set_up(const Outcome& outcome) {
  return outcome.problem == Problem::refused &&
         (outcome.server_code == no_such_table || outcome.server_code == no_such_database);
}

// The session that has the lock, or nothing.
std::string session_in(const Rows& rows) {
  return rows.flag(0, 1) ? rows.text(0, 6) : std::string();
}

}  // namespace

struct Inspection::Breaking {
  Breaking(Executor& executor, LockKind of, std::string lock, Backend::Handler<bool> then, TimePoint at_the_latest)
      : kind(of), name(std::move(lock)), done(std::move(then)), deadline(at_the_latest), pause(executor) {}

  const LockKind kind;
  const std::string name;
  Backend::Handler<bool> done;
  const TimePoint deadline;
  std::string ended = {};  // the session that the server was asked to end
  Backoff backoff{std::chrono::milliseconds(200)};
  Timer pause;
};

Inspection::Inspection(sql::Commands& commands, const Options& options) : commands_(commands), options_(options) {}

Inspection::~Inspection() = default;

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

// That another transaction keeps a row locked says nothing about the lock.
void Inspection::ask(std::vector<Command> commands, sql::Handler done) {
  const auto answered = [done = std::move(done)](Outcome outcome, const Results& results) {
    if (outcome.failure.code == errc::timed_out) outcome.failure.code = errc::unavailable;
    done(outcome, results);
  };
  commands_.run({.commands = std::move(commands), .done = answered}, commands_.answer_by(), sql::MissingSchema::refuse);
}

void Inspection::look(const sql::Statement& question, const std::optional<sql::Statement>& committed,
                      const Questions& questions, const std::string& parameter, Backend::Handler<Rows> done) {
  std::vector<Command> commands;
  if (committed) commands.push_back({.statement = &*questions.uncommitted});
  commands.push_back({.statement = &question, .params = {parameter}});
  if (committed) commands.push_back({.statement = &*committed, .params = {parameter}});
  ask(std::move(commands),
      [several = committed.has_value(), done = std::move(done)](const Outcome& outcome, const Results& results) {
        if (never_set_up(outcome)) return done(Rows());
        if (outcome.problem != Problem::none) return done(unanswered_question(outcome.failure));
        done(several ? read_uncommitted(results) : results.front());
      });
}

void Inspection::inspect(LockKind kind, const std::string& name, Backend::Handler<LockInfo> done) {
  const Questions& questions = questions_about(kind);
  look(questions.inspect, questions.inspect_committed, questions, name,
       [this, kind, name, done = std::move(done)](const Result<Rows>& rows) {
         if (!rows.ok()) return done(rows.failure());
         LockInfo info{.name = name, .kind = kind};
         if (auto infos = sql::read_infos(kind, rows.value()); !infos.empty()) info = std::move(infos.front());
         info.name = name;
         if (info.waiters && waiting_) *info.waiters += waiting_(kind, name);
         done(std::move(info));
       });
}

void Inspection::list(LockKind kind, Backend::Handler<std::vector<LockInfo>> done) {
  const Questions& questions = questions_about(kind);
  look(questions.list, questions.list_committed, questions, std::to_string(most_names + 1),
       [kind, done = std::move(done)](const Result<Rows>& rows) {
         if (!rows.ok()) return done(rows.failure());
         if (rows.value().size() <= most_names) return done(sql::read_infos(kind, rows.value()));
         done(Failure{errc::unavailable, "more than " + std::to_string(most_names) + " locks; too many to list"});
       });
}

// --- Breaking --------------------------------------------------------------------------------------------------------

void Inspection::break_lock(LockKind kind, const std::string& name, Backend::Handler<bool> done) {
  if (lives_in_sessions(options_.strategy)) {
    return break_session(
        breaking_.emplace(breaking_.end(), commands_.executor(), kind, name, std::move(done), commands_.answer_by()));
  }
  const Questions& questions = questions_about(kind);
  std::vector<Command> commands;
  if (questions.lock_row) commands.push_back({.statement = &*questions.lock_row, .params = {name}});
  commands.push_back({.statement = &questions.break_lock, .params = {name}});
  ask(std::move(commands), [done = std::move(done)](const Outcome& outcome, const Results& results) {
    if (never_set_up(outcome)) return done(false);
    if (outcome.problem != Problem::none) return done(outcome.failure);
    done(results.back().inserted > 0);
  });
}

// Looks, tells the server to end the session, and looks again until another session has the lock, or none.
void Inspection::break_session(Breakings::iterator breaking) {
  const Questions& questions = questions_about(breaking->kind);
  look(questions.inspect, questions.inspect_committed, questions, breaking->name,
       [=, this, &questions](const Result<Rows>& rows) {
         if (!rows.ok()) return finish(breaking, rows.failure());
         const std::string session = session_in(rows.value());
         if (session.empty() || (!breaking->ended.empty() && session != breaking->ended)) {
           return finish(breaking, !breaking->ended.empty());
         }
         Executor& executor = commands_.executor();
         if (!breaking->ended.empty()) {
           const TimePoint at = saturating_add(executor.now(), breaking->backoff.next(executor));
           if (at < breaking->deadline) return breaking->pause.arm(at, [=, this] { break_session(breaking); });
           return finish(breaking, Failure{errc::unavailable,
                                           "dlock told the holder's session to end, but it still holds the lock"});
         }
         breaking->ended = session;
         ask({{.statement = &questions.break_lock, .params = {session}}},
             [=, this](const Outcome& outcome, const Results&) {
               const bool gone = outcome.problem == Problem::refused && outcome.server_code == no_such_session;
               if (outcome.problem == Problem::none || gone) return break_session(breaking);
               Failure why = outcome.failure;
               if (why.code == errc::access_denied) {
                 why.detail += "; this lock belongs to its holder's session; to end that session: " +
                               grant_to_break(is_mariadb(commands_.server().version));
               }
               finish(breaking, std::move(why));
             });
       });
}

void Inspection::finish(Breakings::iterator breaking, Result<bool> result) {
  const auto done = std::move(breaking->done);
  (void)breaking_.erase(breaking);
  done(std::move(result));
}

// --- Forgetting ------------------------------------------------------------------------------------------------------

void Inspection::forget(const Forgetting& what, Backend::Handler<std::vector<std::string>> done) {
  const Questions& questions = questions_about(what.kind);
  const std::string age = std::to_string(std::chrono::ceil<std::chrono::microseconds>(what.idle).count());
  ask({{.statement = &questions.forgettable, .params = {what.name, what.name, age, std::to_string(most_forgotten)}}},
      [this, &questions, age, done = std::move(done)](const Outcome& outcome, const Results& results) {
        if (never_set_up(outcome)) return done(std::vector<std::string>());
        if (outcome.problem != Problem::none) return done(unanswered_question(outcome.failure));
        std::vector<std::string> names;
        const Rows& rows = results.front();
        for (std::size_t i = 0; i < rows.size(); ++i) names.push_back(rows.text(i, 0));
        if (names.empty()) return done(std::move(names));
        std::sort(names.begin(), names.end());
        forget_names(questions, std::move(names), age, done);
      });
}

void Inspection::forget_names(const Questions& questions, std::vector<std::string> names, const std::string& age,
                              Backend::Handler<std::vector<std::string>> done) {
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
        Failure why = outcome.failure;
        if (why.code == errc::access_denied) why.detail += "; and to forget names: " + grant_to_forget(options_.schema);
        if (outcome.problem != Problem::none) return done(std::move(why));
        std::vector<std::string> forgotten;
        for (std::size_t i = 0; i < names.size(); ++i) {
          if (results[i * each + place].affected > 0) forgotten.push_back(names[i]);
        }
        done(std::move(forgotten));
      });
}

}  // namespace dlock::mysql
