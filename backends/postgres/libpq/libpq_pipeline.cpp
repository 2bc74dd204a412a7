#include "backends/postgres/libpq/libpq_pipeline.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "backends/postgres/libpq/libpq_results.hpp"
#include "backends/postgres/libpq/received_bytes.hpp"
#include "backends/postgres/sql/connect_failure.hpp"

namespace dlock::postgres {

namespace {

constexpr int as_text = 0;
constexpr std::string_view no_such_statement = "26000";
constexpr std::string_view changed_result = "0A000";

bool is_sendable(const Query& query) {
  return std::all_of(query.commands.begin(), query.commands.end(), [](const Command& command) {
    return std::all_of(command.params.begin(), command.params.end(), [](const Parameter& parameter) {
      return !parameter || parameter->find('\0') == std::string::npos;
    });
  });
}

}  // namespace

Pipeline::Pipeline(Executor& executor, PgHandle connection, std::string endpoint, Events& events)
    : executor_(executor), endpoint_(std::move(endpoint)), events_(events), connection_(std::move(connection)) {}

Pipeline::~Pipeline() {
  descriptor_.reset();
  connection_.get_deleter().abandon = !in_flight_.empty();
}

std::optional<Failure> Pipeline::start() {
  PGconn* const connection = connection_.get();
  (void)PQsetNoticeReceiver(connection, &Pipeline::on_notice, this);
  if (PQsetnonblocking(connection, 1) != 0 || PQenterPipelineMode(connection) != 1) {
    return broken_because(in_one_line(PQerrorMessage(connection)));
  }
  try {
    descriptor_ = executor_.watch(PQsocket(connection));
  } catch (const Error& e) {
    return Failure{e.code(), endpoint_ + ": " + e.detail()};
  }
  wait_readable();
  return std::nullopt;
}

// --- Sending ---------------------------------------------------------------------------------------------------------

void Pipeline::send(Query query) {
  std::optional<Failure> problem;
  if (broken()) problem = broken_because("the connection is broken");
  if (!is_sendable(query)) problem = Failure{errc::invalid_argument, "a zero byte in a parameter"};
  if (problem) {
    executor_.post(lifetime_.guard([done = std::move(query.done), why = *std::move(problem)] {
      if (done) done({.problem = Problem::not_sent, .failure = why}, {});
    }));
    return;
  }
  unsent_.push_back(std::move(query));
  schedule_writing();
}

// A lone query goes out at once. When others are under way, more are likely to follow in this turn of the engine.
void Pipeline::schedule_writing() {
  if (taking_input_ || writing_posted_ || clogged_) return;
  if (in_flight_.empty()) return write_out();
  writing_posted_ = true;
  executor_.post(lifetime_.guard([this] {
    writing_posted_ = false;
    if (!broken()) write_out();
  }));
}

// What libpq has may go out at any time; so that it can be told what did not, it gets only as much as the network
// takes.
void Pipeline::write_out() {
  while (!unsent_.empty() && !clogged_) {
    Query query = std::move(unsent_.front());
    unsent_.pop_front();
    if (!hand_over(std::move(query))) {
      return break_off_soon(broken_because(in_one_line(PQerrorMessage(connection_.get()))));
    }
    flush();
  }
}

bool Pipeline::hand_over(Query query) {
  InFlight& entry = in_flight_.emplace_back();
  entry.done = std::move(query.done);
  entry.sent = executor_.now();
  for (std::size_t i = 0; i < query.commands.size(); ++i) {
    if (!hand_over_command(query.commands[i], i, entry)) return false;
  }
  return PQpipelineSync(connection_.get()) == 1;
}

bool Pipeline::hand_over_command(const Command& command, std::size_t number, InFlight& entry) {
  PGconn* const connection = connection_.get();
  std::vector<const char*> values;
  values.reserve(command.params.size());
  for (const Parameter& parameter : command.params) values.push_back(parameter ? parameter->c_str() : nullptr);
  const int count = static_cast<int>(values.size());
  std::string name;
  if (command.statement != nullptr && prepares_) {
    const bool first = !prepared_.contains(command.statement);
    if (first && !prepare(*command.statement, number, entry)) return false;
    const auto here = [&](const Step& step) { return step.prepares && step.statement == command.statement; };
    const Prepared& prepared = prepared_[command.statement];
    // Where it is prepared in the same query, this command is not carried out unless it is.
    if (prepared.certain || std::any_of(entry.steps.begin(), entry.steps.end(), here)) name = prepared.name;
  }
  entry.steps.push_back({.statement = command.statement, .command = number});
  if (!name.empty()) {
    return PQsendQueryPrepared(connection, name.c_str(), count, values.data(), nullptr, nullptr, as_text) == 1;
  }
  const std::string& text = command.statement != nullptr ? command.statement->sql : command.text;
  return PQsendQueryParams(connection, text.c_str(), count, nullptr, values.data(), nullptr, nullptr, as_text) == 1;
}

bool Pipeline::prepare(const Statement& statement, std::size_t number, InFlight& entry) {
  Prepared& prepared = prepared_[&statement];
  prepared.name = "dlock_" + std::to_string(++names_given_);
  entry.steps.push_back({.statement = &statement, .prepares = true, .command = number});
  return PQsendPrepare(connection_.get(), prepared.name.c_str(), statement.sql.c_str(), 0, nullptr) == 1;
}

void Pipeline::flush() {
  const int result = PQflush(connection_.get());
  if (result < 0) return break_off_soon(broken_because(in_one_line(PQerrorMessage(connection_.get()))));
  if (result > 0) wait_writable();
}

void Pipeline::wait_writable() {
  if (std::exchange(clogged_, true)) return;
  descriptor_->async_wait(Descriptor::Interest::writable, [this](std::error_code) {
    clogged_ = false;
    flush();
    if (!clogged_) write_out();
  });
}

// The caller of send() does not expect to hear of the end inside the call. And the server may have said why it hung up.
void Pipeline::break_off_soon(Failure why) {
  clogged_ = true;  // nothing more goes out
  executor_.post([this, why = std::move(why), life = lifetime_.watch()] {
    if (!life.over() && !broken()) receive();
    if (!life.over() && !broken()) break_off(why);
  });
}

// --- Receiving -------------------------------------------------------------------------------------------------------

void Pipeline::wait_readable() {
  descriptor_->async_wait(Descriptor::Interest::readable, [this](std::error_code) {
    const Lifetime::Watch life = lifetime_.watch();
    receive();
    if (!life.over() && !broken()) wait_readable();
  });
}

void Pipeline::receive() {
  if (broken() || taking_input_) return;
  const Lifetime::Watch life = lifetime_.watch();
  // What came before the end counts.
  const bool good = PQconsumeInput(connection_.get()) == 1;
  const Failure end = good ? Failure{} : broken_because(in_one_line(PQerrorMessage(connection_.get())));
  taking_input_ = true;
  take_input();
  if (life.over()) return;
  taking_input_ = false;
  if (broken()) return;
  if (ended_) return break_off(Failure(*ended_));
  if (!good) return break_off(end);
  if (answer_has_no_end())
    return break_off(broken_because("the server sends data without end, and answers no request"));
  if (!clogged_) write_out();
}

// Rows of one answer, and a message of any length, take memory; what has been answered is free again.
bool Pipeline::answer_has_no_end() {
  if (std::exchange(answered_, false)) {
    counted_from_.reset();  // the usual case asks the kernel nothing
    return false;
  }
  const std::uint64_t received = received_bytes(PQsocket(connection_.get()));
  if (!counted_from_) counted_from_ = received;
  return received - *counted_from_ > longest_answer;
}

void Pipeline::take_input() {
  const Lifetime::Watch life = lifetime_.watch();
  // Parses what there is, notices and notifications among it, also while no query is under way.
  while (PQisBusy(connection_.get()) == 0) {
    if (!take_results()) break;
    if (life.over() || broken()) return;
  }
  take_notifications();
}

// False: there is nothing more at present.
bool Pipeline::take_results() {
  const PgResult result(PQgetResult(connection_.get()));
  if (!result) {
    if (!std::exchange(result_ends_, false)) return false;
    if (!in_flight_.empty()) ++in_flight_.front().step;
    return true;
  }
  if (in_flight_.empty()) {
    ended_ = Failure{errc::unavailable, endpoint_ + ": the server answered without a request"};
    return false;
  }
  if (PQresultStatus(result.get()) == PGRES_PIPELINE_SYNC) {
    finish_query();
    return true;
  }
  result_ends_ = true;
  take_result(*result);
  return !ended_;
}

void Pipeline::take_result(const PGresult& result) {
  InFlight& entry = in_flight_.front();
  if (entry.step >= entry.steps.size()) {
    // The commit itself was refused: a conflict of serializable transactions, for example.
    if (!entry.steps.empty() && PQresultStatus(&result) == PGRES_FATAL_ERROR) return take_refusal(result, entry);
    ended_ = Failure{errc::unavailable, endpoint_ + ": the server sent more answers than there were commands"};
    return;
  }
  const Step& step = entry.steps[entry.step];
  switch (PQresultStatus(&result)) {
    case PGRES_COMMAND_OK:
    case PGRES_TUPLES_OK:
      if (step.prepares) {
        if (const auto found = prepared_.find(step.statement); found != prepared_.end()) found->second.certain = true;
      } else {
        entry.results.push_back(to_rows(result));
      }
      return;
    case PGRES_FATAL_ERROR:
      return take_refusal(result, entry);
    case PGRES_PIPELINE_ABORTED:
      if (step.prepares) prepared_.erase(step.statement);
      return;
    default:
      ended_ = Failure{errc::unavailable, endpoint_ + ": a statement that is not a query"};
  }
}

void Pipeline::take_refusal(const PGresult& result, InFlight& entry) {
  const char* const sqlstate = PQresultErrorField(&result, PG_DIAG_SQLSTATE);
  if (sqlstate == nullptr) {  // libpq's own words: the connection is broken
    ended_ = broken_because(in_one_line(PQresultErrorMessage(&result)));
    return;
  }
  note_end(result);
  if (ended_) return;
  const bool of_commit = entry.step >= entry.steps.size();
  const Step& step = of_commit ? entry.steps.back() : entry.steps[entry.step];
  entry.refusal = Outcome{.problem = Problem::refused,
                          .failure = server_failure(endpoint_, result),
                          .sqlstate = sqlstate,
                          .failed_command = of_commit ? step.command + 1 : step.command,
                          .sent = entry.sent};
  if (of_commit) return;
  // It was not prepared; or the server has forgotten it, or its plan no longer fits the table: prepared again at the
  // next use.
  const std::string_view code = sqlstate;
  if (step.prepares || code == no_such_statement || code == changed_result) prepared_.erase(step.statement);
}

void Pipeline::finish_query() {
  answered_ = true;
  const InFlight entry = std::move(in_flight_.front());
  in_flight_.pop_front();
  if (!entry.done) return;
  if (entry.refusal) return entry.done(*entry.refusal, {});
  entry.done({.sent = entry.sent}, entry.results);
}

void Pipeline::take_notifications() {
  const Lifetime::Watch life = lifetime_.watch();
  struct Free {
    void operator()(PGnotify* notification) const noexcept { PQfreemem(notification); }
  };
  while (const std::unique_ptr<PGnotify, Free> notification{PQnotifies(connection_.get())}) {
    events_.pipeline_notified(notification->relname, notification->extra);
    if (life.over() || broken()) return;
  }
}

// --- The end ---------------------------------------------------------------------------------------------------------

void Pipeline::on_notice(void* self, const PGresult* notice) {
  static_cast<Pipeline*>(self)->note_end(*notice);
}

// The server says why it ends the session, and only then ends it.
void Pipeline::note_end(const PGresult& message) {
  const char* const severity = PQresultErrorField(&message, PG_DIAG_SEVERITY_NONLOCALIZED);
  const std::string_view word = severity == nullptr ? "" : severity;
  if (word != "FATAL" && word != "PANIC") return;
  ended_ = Failure{errc::unavailable, server_failure(endpoint_, message).detail};
  if (const char* const sqlstate = PQresultErrorField(&message, PG_DIAG_SQLSTATE)) sqlstate_of_end_ = sqlstate;
}

Failure Pipeline::broken_because(const std::string& why) const {
  return {errc::unavailable, endpoint_ + ": " + (why.empty() ? "the connection is broken" : why)};
}

void Pipeline::break_off(const Failure& why) {
  if (broken()) return;
  const Failure reason = why;
  const auto in_flight = std::exchange(in_flight_, {});
  const auto unsent = std::exchange(unsent_, {});
  const std::string sqlstate_of_end = sqlstate_of_end_;
  descriptor_.reset();
  connection_.get_deleter().abandon = !in_flight.empty();
  connection_.reset();
  const Lifetime::Watch life = lifetime_.watch();
  for (const InFlight& entry : in_flight) {
    Outcome outcome{.problem = Problem::unknown_outcome,
                    .failure = {errc::ambiguous, reason.detail},
                    .sqlstate = sqlstate_of_end,
                    .sent = entry.sent};
    if (entry.refusal) outcome = *entry.refusal;
    if (entry.done) entry.done(outcome, {});
    if (life.over()) return;
  }
  for (const Query& query : unsent) {
    if (query.done) query.done({.problem = Problem::not_sent, .failure = {errc::unavailable, reason.detail}}, {});
    if (life.over()) return;
  }
  events_.pipeline_broken(reason);
}

}  // namespace dlock::postgres
