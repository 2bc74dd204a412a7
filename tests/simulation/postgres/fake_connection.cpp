#include "fake_connection.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace dlock::postgres {

// --- What is asked and answered --------------------------------------------------------------------------------------

bool FakeQuery::uses(const Statement& statement) const {
  return std::any_of(commands.begin(), commands.end(), [&](const Command& command) {
    return command.statement != nullptr && (command.statement == &statement || command.statement->sql == statement.sql);
  });
}

const std::string& FakeQuery::sql() const {
  const Command& first = commands.front();
  return first.statement != nullptr ? first.statement->sql : first.text;
}

std::string FakeQuery::param(std::size_t index) const {
  const auto last =
      std::find_if(commands.rbegin(), commands.rend(), [](const Command& each) { return !each.params.empty(); });
  return last == commands.rend() ? std::string() : last->params.at(index).value_or("");
}

bool is_heartbeat(const FakeQuery& query) {
  return query.commands.size() == 1 && query.sql() == heartbeat_sql;
}

FakeReply FakeReply::of(std::vector<Rows::Row> rows) {
  const auto affected = rows.size();
  return {.results = {{.rows = std::move(rows), .affected = affected}}};
}

FakeReply FakeReply::refused(std::string sqlstate, std::size_t failed_command) {
  return {.sqlstate = std::move(sqlstate), .failed_command = failed_command};
}

// --- The server ------------------------------------------------------------------------------------------------------

ConnectionFactory FakeServer::connections(int process) {
  return [this, process](Executor& executor, const Options& options, const Purpose& purpose,
                         Connection::Listener& listener) {
    return std::make_unique<FakeConnection>(*this, process, executor, options, purpose, listener);
  };
}

FakeReply FakeServer::decide(const FakeQuery& query) {
  if (is_heartbeat(query) && !replies_to_heartbeats) return {};
  return reply ? reply(query) : FakeReply{};
}

void FakeServer::release(bool noticed) {
  std::vector<FakeConnection::InFlight*> held;
  for (FakeConnection* const connection : connections_) {
    for (auto& entry : connection->in_flight_) {
      if (entry.reply.fate == FakeReply::Fate::hold) held.push_back(&entry);
    }
  }
  std::stable_sort(held.begin(), held.end(),
                   [](const auto* a, const auto* b) { return a->query.sent < b->query.sent; });
  for (auto* const entry : held) entry->reply = decide(entry->query);
  for (FakeConnection* const connection : connections_) {
    if (noticed) connection->post([connection] { connection->deliver(); });
  }
}

void FakeServer::answer(int connection, std::uint64_t query, FakeReply reply) {
  for (FakeConnection* const each : connections_) {
    if (each->number_ != connection) continue;
    for (auto& entry : each->in_flight_) {
      if (entry.query.number == query) entry.reply = std::move(reply);
    }
    return each->post([each] { each->deliver(); });
  }
}

void FakeServer::break_connections(const std::string& why, int connection, const std::string& sqlstate) {
  for (FakeConnection* const each : connections_) {
    if (connection != 0 && each->number_ != connection) continue;
    each->post([each, why, sqlstate] { each->end({errc::unavailable, why}, sqlstate); });
  }
}

void FakeServer::bury(int process) {
  for (FakeConnection* const each : connections_) {
    if (each->process_ != process) continue;
    each->buried_ = true;
    if (gone) gone(each->number_);
  }
}

void FakeServer::notify(const std::string& channel, const std::string& payload, int connection) {
  for (FakeConnection* const each : connections_) {
    if (connection != 0 && each->number_ != connection) continue;
    each->post([each, channel, payload] {
      if (each->usable()) each->listener_.connection_notified(channel, payload);
    });
  }
}

std::size_t FakeServer::connected() const noexcept {
  return static_cast<std::size_t>(std::count_if(connections_.begin(), connections_.end(),
                                                [](const FakeConnection* each) { return each->usable(); }));
}

std::size_t FakeServer::alike(const FakeConnection& connection) const noexcept {
  return static_cast<std::size_t>(std::count_if(connections_.begin(), connections_.end(), [&](const auto* each) {
    return each->usable() && &each->options_ == &connection.options_ && each->purpose_.word == connection.purpose_.word;
  }));
}

std::size_t FakeServer::count(const Statement& statement) const {
  return static_cast<std::size_t>(
      std::count_if(queries.begin(), queries.end(), [&](const FakeQuery& query) { return query.uses(statement); }));
}

std::size_t FakeServer::count(const std::string& sql) const {
  return static_cast<std::size_t>(
      std::count_if(queries.begin(), queries.end(), [&](const FakeQuery& query) { return query.sql() == sql; }));
}

// --- A connection ----------------------------------------------------------------------------------------------------

FakeConnection::FakeConnection(FakeServer& server, int process, Executor& executor, const Options& options,
                               Purpose purpose, Listener& listener)
    : server_(server),
      process_(process),
      executor_(executor),
      options_(options),
      purpose_(std::move(purpose)),
      listener_(listener),
      number_(++server.dialled),
      timer_(executor) {
  server_.connections_.push_back(this);
}

FakeConnection::~FakeConnection() {
  (void)std::erase(server_.connections_, this);
  if (state_ == State::ready && server_.gone) server_.gone(number_);
}

void FakeConnection::post(std::function<void()> task) {
  if (!buried_)
    executor_.post(lifetime_.guard([this, task = std::move(task)] {
      if (!buried_) task();
    }));
}

void FakeConnection::open(TimePoint deadline) {
  info_ = server_.info;
  info_.backend_pid = 1000 + number_;
  info_.endpoint = "fake:5432/locks";
  const bool reachable = !server_.unreachable.contains(process_);
  switch (reachable ? server_.dialling : FakeServer::Dialling::fail) {
    case FakeServer::Dialling::accept:
      return post([this] { accept(); });
    case FakeServer::Dialling::silence:
      return timer_.arm(deadline, [this] { break_off({errc::unavailable, "fake: no connection in time"}); });
    case FakeServer::Dialling::fail:
      return post([this] { break_off({errc::unavailable, "fake: connection refused"}); });
    case FakeServer::Dialling::refuse_password:
      return post([this] { break_off({errc::access_denied, "fake: password authentication failed"}); });
  }
}

void FakeConnection::accept() {
  if (state_ != State::connecting) return;
  if (server_.room && server_.connected() >= *server_.room) {
    return break_off({errc::unavailable, "fake: FATAL:  53300: sorry, too many clients already"});
  }
  state_ = State::ready;
  if (server_.opened) server_.opened(*this);
  listener_.connection_ready();
}

void FakeConnection::send(Query query) {
  if (!usable()) {
    return post([done = std::move(query.done)] {
      if (done) done({.problem = Problem::not_sent, .failure = {errc::unavailable, "fake: not connected"}}, {});
    });
  }
  FakeQuery asked{.commands = std::move(query.commands),
                  .purpose = purpose_,
                  .connection = number_,
                  .sent = executor_.now(),
                  .process = process_,
                  .number = ++server_.asked_};
  if (is_heartbeat(asked)) ++server_.heartbeats;
  // It may be answered before decide() returns.
  in_flight_.push_back({asked, std::move(query.done), FakeReply::held()});
  if (buried_) return;
  std::optional<FakeReply> aside = server_.aside ? server_.aside(asked) : std::nullopt;
  if (!aside && server_.counts(asked) && server_.records) server_.queries.push_back(asked);
  FakeReply reply = aside ? *std::move(aside) : server_.decide(asked);
  if (reply.fate != FakeReply::Fate::hold) in_flight_.back().reply = std::move(reply);
  post([this] { deliver(); });
}

void FakeConnection::receive() {
  deliver();
}

void FakeConnection::deliver() {
  const Lifetime::Watch life = lifetime_.watch();
  while (state_ == State::ready && !in_flight_.empty()) {
    const FakeReply::Fate fate = in_flight_.front().reply.fate;
    if (fate == FakeReply::Fate::hold) return;
    if (fate == FakeReply::Fate::lose) return break_off({errc::unavailable, "fake: the connection broke"});
    InFlight entry = std::move(in_flight_.front());
    in_flight_.pop_front();
    if (!entry.done) continue;
    Outcome outcome{.sent = entry.query.sent};
    if (entry.reply.sqlstate.empty()) {
      entry.reply.results.resize(entry.query.commands.size());
    } else {
      outcome.problem = Problem::refused;
      outcome.sqlstate = entry.reply.sqlstate;
      outcome.failed_command = entry.reply.failed_command;
      outcome.failure = {errc::unavailable, "fake: refused (SQLSTATE " + outcome.sqlstate + ")"};
      entry.reply.results.clear();
    }
    entry.done(outcome, entry.reply.results);
    if (life.over()) return;
  }
}

void FakeConnection::break_off(const Failure& why) {
  end(why, {});
}

void FakeConnection::end(const Failure& why, const std::string& sqlstate) {
  if (state_ == State::lost) return;
  const Failure reason = why;
  if (std::exchange(state_, State::lost) == State::ready && server_.gone) server_.gone(number_);
  timer_.disarm();
  const Lifetime::Watch life = lifetime_.watch();
  for (const InFlight& entry : std::exchange(in_flight_, {})) {
    if (!entry.done) continue;
    const bool ended = entry.reply.fate == FakeReply::Fate::lose;
    entry.done({.problem = Problem::unknown_outcome,
                .failure = {errc::ambiguous, reason.detail},
                .sqlstate = ended ? entry.reply.sqlstate : sqlstate,
                .sent = entry.query.sent},
               {});
    if (life.over()) return;
  }
  listener_.connection_lost(reason);
}

}  // namespace dlock::postgres
