#include "backends/postgres/libpq/libpq_connection.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "backends/common/received_bytes.hpp"
#include "backends/postgres/libpq/libpq_results.hpp"
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

OpenConnection libpq_connections() {
  return [](Executor& executor, const Options& options, const Purpose& purpose, Connection::Listener& listener) {
    return std::make_unique<LibpqConnection>(executor, options, purpose, listener);
  };
}

LibpqConnection::LibpqConnection(Executor& executor, const Options& options, const Purpose& purpose, Listener& listener)
    : executor_(executor),
      options_(options),
      purpose_(purpose),
      listener_(listener),
      greeting_timer_(executor),
      dialler_(executor, options, purpose, [this](Result<PgHandle> connection) {
        if (!connection.ok()) return break_off(connection.failure());
        dialled(std::move(connection.value()));
      }) {}

// --- Connecting ------------------------------------------------------------------------------------------------------

void LibpqConnection::dialled(PgHandle handle) {
  link_ = std::make_unique<Link>(std::move(handle));
  PGconn* const connection = link_->handle.get();
  (void)PQsetNoticeReceiver(
      connection, [](void* self, const PGresult* notice) { static_cast<LibpqConnection*>(self)->note_end(*notice); },
      this);
  if (PQsetnonblocking(connection, 1) != 0 || PQenterPipelineMode(connection) != 1) return give_up(last_error());
  try {
    link_->descriptor = executor_.watch(PQsocket(connection));
  } catch (const Error& e) {
    return give_up({e.code(), dialler_.endpoint() + ": " + e.detail()});
  }
  wait_readable();
  greeting_timer_.arm(dialler_.share_ends(), [this] { give_up(unavailable("no answer within the connect timeout")); });
  preamble_.emplace(purpose_, Preamble::Facts{.version = PQserverVersion(connection),
                                              .backend_pid = PQbackendPID(connection),
                                              .pooler = options_.pooler});
  for (std::size_t i = 0; i < preamble_->commands().size(); ++i) {
    enqueue({.commands = {preamble_->commands()[i]}, .done = [this, i](const Outcome& outcome, const Results& results) {
               preamble_answered(i, outcome, results);
             }});
  }
}

void LibpqConnection::preamble_answered(std::size_t command, const Outcome& outcome, const Results& results) {
  if (!preamble_->answered(command, outcome, results)) {
    const Failure& why = outcome.failure;
    return give_up({why.code ? why.code : errc::protocol,
                    dialler_.endpoint() + ": the server did not identify itself: " + why.detail});
  }
  if (command + 1 == preamble_->commands().size()) greeted();
}

void LibpqConnection::greeted() {
  server_ = preamble_->server();
  server_.endpoint = dialler_.endpoint();
  server_.encrypted = PQsslInUse(link_->handle.get()) == 1;
  if (server_.standby && options_.target_session_attrs != "any") {
    return give_up(unavailable("it is a standby; locks need the primary"));
  }
  if (server_.read_only) {
    return give_up({errc::access_denied,
                    server_.endpoint + ": transactions are read-only by default (default_transaction_read_only), which "
                                       "cannot be changed behind a pooler; switch it off for this role and database"});
  }
  greeting_timer_.disarm();
  preamble_.reset();
  ready_ = true;
  listener_.connection_ready();
}

// --- Sending ---------------------------------------------------------------------------------------------------------

void LibpqConnection::send(Query query) {
  if (usable() && is_sendable(query)) return enqueue(std::move(query));
  Failure why{errc::invalid_argument, "a zero byte in a parameter"};
  if (!usable()) why = {errc::unavailable, options_.endpoint() + ": not connected"};
  executor_.post(lifetime_.guard([done = std::move(query.done), why = std::move(why)] {
    if (done) done({.problem = Problem::not_sent, .failure = why}, {});
  }));
}

// A query goes out at once if no other is in flight. Otherwise more are likely to follow in this turn of the engine.
void LibpqConnection::enqueue(Query query) {
  link_->unsent.push_back(std::move(query));
  if (link_->taking_input || link_->writing_posted || link_->clogged) return;
  if (link_->in_flight.empty()) return write_out();
  link_->writing_posted = true;
  executor_.post(link_->lifetime.guard([this] {
    link_->writing_posted = false;
    write_out();
  }));
}

// When a client disconnects while it has several queries in flight, pgbouncer takes the session for idle as soon as one
// of them is answered: it keeps a wait for a lock alive, and gives the other answers to the session's next client.
bool LibpqConnection::may_send() const {
  if (link_->clogged) return false;
  const bool pooler = server_.pooled || options_.pooler != Pooler::detect;
  return link_->in_flight.empty() || !pooler;
}

// libpq may send its bytes at any time. It gets only as many as the network takes, so the other queries are known to be
// unsent. A query does not wait until its statements are prepared.
void LibpqConnection::write_out() {
  while (may_send()) {
    if (!link_->unprepared.empty()) {
      const Statement& statement = *link_->unprepared.front();
      link_->unprepared.pop_front();
      if (!link_->prepared.contains(&statement) && !prepare(statement)) return give_up_soon();
    } else if (!link_->unsent.empty()) {
      Query query = std::move(link_->unsent.front());
      link_->unsent.pop_front();
      if (!hand_over(std::move(query))) return give_up_soon();
    } else {
      return;
    }
    flush();
  }
}

bool LibpqConnection::hand_over(Query query) {
  InFlight& entry = link_->in_flight.emplace_back(InFlight{.done = std::move(query.done), .sent = executor_.now()});
  for (const Command& command : query.commands) {
    entry.statements.push_back(command.statement);
    if (!hand_over(command)) return false;
  }
  return PQpipelineSync(link_->handle.get()) == 1;
}

// A query of its own, whose failure is no answer to the query that uses the statement.
bool LibpqConnection::prepare(const Statement& statement) {
  PGconn* const connection = link_->handle.get();
  const std::string name = "dlock_" + std::to_string(++link_->names_given);
  link_->prepared[&statement] = {.name = name};
  link_->in_flight.push_back({.statements = {nullptr}, .prepares = &statement});
  return PQsendPrepare(connection, name.c_str(), statement.sql.c_str(), 0, nullptr) == 1 &&
         PQpipelineSync(connection) == 1;
}

bool LibpqConnection::hand_over(const Command& command) {
  PGconn* const connection = link_->handle.get();
  std::vector<const char*> values;
  values.reserve(command.params.size());
  for (const Parameter& parameter : command.params) values.push_back(parameter ? parameter->c_str() : nullptr);
  const int count = static_cast<int>(values.size());
  const auto found = link_->prepared.find(command.statement);
  if (found != link_->prepared.end() && found->second.ready) {
    return PQsendQueryPrepared(connection, found->second.name.c_str(), count, values.data(), nullptr, nullptr,
                               as_text) == 1;
  }
  if (found == link_->prepared.end() && command.statement != nullptr && !server_.pooled) {
    link_->unprepared.push_back(command.statement);
  }
  const std::string& text = command.statement != nullptr ? command.statement->sql : command.text;
  return PQsendQueryParams(connection, text.c_str(), count, nullptr, values.data(), nullptr, nullptr, as_text) == 1;
}

void LibpqConnection::flush() {
  const int result = PQflush(link_->handle.get());
  if (result < 0) return give_up_soon();
  if (result == 0 || std::exchange(link_->clogged, true)) return;
  link_->descriptor->async_wait(Descriptor::Interest::writable, [this](std::error_code) {
    link_->clogged = false;
    flush();
    write_out();
  });
}

// --- Receiving -------------------------------------------------------------------------------------------------------

void LibpqConnection::wait_readable() {
  link_->descriptor->async_wait(Descriptor::Interest::readable, [this](std::error_code) {
    const Lifetime::Watch life = link_->lifetime.watch();
    receive();
    if (!life.over()) wait_readable();
  });
}

void LibpqConnection::receive() {
  if (!link_ || link_->taking_input) return;
  const Lifetime::Watch life = link_->lifetime.watch();
  // Answers that arrived before the end count.
  const bool good = PQconsumeInput(link_->handle.get()) == 1;
  const Failure end = good ? Failure{} : last_error();
  link_->taking_input = true;
  take_input();
  if (life.over()) return;
  link_->taking_input = false;
  if (link_->ended) return give_up(*link_->ended);
  if (!good) return give_up(end);
  if (answer_has_no_end()) return give_up(unavailable("the server sends data without end, and answers no request"));
  write_out();
}

// The rows of one answer, or a message of any length, take memory until the answer is complete.
bool LibpqConnection::answer_has_no_end() {
  if (std::exchange(link_->answered, false)) {
    link_->counted_from.reset();  // the usual case needs no system call
    return false;
  }
  const std::uint64_t received = common::received_bytes(PQsocket(link_->handle.get()));
  if (!link_->counted_from) link_->counted_from = received;
  return received - *link_->counted_from > common::longest_answer;
}

void LibpqConnection::take_input() {
  const Lifetime::Watch life = link_->lifetime.watch();
  // PQisBusy() parses notices and notifications, too, even if no query is in flight.
  while (PQisBusy(link_->handle.get()) == 0) {
    if (!take_results()) break;
    if (life.over()) return;
  }
  struct Free {
    void operator()(PGnotify* notification) const noexcept { PQfreemem(notification); }
  };
  while (const std::unique_ptr<PGnotify, Free> notification{PQnotifies(link_->handle.get())}) {
    if (ready_) listener_.connection_notified(notification->relname, notification->extra);
    if (life.over()) return;
  }
}

// False: no more results at present.
bool LibpqConnection::take_results() {
  const PgResult result(PQgetResult(link_->handle.get()));
  if (!result) return std::exchange(link_->result_ends, false);
  if (link_->in_flight.empty()) {
    link_->ended = unavailable("the server answered without a request");
    return false;
  }
  if (PQresultStatus(result.get()) == PGRES_PIPELINE_SYNC) {
    const InFlight& entry = link_->in_flight.front();
    if (!entry.refusal && entry.results.size() < entry.statements.size()) {
      link_->ended = unavailable("the server sent fewer answers than there were commands");
      return false;
    }
    finish_query();
    return true;
  }
  link_->result_ends = true;
  take_result(*result);
  return !link_->ended;
}

void LibpqConnection::take_result(const PGresult& result) {
  InFlight& entry = link_->in_flight.front();
  switch (PQresultStatus(&result)) {
    case PGRES_COMMAND_OK:
    case PGRES_TUPLES_OK:
      if (entry.results.size() < entry.statements.size()) return entry.results.push_back(to_rows(result));
      link_->ended = unavailable("the server sent more answers than there were commands");
      return;
    case PGRES_FATAL_ERROR:
      return take_refusal(result, entry);
    case PGRES_PIPELINE_ABORTED:
      return;
    default:
      link_->ended = unavailable("a statement that is not a query");
  }
}

void LibpqConnection::take_refusal(const PGresult& result, InFlight& entry) {
  const char* const sqlstate = PQresultErrorField(&result, PG_DIAG_SQLSTATE);
  if (sqlstate == nullptr) {  // libpq's own words: the connection is broken
    link_->ended = unavailable(in_one_line(PQresultErrorMessage(&result)));
    return;
  }
  note_end(result);
  if (link_->ended) return;
  const std::size_t command = entry.results.size();
  entry.refusal = Outcome{.problem = Problem::refused,
                          .failure = server_failure(dialler_.endpoint(), result),
                          .server_code = sqlstate,
                          .failed_command = command,
                          .sent = entry.sent};
  if (command == entry.statements.size()) return;  // the commit: a conflict of serializable transactions, for example
  // The server has forgotten the statement, or its plan no longer fits the table: the next use prepares it again.
  const std::string_view code = sqlstate;
  if (code == no_such_statement || code == changed_result) link_->prepared.erase(entry.statements[command]);
}

void LibpqConnection::finish_query() {
  link_->answered = true;
  const InFlight entry = std::move(link_->in_flight.front());
  link_->in_flight.pop_front();
  if (entry.prepares != nullptr) {
    link_->prepared[entry.prepares].ready = true;
    if (entry.refusal) link_->prepared.erase(entry.prepares);
  }
  if (!entry.done) return;
  if (entry.refusal) return entry.done(*entry.refusal, {});
  entry.done({.sent = entry.sent}, entry.results);
}

// --- The end ---------------------------------------------------------------------------------------------------------

// The server sends the reason before it ends the session.
void LibpqConnection::note_end(const PGresult& message) {
  const char* const severity = PQresultErrorField(&message, PG_DIAG_SEVERITY_NONLOCALIZED);
  const std::string_view word = severity == nullptr ? "" : severity;
  if (word != "FATAL" && word != "PANIC") return;
  link_->ended = Failure{errc::unavailable, server_failure(dialler_.endpoint(), message).detail};
  if (const char* const sqlstate = PQresultErrorField(&message, PG_DIAG_SQLSTATE)) link_->sqlstate_of_end = sqlstate;
}

Failure LibpqConnection::unavailable(const std::string& why) const {
  return {errc::unavailable, dialler_.endpoint() + ": " + (why.empty() ? "the connection is broken" : why)};
}

Failure LibpqConnection::last_error() const {
  return unavailable(in_one_line(PQerrorMessage(link_->handle.get())));
}

// Until the connection is ready, the dialler may try another address.
void LibpqConnection::give_up(Failure why) {
  if (ready_) return break_off(why);
  greeting_timer_.disarm();
  link_.reset();
  dialler_.failed(std::move(why));
}

// In a later task: send() must not call a handler. First read the reason that the server may have sent.
void LibpqConnection::give_up_soon() {
  link_->clogged = true;  // nothing more goes out
  executor_.post([this, why = last_error(), life = link_->lifetime.watch()] {
    if (!life.over()) receive();
    if (!life.over()) give_up(why);
  });
}

void LibpqConnection::break_off(const Failure& why) {
  if (std::exchange(lost_, true)) return;
  // A handler may destroy the owner of `why`. NOLINTNEXTLINE(performance-unnecessary-copy-initialization)
  const Failure reason = why;
  greeting_timer_.disarm();
  dialler_.stop();
  const auto link = std::move(link_);
  const Lifetime::Watch life = lifetime_.watch();
  if (ready_) {  // otherwise only the preamble is in flight
    link->close();
    for (const InFlight& entry : link->in_flight) {
      const Outcome unknown{.problem = Problem::unknown_outcome,
                            .failure = {errc::ambiguous, reason.detail},
                            .server_code = link->sqlstate_of_end,
                            .sent = entry.sent};
      if (entry.done) entry.done(entry.refusal.value_or(unknown), {});
      if (life.over()) return;
    }
    for (const Query& query : link->unsent) {
      if (query.done) query.done({.problem = Problem::not_sent, .failure = {errc::unavailable, reason.detail}}, {});
      if (life.over()) return;
    }
  }
  listener_.connection_lost(reason);
}

void LibpqConnection::Link::close() {
  descriptor.reset();
  handle.get_deleter().abandon = !in_flight.empty();
  handle.reset();
}

}  // namespace dlock::postgres
