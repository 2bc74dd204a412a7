#include "bench/targets/postgres/same_requests.hpp"

#include <libpq-fe.h>

#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "backends/postgres/sql/advisory_key.hpp"
#include "backends/postgres/sql/statements.hpp"
#include "bench/targets/own_name.hpp"
#include "bench/targets/postgres/connection.hpp"

namespace dlock::bench {

namespace {

constexpr const char* holder = "floor";
constexpr const char* channel = "floor";

postgres::Durability durability_of(const rig::UrlText& url) {
  return waits_for_the_disk(url) ? postgres::Durability::sync : postgres::Durability::async;
}

// With those of dlock's settings that decide how the server plans its statements.
PostgresConnection connect(const rig::UrlText& url) {
  PostgresConnection connection = connect_durably(url);
  (void)connection.value(
      "SELECT set_config(name, CASE name WHEN 'plan_cache_mode' THEN 'force_generic_plan' ELSE 'off' END, false) "
      "FROM pg_settings WHERE name IN ('plan_cache_mode', 'enable_seqscan', 'jit')");
  return connection;
}

// "table" and "optimistic"
class RowFloor final : public Floor {
 public:
  RowFloor(const rig::UrlText& url, const std::string& name, const postgres::RowStatements& statements)
      : connection_(connect(url)), name_(name), owner_(own_name()) {
    connection_.prepare("acquire", statements.acquire_one.sql);
    connection_.prepare("release", statements.release_one.sql);
    acquire_ = {name_.c_str(), owner_.c_str(), holder, "30000", "", "0", "0", ""};
    release_ = {name_.c_str(), owner_.c_str(), "0", channel};
  }

  void acquire() override {
    const PostgresResult result = connection_.call("acquire", acquire_);
    require_free(PQntuples(result.get()) == 1 && PQgetisnull(result.get(), 0, 1) == 0);
  }
  void release() override {
    const PostgresResult result = connection_.call("release", release_);
    require_held(PQntuples(result.get()) == 1 && std::string_view(PQgetvalue(result.get(), 0, 1)) == "t");
  }

 private:
  PostgresConnection connection_;
  std::string name_;
  std::string owner_;
  std::vector<const char*> acquire_;
  std::vector<const char*> release_;
};

// "for-update": BEGIN and the rest in one round trip.
class ForUpdateFloor final : public Floor {
 public:
  ForUpdateFloor(const rig::UrlText& url, std::string name, const postgres::ForUpdateStatements& statements)
      : connection_(connect(url)), name_(std::move(name)) {
    connection_.prepare("ensure", statements.ensure.sql);
    connection_.prepare("begin", statements.begin.sql);
    connection_.prepare("try_lock", statements.try_lock.sql);
    connection_.prepare("commit", statements.commit.sql);
    (void)connection_.call("ensure", {name_.c_str()});
    connection_.enter_pipeline();
  }

  // Where it throws, the connection is of no more use.
  void acquire() override {
    connection_.send("begin", {});
    connection_.send("try_lock", {name_.c_str(), holder});
    connection_.sync();
    (void)connection_.receive();
    require_free(PQntuples(connection_.receive().get()) == 1);
    (void)connection_.receive();
    held_ = true;
  }
  void release() override {
    require_held(std::exchange(held_, false));
    connection_.send("commit", {});
    connection_.sync();
    (void)connection_.receive();
    (void)connection_.receive();
  }

 private:
  PostgresConnection connection_;
  std::string name_;
  bool held_ = false;
};

class AdvisoryFloor final : public Floor {
 public:
  AdvisoryFloor(const rig::UrlText& url, const std::string& schema, std::string name)
      : connection_(connect(url)), name_(std::move(name)) {
    const auto key = postgres::advisory_key({}, schema, name_);
    const auto statements = postgres::advisory_statements(schema, durability_of(url), key.space);
    key_ = postgres::key_parameter(key, name_);
    connection_.prepare("try_lock", statements.try_lock.sql);
    connection_.prepare("unlock", statements.unlock.sql);
  }

  void acquire() override {
    require_free(PQntuples(connection_.call("try_lock", {key_.c_str(), name_.c_str(), holder}).get()) == 1);
  }
  void release() override {
    const PostgresResult result = connection_.call("unlock", {key_.c_str()});
    require_held(std::string_view(PQgetvalue(result.get(), 0, 0)) == "t");
  }

 private:
  PostgresConnection connection_;
  std::string name_;
  std::string key_;
};

}  // namespace

std::unique_ptr<Floor> make_postgres_same_requests(const rig::UrlText& url, std::string_view strategy,
                                                   const std::string& schema, const std::string& name) {
  const postgres::Durability durability = durability_of(url);
  if (strategy == "table") {
    return std::make_unique<RowFloor>(url, name, postgres::table_statements(schema, durability));
  }
  if (strategy == "optimistic") {
    return std::make_unique<RowFloor>(url, name, postgres::optimistic_statements(schema, durability));
  }
  if (strategy == "for-update") {
    return std::make_unique<ForUpdateFloor>(url, name, postgres::for_update_statements(schema, durability));
  }
  if (strategy == "advisory") return std::make_unique<AdvisoryFloor>(url, schema, name);
  throw std::invalid_argument("no floor for strategy " + std::string(strategy));
}

}  // namespace dlock::bench
