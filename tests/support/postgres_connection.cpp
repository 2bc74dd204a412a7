#include "tests/support/postgres_connection.hpp"

#include <libpq-fe.h>
#include <poll.h>

#include <cerrno>
#include <chrono>
#include <stdexcept>

#include "torture/rig/hang_guard.hpp"

namespace dlock::test {
namespace {

struct Clear {
  void operator()(PGresult* result) const noexcept { PQclear(result); }
};
using Answer = std::unique_ptr<PGresult, Clear>;

PostgresReply reply_of(const PGresult& result) {
  PostgresReply reply;
  const ExecStatusType status = PQresultStatus(&result);
  if (status == PGRES_FATAL_ERROR || status == PGRES_BAD_RESPONSE) {
    const char* const code = PQresultErrorField(&result, PG_DIAG_SQLSTATE);
    reply.error = PQresultErrorMessage(&result);
    if (code == nullptr) throw std::runtime_error(reply.error);
    reply.sqlstate = code;
    return reply;
  }
  for (int y = 0; y < PQntuples(&result); ++y) {
    auto& row = reply.rows.emplace_back();
    for (int x = 0; x < PQnfields(&result); ++x) {
      if (PQgetisnull(&result, y, x) != 0) {
        row.emplace_back();
      } else {
        row.emplace_back(PQgetvalue(&result, y, x));
      }
    }
  }
  return reply;
}

void ignore_notice(void* /*nothing*/, const PGresult* /*notice*/) {}

}  // namespace

void PostgresConnection::Finish::operator()(pg_conn* connection) const noexcept {
  PQfinish(connection);
}

PostgresConnection::PostgresConnection(const std::string& conninfo) : connection_(PQconnectdb(conninfo.c_str())) {
  if (PQstatus(connection_.get()) != CONNECTION_OK) throw std::runtime_error(PQerrorMessage(connection_.get()));
  (void)PQsetNoticeReceiver(connection_.get(), &ignore_notice, nullptr);
}

int PostgresConnection::backend_pid() const noexcept {
  return PQbackendPID(connection_.get());
}

void PostgresConnection::send(const std::string& sql) {
  if (PQsendQuery(connection_.get(), sql.c_str()) != 1) throw std::runtime_error(PQerrorMessage(connection_.get()));
}

void PostgresConnection::await_input() const {
  while (PQisBusy(connection_.get()) != 0) {
    pollfd source{.fd = PQsocket(connection_.get()), .events = POLLIN, .revents = 0};
    const int ready = ::poll(&source, 1, static_cast<int>(std::chrono::milliseconds(rig::hang_guard).count()));
    if (ready == 0) throw std::runtime_error("hang: PostgreSQL does not answer");
    if (ready < 0 && errno != EINTR) throw std::runtime_error("poll");
    if (PQconsumeInput(connection_.get()) != 1) throw std::runtime_error(PQerrorMessage(connection_.get()));
  }
}

PostgresReply PostgresConnection::receive() {
  PostgresReply reply;
  for (;;) {
    await_input();
    const Answer answer(PQgetResult(connection_.get()));
    if (!answer) return reply;
    reply = reply_of(*answer);
  }
}

PostgresReply PostgresConnection::query(const std::string& sql) {
  send(sql);
  return receive();
}

void PostgresConnection::run(const std::string& sql) {
  if (const PostgresReply reply = query(sql); reply.is_error()) throw std::runtime_error(sql + ": " + reply.error);
}

std::string PostgresConnection::value(const std::string& sql) {
  const PostgresReply reply = query(sql);
  if (reply.is_error()) throw std::runtime_error(sql + ": " + reply.error);
  if (reply.rows.empty() || reply.rows[0].empty()) throw std::runtime_error(sql + ": no value");
  return reply.rows[0][0].value_or("");
}

}  // namespace dlock::test
