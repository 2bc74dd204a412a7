#include "postgres/floor.hpp"

#include <libpq-fe.h>

#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/postgres/advisory_key.hpp"
#include "backends/postgres/statements.hpp"

namespace bench {

namespace {

using dlock::postgres::Durability;
using dlock::postgres::Statement;

constexpr const char* schema = "dlock";
constexpr const char* holder = "floor";
constexpr const char* owner = "0123456789abcdef0123456789abcdef";
constexpr const char* lease_ms = "30000";

struct Finish {
  void operator()(PGconn* connection) const noexcept { PQfinish(connection); }
};
struct Clear {
  void operator()(PGresult* result) const noexcept { PQclear(result); }
};
using Result = std::unique_ptr<PGresult, Clear>;

void check(const PGresult* result) {
  const ExecStatusType status = PQresultStatus(result);
  if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK && status != PGRES_PIPELINE_SYNC) {
    throw std::runtime_error(std::string("the floor: ") + PQresultErrorMessage(result));
  }
}

void expect(bool granted) {
  if (!granted) throw std::runtime_error("the floor lost a lock");
}

class Connection {
 public:
  explicit Connection(const std::string& url) : connection_(PQconnectdb(url.c_str())) {
    if (PQstatus(get()) != CONNECTION_OK) throw std::runtime_error(PQerrorMessage(get()));
  }

  [[nodiscard]] PGconn* get() const noexcept { return connection_.get(); }
  void prepare(const char* name, const Statement& statement) const {
    check(Result(PQprepare(get(), name, statement.sql.c_str(), 0, nullptr)).get());
  }
  [[nodiscard]] Result call(const char* name, const std::vector<const char*>& params) const {
    Result result(
        PQexecPrepared(get(), name, static_cast<int>(params.size()), params.data(), nullptr, nullptr, as_text));
    check(result.get());
    return result;
  }
  // The halves of a pipeline.
  void send(const char* name, const std::vector<const char*>& params) const {
    expect(PQsendQueryPrepared(get(), name, static_cast<int>(params.size()), params.data(), nullptr, nullptr,
                               as_text) == 1);
  }
  void sync() const { expect(PQpipelineSync(get()) == 1); }
  // Of the next statement that was sent.
  [[nodiscard]] Result receive() const {
    Result result(PQgetResult(get()));
    check(result.get());
    // Nothing comes after the answer of a statement; what comes after a sync is the next answer.
    if (PQresultStatus(result.get()) != PGRES_PIPELINE_SYNC) (void)Result(PQgetResult(get()));
    return result;
  }

 private:
  static constexpr int as_text = 0;

  std::unique_ptr<PGconn, Finish> connection_;
};

// strategy=table and strategy=optimistic
class RowFloor final : public Floor {
 public:
  RowFloor(const std::string& url, std::string name, const dlock::postgres::RowStatements& statements, bool optimistic)
      : connection_(url), name_(std::move(name)) {
    connection_.prepare("acquire", statements.acquire);
    connection_.prepare("release", statements.release);
    acquire_ = {name_.c_str(), owner, holder, lease_ms};
    if (optimistic) acquire_.insert(acquire_.end(), {"", "0"});
    release_ = {name_.c_str(), owner, "floor"};
  }

  void acquire() override {
    const Result result = connection_.call("acquire", acquire_);
    expect(PQntuples(result.get()) == 1 && PQgetisnull(result.get(), 0, 1) == 0);
  }
  void release() override { expect(PQntuples(connection_.call("release", release_).get()) == 1); }

 private:
  Connection connection_;
  std::string name_;
  std::vector<const char*> acquire_;
  std::vector<const char*> release_;
};

// strategy=for-update: BEGIN and the rest in one round trip.
class ForUpdateFloor final : public Floor {
 public:
  ForUpdateFloor(const std::string& url, std::string name) : connection_(url), name_(std::move(name)) {
    const auto statements = dlock::postgres::for_update_statements(schema, Durability::sync);
    connection_.prepare("ensure", statements.ensure);
    connection_.prepare("begin", statements.begin);
    connection_.prepare("try_lock", statements.try_lock);
    connection_.prepare("commit", statements.commit);
    (void)connection_.call("ensure", {name_.c_str()});
    expect(PQenterPipelineMode(connection_.get()) == 1);
  }

  void acquire() override {
    connection_.send("begin", {});
    connection_.send("try_lock", {name_.c_str(), holder});
    connection_.sync();
    (void)connection_.receive();
    expect(PQntuples(connection_.receive().get()) == 1);
    (void)connection_.receive();
  }
  void release() override {
    connection_.send("commit", {});
    connection_.sync();
    (void)connection_.receive();
    (void)connection_.receive();
  }

 private:
  Connection connection_;
  std::string name_;
};

class AdvisoryFloor final : public Floor {
 public:
  AdvisoryFloor(const std::string& url, std::string name) : connection_(url), name_(std::move(name)) {
    const auto key = dlock::postgres::advisory_key({}, schema, name_);
    const auto statements = dlock::postgres::advisory_statements(schema, Durability::sync, key.space);
    key_ = dlock::postgres::key_parameter(key, name_);
    connection_.prepare("try_lock", statements.try_lock);
    connection_.prepare("unlock", statements.unlock);
  }

  void acquire() override {
    expect(PQntuples(connection_.call("try_lock", {key_.c_str(), name_.c_str(), holder}).get()) == 1);
  }
  void release() override {
    const Result result = connection_.call("unlock", {key_.c_str()});
    expect(std::string_view(PQgetvalue(result.get(), 0, 0)) == "t");
  }

 private:
  Connection connection_;
  std::string name_;
  std::string key_;
};

}  // namespace

std::unique_ptr<Floor> make_floor(const std::string& strategy, const std::string& url, const std::string& name) {
  using namespace dlock::postgres;
  if (strategy == "table") {
    return std::make_unique<RowFloor>(url, name, table_statements(schema, Durability::sync), false);
  }
  if (strategy == "optimistic") {
    return std::make_unique<RowFloor>(url, name, optimistic_statements(schema, Durability::sync), true);
  }
  if (strategy == "for-update") return std::make_unique<ForUpdateFloor>(url, name);
  if (strategy == "advisory") return std::make_unique<AdvisoryFloor>(url, name);
  throw std::invalid_argument("no floor for strategy " + strategy);
}

}  // namespace bench
