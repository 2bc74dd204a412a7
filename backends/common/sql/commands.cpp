#include "backends/common/sql/commands.hpp"

#include <chrono>
#include <optional>
#include <utility>

#include <dlock/duration.hpp>
#include <dlock/spi/backoff.hpp>

namespace dlock::sql {

struct Commands::Run {
  explicit Run(Executor& executor) : pause(executor) {}

  std::vector<Command> commands;
  Handler done;
  TimePoint deadline;
  bool sets_up = false;  // once
  bool patient = false;
  Backoff backoff{std::chrono::milliseconds(500)};
  Timer pause;
};

Commands::Commands(Executor& executor, const Dialling& dialling, SetUp set_up, common::ConnectionObserver& observer)
    : executor_(executor),
      dialling_(dialling),
      set_up_(std::move(set_up)),
      observer_(observer),
      session_(executor, dialling, {.word = "commands"}, Upkeep::kept_up, *this) {}

Commands::~Commands() = default;

TimePoint Commands::answer_by() const noexcept {
  return saturating_add(executor_.now(), dialling_.response_timeout);
}

Failure Commands::no_answer() const {
  return {errc::ambiguous, with_last_refusal(server().endpoint + ": no answer in time")};
}

// A missing answer has no reason; an earlier refusal may be it.
std::string Commands::with_last_refusal(std::string text) const {
  if (!last_refusal_.empty()) text += "; before that: " + last_refusal_;
  return text;
}

void Commands::run(Query query, TimePoint deadline, MissingSchema missing, bool patient) {
  const auto run = runs_.emplace(runs_.end(), executor_);
  run->commands = std::move(query.commands);
  run->done = std::move(query.done);
  run->deadline = deadline;
  run->sets_up = missing == MissingSchema::make;
  run->patient = patient;
  attempt(run);
}

void Commands::attempt(Runs::iterator run) {
  Query query{.commands = run->commands,
              .done = [this, run](const Outcome& outcome, const Results& results) { answered(run, outcome, results); }};
  (void)session_.request({.query = std::move(query), .deadline = run->deadline, .patient = run->patient});
}

void Commands::answered(Runs::iterator run, const Outcome& outcome, const Results& results) {
  if (outcome.problem == Problem::none) {
    last_refusal_.clear();
    return finish(run, outcome, results);
  }
  const Meaning meaning = dialect().meaning_of(outcome);
  const bool again = outcome.problem == Problem::refused && meaning.execution == Execution::no;
  if (again && meaning.remedy == Remedy::set_up && std::exchange(run->sets_up, false)) {
    return set_up_(run->deadline, lifetime_.guard([this, run, outcome](const std::optional<Failure>& why_not) {
      if (!why_not) return attempt(run);
      fail(run, outcome, *why_not);
    }));
  }
  Failure why = dialect().failure_of(outcome);
  if (again && (meaning.remedy == Remedy::retry || meaning.remedy == Remedy::reconnect)) {
    last_refusal_ = why.detail;
    const TimePoint at = saturating_add(executor_.now(), run->backoff.next(executor_));
    if (at < run->deadline) {
      run->pause.arm(at, [this, run] { attempt(run); });
      // It answers the other requests, and their handlers may destroy this object.
      if (meaning.remedy == Remedy::reconnect) session_.break_off(why);
      return;
    }
  }
  fail(run, outcome, std::move(why));
}

void Commands::fail(Runs::iterator run, Outcome outcome, Failure why) {
  if (outcome.problem == Problem::unknown_outcome) why.detail = with_last_refusal(std::move(why.detail));
  outcome.failure = std::move(why);
  finish(run, outcome, {});
}

void Commands::finish(Runs::iterator run, const Outcome& outcome, const Results& results) {
  const Handler done = std::move(run->done);
  runs_.erase(run);
  if (done) done(outcome, results);
}

void Commands::session_down(const Failure& why, bool /*was_ready*/) {
  observer_.broken(why);
}

}  // namespace dlock::sql
