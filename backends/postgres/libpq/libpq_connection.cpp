#include "backends/postgres/libpq/libpq_connection.hpp"

#include <utility>

namespace dlock::postgres {

ConnectionFactory libpq_connections() {
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
      dialler_(executor, options, purpose, *this) {}

// --- Connecting ------------------------------------------------------------------------------------------------------

void LibpqConnection::dialled(PgHandle connection) {
  Pipeline::Events& events = *this;
  pipeline_ = std::make_unique<Pipeline>(executor_, std::move(connection), dialler_.endpoint(), events);
  if (auto problem = pipeline_->start()) return refuse(*std::move(problem));
  greeting_timer_.arm(dialler_.share_ends(), [this] {
    refuse({errc::unavailable, dialler_.endpoint() + ": no answer within the connect timeout"});
  });
  say_preamble();
}

void LibpqConnection::say_preamble() {
  preamble_.emplace(purpose_, Preamble::Facts{.version = pipeline_->server_version(),
                                              .backend_pid = pipeline_->backend_pid(),
                                              .pooler = options_.pooler});
  const std::size_t count = preamble_->commands().size();
  for (std::size_t i = 0; i < count; ++i) {
    pipeline_->send(
        {.commands = {preamble_->commands()[i]}, .done = [this, i](const Outcome& outcome, const Results& results) {
           preamble_answered(i, outcome, results);
         }});
  }
}

void LibpqConnection::preamble_answered(std::size_t command, const Outcome& outcome, const Results& results) {
  // A broken connection says so itself.
  if (outcome.problem == Problem::not_sent || outcome.problem == Problem::unknown_outcome) return;
  if (!preamble_->answered(command, outcome, results)) {
    const Failure& why = outcome.failure;
    return refuse({why.code ? why.code : errc::protocol,
                   dialler_.endpoint() + ": the server did not identify itself: " + why.detail});
  }
  if (command + 1 == preamble_->commands().size()) greeted();
}

void LibpqConnection::greeted() {
  server_ = preamble_->server();
  server_.endpoint = dialler_.endpoint();
  server_.encrypted = pipeline_->encrypted();
  if (server_.standby && options_.target_session_attrs != "any") {
    return refuse({errc::unavailable, server_.endpoint + ": it is a standby; locks need the primary"});
  }
  greeting_timer_.disarm();
  preamble_.reset();
  if (server_.read_only) {
    return refuse({errc::access_denied,
                   server_.endpoint + ": transactions are read-only by default (default_transaction_read_only), which "
                                      "cannot be changed behind a pooler; switch it off for this role and database"});
  }
  pipeline_->prepare_statements(!server_.pooled);
  ready_ = true;
  listener_.connection_ready();
}

void LibpqConnection::refuse(Failure why) {
  greeting_timer_.disarm();
  // It may be what called us, and its destruction answers no query.
  const auto gone = std::move(pipeline_);
  dialler_.refuse(std::move(why));
}

void LibpqConnection::dialling_failed(const Failure& why) {
  lose(why);
}

// --- Connected -------------------------------------------------------------------------------------------------------

void LibpqConnection::send(Query query) {
  if (usable()) return pipeline_->send(std::move(query));
  executor_.post(lifetime_.guard([done = std::move(query.done), endpoint = options_.endpoint()] {
    if (!done) return;
    done({.problem = Problem::not_sent, .failure = {errc::unavailable, endpoint + ": not connected"}}, {});
  }));
}

void LibpqConnection::receive() {
  if (pipeline_) pipeline_->receive();
}

void LibpqConnection::break_off(const Failure& why) {
  if (usable()) return pipeline_->break_off(why);
  if (lost_) return;
  greeting_timer_.disarm();
  const auto gone = std::move(pipeline_);
  dialler_.stop();
  lose(why);
}

void LibpqConnection::pipeline_broken(const Failure& why) {
  if (!ready_) return refuse(why);
  lose(why);
}

void LibpqConnection::pipeline_notified(const std::string& channel, const std::string& payload) {
  if (ready_) listener_.connection_notified(channel, payload);
}

void LibpqConnection::lose(const Failure& why) {
  lost_ = true;
  // It may belong to what is destroyed. NOLINTNEXTLINE(performance-unnecessary-copy-initialization)
  const Failure reason = why;
  listener_.connection_lost(reason);
}

}  // namespace dlock::postgres
