#include "backends/common/sql/inspection.hpp"

#include <dlock/duration.hpp>

#include "backends/common/sql/lock_rows.hpp"

namespace dlock::sql {

// Never answers timed_out: that another transaction keeps a row locked says nothing about the lock.
void Inspection::ask(std::vector<Command> commands, TimePoint deadline, Handler done) {
  const auto answered = [done = std::move(done)](Outcome outcome, const Results& results) {
    if (outcome.failure.code == errc::timed_out) outcome.failure.code = errc::unavailable;
    done(outcome, results);
  };
  commands_.run({.commands = std::move(commands), .done = answered}, deadline, MissingSchema::refuse);
}

void Inspection::look(LockKind kind, const std::string& name, TimePoint deadline, Backend::Handler<Rows> done) {
  const auto read_answer = [this, done = std::move(done)](const Outcome& outcome, const Results& results) {
    if (never_set_up(outcome)) return done(Rows());
    if (outcome.problem != Problem::none) return done(unanswered_question(outcome.failure));
    done(read(results));
  };
  ask(question(kind, name), deadline, [=, this](const Outcome& outcome, const Results& results) {
    auto commands = never_set_up(outcome) ? question_without_tables(kind, name) : std::vector<Command>();
    if (commands.empty()) return read_answer(outcome, results);
    ask(std::move(commands), deadline, read_answer);
  });
}

void Inspection::inspect(LockKind kind, const std::string& name, Backend::Handler<LockInfo> done) {
  look(kind, name, commands_.answer_by(), [this, kind, name, done = std::move(done)](const Result<Rows>& rows) {
    if (!rows.ok()) return done(rows.failure());
    LockInfo info{.name = name, .kind = kind};
    if (auto infos = read_infos(kind, rows.value()); !infos.empty()) info = std::move(infos.front());
    info.name = name;
    if (info.waiters && waiting_) *info.waiters += waiting_(kind, name);
    done(std::move(info));
  });
}

void Inspection::list(LockKind kind, Backend::Handler<std::vector<LockInfo>> done) {
  look(kind, {}, commands_.answer_by(), [kind, done = std::move(done)](const Result<Rows>& rows) {
    if (!rows.ok()) return done(rows.failure());
    if (rows.value().size() <= most_names) return done(read_infos(kind, rows.value()));
    done(Failure{errc::unavailable, "more than " + std::to_string(most_names) + " locks; too many to list"});
  });
}

void Inspection::break_lock(LockKind kind, const std::string& name, Backend::Handler<bool> done) {
  go_on(breaking_.emplace(breaking_.end(), commands_, kind, name, std::move(done)));
}

void Inspection::go_on(Breakings::iterator breaking) {
  try_to_break(*breaking, [this, breaking](const std::optional<Result<bool>>& result) { answered(breaking, result); });
}

void Inspection::answered(Breakings::iterator breaking, const std::optional<Result<bool>>& result) {
  if (!result) {
    Executor& executor = commands_.executor();
    const TimePoint at = saturating_add(executor.now(), breaking->backoff.next(executor));
    if (at < breaking->last_attempt) return breaking->pause.arm(at, [this, breaking] { go_on(breaking); });
  }
  const Failure in_vain{errc::unavailable, breaking->ended.empty()
                                               ? "another transaction keeps the row of this lock locked"
                                               : "dlock told the holder's session to end, but it still holds the lock"};
  const auto done = std::move(breaking->done);
  const Result<bool> end = result.value_or(in_vain);
  (void)breaking_.erase(breaking);
  done(end);
}

Failure Inspection::with_grant(Failure why, const std::string& grant) {
  if (why.code == errc::access_denied) why.detail += "; and to forget names: " + grant;
  return why;
}

}  // namespace dlock::sql
