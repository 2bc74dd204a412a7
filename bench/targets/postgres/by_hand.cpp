#include "bench/targets/postgres/by_hand.hpp"

#include <libpq-fe.h>

#include <stdexcept>
#include <utility>

#include "backends/postgres/sql/identifier.hpp"
#include "bench/targets/own_name.hpp"

namespace dlock::bench {

namespace {

class RowByHand final : public Floor {
 public:
  RowByHand(const rig::UrlText& url, const ByHandTables& tables, std::string name)
      : connection_(connect_durably(url)), name_(std::move(name)), owner_(own_name()) {
    connection_.prepare("acquire",
                        "INSERT INTO " + tables.locks + " (name, owner) VALUES ($1, $2) ON CONFLICT DO NOTHING");
    connection_.prepare("release", "DELETE FROM " + tables.locks + " WHERE name = $1 AND owner = $2");
  }

  void acquire() override { require_free(changes_a_row("acquire")); }
  void release() override { require_held(changes_a_row("release")); }

 private:
  [[nodiscard]] bool changes_a_row(const char* statement) const {
    const PostgresResult result = connection_.call(statement, {name_.c_str(), owner_.c_str()});
    return std::string_view(PQcmdTuples(result.get())) == "1";
  }

  PostgresConnection connection_;
  std::string name_;
  std::string owner_;
};

class AdvisoryByHand final : public Floor {
 public:
  AdvisoryByHand(const rig::UrlText& url, const ByHandTables& tables, const std::string& name)
      // Advisory locks know no tables: the name alone could be that of another run.
      : connection_(connect_durably(url)), name_(tables.counters + "/" + name) {
    connection_.prepare("acquire",
                        "WITH lock AS (SELECT pg_try_advisory_lock(hashtextextended($1::text, 0)) AS got)"
                        " INSERT INTO " +
                            tables.counters +
                            " AS counter (name, token) SELECT $1::text, 1 FROM lock WHERE got"
                            " ON CONFLICT (name) DO UPDATE SET token = counter.token + 1 RETURNING token");
    connection_.prepare("release", "SELECT pg_advisory_unlock(hashtextextended($1::text, 0))");
  }

  void acquire() override { require_free(PQntuples(connection_.call("acquire", {name_.c_str()}).get()) == 1); }
  void release() override {
    const PostgresResult result = connection_.call("release", {name_.c_str()});
    require_held(std::string_view(PQgetvalue(result.get(), 0, 0)) == "t");
  }

 private:
  PostgresConnection connection_;
  std::string name_;
};

// BEGIN, UPDATE and COMMIT are a round trip each.
class ForUpdateByHand final : public Floor {
 public:
  ForUpdateByHand(const rig::UrlText& url, const ByHandTables& tables, std::string name)
      : connection_(connect_durably(url)), name_(std::move(name)) {
    connection_.prepare("row", "INSERT INTO " + tables.counters + " VALUES ($1, 0) ON CONFLICT DO NOTHING");
    connection_.prepare("count", "WITH free AS (SELECT name FROM " + tables.counters +
                                     " WHERE name = $1 FOR UPDATE NOWAIT)"
                                     " UPDATE " +
                                     tables.counters +
                                     " AS counter SET token = counter.token + 1"
                                     " FROM free WHERE counter.name = free.name RETURNING counter.token");
    (void)connection_.call("row", {name_.c_str()});
  }

  // Where it throws, the connection is of no more use.
  void acquire() override {
    connection_.run("BEGIN");
    require_free(PQntuples(connection_.call("count", {name_.c_str()}).get()) == 1);
    held_ = true;
  }
  void release() override {
    require_held(std::exchange(held_, false));
    connection_.run("COMMIT");
  }

 private:
  PostgresConnection connection_;
  std::string name_;
  bool held_ = false;
};

}  // namespace

ByHandTables by_hand_tables(const std::string& schema, const std::string& start) {
  return {.locks = postgres::qualified(schema, start + "_locks"),
          .counters = postgres::qualified(schema, start + "_counters")};
}

void make(const ByHandTables& tables, const PostgresConnection& connection) {
  // Sent together they are one transaction.
  connection.run("CREATE TABLE " + tables.locks + " (name text PRIMARY KEY, owner text NOT NULL); CREATE TABLE " +
                 tables.counters + " (name text PRIMARY KEY, token bigint NOT NULL)");
}

void drop(const ByHandTables& tables, const PostgresConnection& connection) {
  connection.run("DROP TABLE IF EXISTS " + tables.locks + ", " + tables.counters);
}

std::unique_ptr<Floor> make_postgres_by_hand(const rig::UrlText& url, std::string_view strategy,
                                             const ByHandTables& tables, const std::string& name) {
  if (strategy == "table" || strategy == "optimistic") return std::make_unique<RowByHand>(url, tables, name);
  if (strategy == "advisory") return std::make_unique<AdvisoryByHand>(url, tables, name);
  if (strategy == "for-update") return std::make_unique<ForUpdateByHand>(url, tables, name);
  throw std::invalid_argument("no floor for strategy " + std::string(strategy));
}

}  // namespace dlock::bench
