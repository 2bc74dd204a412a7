#include "bench/targets/postgres/connection.hpp"

#include <libpq-fe.h>

#include <stdexcept>

#include "bench/targets/postgres/libpq_url.hpp"

namespace dlock::bench {

namespace {

constexpr int as_text = 0;

void say_nothing(void* /*context*/, const char* /*message*/) {}

}  // namespace

void ClearPostgresResult::operator()(PGresult* result) const noexcept {
  PQclear(result);
}

void PostgresConnection::Finish::operator()(PGconn* connection) const noexcept {
  PQfinish(connection);
}

PostgresConnection::PostgresConnection(const rig::UrlText& url) : connection_(PQconnectdb(libpq_url(url).c_str())) {
  require(PQstatus(get()) == CONNECTION_OK);
  (void)PQsetNoticeProcessor(get(), &say_nothing, nullptr);  // answers with the one before
}

void PostgresConnection::require(bool sent) const {
  if (!sent) throw std::runtime_error(std::string("PostgreSQL: ") + PQerrorMessage(get()));
}

void PostgresConnection::check(const PGresult* result) const {
  const ExecStatusType status = PQresultStatus(result);
  require(result != nullptr);
  if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK && status != PGRES_PIPELINE_SYNC) {
    throw std::runtime_error(std::string("PostgreSQL: ") + PQresultErrorMessage(result));
  }
}

void PostgresConnection::run(const std::string& sql) const {
  check(PostgresResult(PQexec(get(), sql.c_str())).get());
}

std::string PostgresConnection::value(const std::string& sql) const {
  const PostgresResult result(PQexec(get(), sql.c_str()));
  check(result.get());
  return PQntuples(result.get()) > 0 ? PQgetvalue(result.get(), 0, 0) : "";
}

void PostgresConnection::prepare(const char* name, const std::string& sql) const {
  check(PostgresResult(PQprepare(get(), name, sql.c_str(), 0, nullptr)).get());
}

PostgresResult PostgresConnection::call(const char* name, const std::vector<const char*>& params) const {
  PostgresResult result(
      PQexecPrepared(get(), name, static_cast<int>(params.size()), params.data(), nullptr, nullptr, as_text));
  check(result.get());
  return result;
}

void PostgresConnection::enter_pipeline() const {
  require(PQenterPipelineMode(get()) == 1);
}

void PostgresConnection::send(const char* name, const std::vector<const char*>& params) const {
  require(PQsendQueryPrepared(get(), name, static_cast<int>(params.size()), params.data(), nullptr, nullptr, as_text) ==
          1);
}

void PostgresConnection::sync() const {
  require(PQpipelineSync(get()) == 1);
}

PostgresResult PostgresConnection::receive() const {
  PostgresResult result(PQgetResult(get()));
  // Nothing comes after the answer of a statement; what comes after a sync is the next answer.
  if (PQresultStatus(result.get()) != PGRES_PIPELINE_SYNC) (void)PostgresResult(PQgetResult(get()));
  check(result.get());
  return result;
}

bool waits_for_the_disk(const rig::UrlText& url) {
  return url.parameter("durability").value_or("sync") == "sync";
}

PostgresConnection connect_durably(const rig::UrlText& url) {
  PostgresConnection connection(url);
  if (!waits_for_the_disk(url)) connection.run("SET synchronous_commit = off");
  return connection;
}

}  // namespace dlock::bench
