#include "backends/mysql/client/libmariadb_connection.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "backends/common/received_bytes.hpp"
#include "backends/mysql/client/preamble.hpp"
#include "backends/mysql/errors.hpp"

namespace dlock::mysql {

using sql::Outcome;
using sql::Problem;
using sql::Query;
using sql::Results;

OpenConnection libmariadb_connections() {
  return
      [](Executor& executor, const Options& options, const sql::Purpose& purpose, sql::Connection::Listener& listener) {
        return std::make_unique<LibmariadbConnection>(executor, options, purpose, listener);
      };
}

LibmariadbConnection::LibmariadbConnection(Executor& executor, const Options& options, const sql::Purpose& purpose,
                                           Listener& listener)
    : executor_(executor),
      options_(options),
      listener_(listener),
      dialler_(executor, options, purpose, [this](Result<Session> result) { dialled(std::move(result)); }) {}

void LibmariadbConnection::dialled(Result<Session> result) {
  if (!result.ok()) return break_off(result.failure());
  server_ = result.value().server;
  link_ = std::make_unique<Link>(std::move(result.value()));
  try {
    link_->descriptor = executor_.watch(link_->socket.get());
  } catch (const Error& e) {
    return break_off({e.code(), server_.endpoint + ": " + e.detail()});
  }
  watch(MYSQL_WAIT_READ);
  listener_.connection_ready();
}

// --- Queries ---------------------------------------------------------------------------------------------------------

void LibmariadbConnection::send(Query query) {
  if (!usable()) {
    const Failure why{errc::unavailable, options_.endpoint() + ": not connected"};
    return executor_.post(lifetime_.guard([done = std::move(query.done), why] {
      if (done) done({.problem = Problem::not_sent, .failure = why}, {});
    }));
  }
  link_->unsent.push_back({.query = std::move(query)});
  if (link_->on_wire || link_->in_handler) return;
  if (const int events = start_next(); events != 0) return watch(events);
  link_->waits = 0;
  executor_.post(link_->lifetime.guard([this] { continue_after(0); }));
}

int LibmariadbConnection::start_next() {
  link_->on_wire = std::move(link_->unsent.front());
  link_->unsent.pop_front();
  link_->on_wire->sent = executor_.now();
  return start_query();
}

int LibmariadbConnection::start_query() {
  Pending& pending = *link_->on_wire;
  auto text = text_of(pending.query, link_->prepares ? &link_->prepared : nullptr, server_.retries);
  if (!text.ok()) {
    pending.refusal = Outcome{.problem = Problem::not_sent, .failure = text.failure()};
    return 0;
  }
  pending.text = std::move(text.value());
  return start(std::move(pending.text.text), pending.text.statements());
}

int LibmariadbConnection::start(std::string text, std::size_t statements) {
  link_->received.reset();
  return link_->exchange.start(std::move(text), statements);
}

// events: those for which the exchange waits; 0: it has ended.
void LibmariadbConnection::continue_after(int events) {
  const Lifetime::Watch life = link_->lifetime.watch();
  while (events == 0) {
    const auto rollback = finish_exchange();
    if (life.over()) return;
    if (!rollback && link_->unsent.empty()) return watch(MYSQL_WAIT_READ);
    events = rollback ? *rollback : start_next();
  }
  watch(events);
  if (answer_has_no_end()) break_off(unavailable("the server sends data without end, and answers no request"));
}

// The library keeps rows, or a message of any length, until the answer is complete. A query that is answered at once
// needs no system call.
bool LibmariadbConnection::answer_has_no_end() {
  const std::uint64_t received = common::received_bytes(link_->socket.get());
  if (!link_->received) link_->received = received;
  return received - *link_->received > common::longest_answer;
}

// Calls the handler, unless a ROLLBACK or the query itself goes out once more; then the answer is that of start().
std::optional<int> LibmariadbConnection::finish_exchange() {
  Pending& pending = *link_->on_wire;
  if (pending.refusal && pending.refusal->problem == Problem::not_sent) {
    finish_query(Outcome(*pending.refusal), {});
    return std::nullopt;
  }
  const QueryText& text = pending.text;
  const unsigned error = link_->exchange.error();
  Results& results = link_->exchange.results();
  if (!pending.refusal) {
    const std::size_t prepared = std::min(results.size(), text.prepares.size());
    link_->prepared.insert(link_->prepared.end(), text.prepares.begin(),
                           text.prepares.begin() + static_cast<std::ptrdiff_t>(prepared));
  }
  if (error != 0) {
    const Failure why = failure_of(server_.endpoint, error, link_->exchange.error_text());
    const bool of_library = is_of_library(error);
    if (of_library || ends_session(error)) {
      if (!of_library) code_of_end_ = std::to_string(error);
      break_off({errc::unavailable, why.detail});
      return std::nullopt;
    }
    if (pending.refusal) {
      break_off(unavailable("ROLLBACK was refused: " + why.detail));
      return std::nullopt;
    }
    // The server has executed nothing, and may have no room for more prepared statements.
    if (results.size() < text.prepares.size() && meaning_of(error).remedy != sql::Remedy::set_up) {
      link_->prepares = false;
      return start_query();
    }
    pending.refusal = Outcome{.problem = Problem::refused,
                              .failure = why,
                              .server_code = std::to_string(error),
                              .failed_command = results.size() - std::min(results.size(), text.before_commands()),
                              .sent = pending.sent};
    if (text.wrapped) return start("ROLLBACK", 1);
  } else if (!pending.refusal && results.size() != text.statements()) {
    break_off(unavailable("the server sent fewer answers than there were commands"));
    return std::nullopt;
  }
  if (pending.refusal) {
    finish_query(Outcome(*pending.refusal), {});
    return std::nullopt;
  }
  Results answers = std::move(results);
  answers.erase(answers.begin(), answers.begin() + static_cast<std::ptrdiff_t>(text.before_commands()));
  if (text.wrapped) answers.pop_back();
  finish_query({.sent = pending.sent}, answers);
  return std::nullopt;
}

void LibmariadbConnection::finish_query(const Outcome& outcome, const Results& results) {
  const sql::Handler done = std::move(link_->on_wire->query.done);
  link_->on_wire.reset();
  if (!done) return;
  const Lifetime::Watch life = link_->lifetime.watch();
  link_->in_handler = true;
  done(outcome, results);
  if (!life.over()) link_->in_handler = false;
}

// --- The socket ------------------------------------------------------------------------------------------------------

void LibmariadbConnection::watch(int events) {
  link_->waits = events;
  arm(MYSQL_WAIT_READ, Descriptor::Interest::readable);
  arm(MYSQL_WAIT_WRITE, Descriptor::Interest::writable);
}

void LibmariadbConnection::arm(int event, Descriptor::Interest interest) {
  if ((link_->waits & event) == 0 || (link_->armed & event) != 0) return;
  link_->armed |= event;
  link_->descriptor->async_wait(interest, [this, event](std::error_code) {
    link_->armed &= ~event;
    if ((link_->waits & event) != 0) ready(event);
  });
}

void LibmariadbConnection::ready(int events) {
  if (!link_->on_wire) return check_idle();
  continue_after(link_->exchange.resume(events));
}

void LibmariadbConnection::receive() {
  if (link_ && !link_->in_handler && link_->waits != 0) ready(link_->waits & (MYSQL_WAIT_READ | MYSQL_WAIT_WRITE));
}

// A server says nothing on an idle connection, unless it ends it.
void LibmariadbConnection::check_idle() {
  char byte = 0;
  const ssize_t count = ::recv(link_->socket.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return watch(MYSQL_WAIT_READ);
  break_off(unavailable("the server ended the session"));
}

// --- The end ---------------------------------------------------------------------------------------------------------

Failure LibmariadbConnection::unavailable(const std::string& why) const {
  return {errc::unavailable, server_.endpoint + ": " + why};
}

void LibmariadbConnection::break_off(const Failure& why) {
  if (std::exchange(lost_, true)) return;
  // A handler may destroy the owner of `why`. NOLINTNEXTLINE(performance-unnecessary-copy-initialization)
  const Failure reason = why;
  dialler_.stop();
  const Lifetime::Watch life = lifetime_.watch();
  if (const auto link = std::move(link_)) {
    link->close();
    if (auto& pending = link->on_wire; pending && pending->query.done) {
      const Outcome unknown{.problem = Problem::unknown_outcome,
                            .failure = {errc::ambiguous, reason.detail},
                            .server_code = code_of_end_,
                            .sent = pending->sent};
      pending->query.done(pending->refusal.value_or(unknown), {});
      if (life.over()) return;
    }
    for (const Pending& pending : link->unsent) {
      if (pending.query.done)
        pending.query.done({.problem = Problem::not_sent, .failure = {errc::unavailable, reason.detail}}, {});
      if (life.over()) return;
    }
  }
  listener_.connection_lost(reason);
}

LibmariadbConnection::Link::Link(Session session)
    : connection(std::move(session.connection)),
      socket(std::move(session.socket)),
      exchange(*connection),
      prepares(has_execute_using(session.server.version) && !session.server.pooled) {}

void LibmariadbConnection::Link::close() {
  descriptor.reset();
  if (!connection) return;
  if (on_wire) {
    cut(socket.get());
    exchange.abandon();
  }
  connection.reset();
  socket.reset();
}

}  // namespace dlock::mysql
