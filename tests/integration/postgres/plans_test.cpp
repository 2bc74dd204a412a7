// The server keeps the plan of a statement that it has prepared. One that was made when dlock's tables were empty has
// to be a good one when they are not.
#include <gtest/gtest.h>

#include <string>

#include "backends/postgres/sql/preamble.hpp"
#include "backends/postgres/sql/statements.hpp"
#include "explained.hpp"
#include "live_services.hpp"
#include "postgres/shared_server.hpp"

namespace dlock::test {

namespace {

using postgres::Durability;
using postgres::Statement;

class PlansTest : public OnSharedServer<testing::Test> {
 protected:
  PlansTest() : session_(server.admin_conninfo()) {
    server.run("DROP SCHEMA IF EXISTS dlock CASCADE");
    LiveServices services(server.url());
    EXPECT_FALSE(services.set_up());
    server.run("VACUUM ANALYZE");
    const postgres::Preamble preamble({}, {.version = 150000});
    for (const postgres::Command& command : preamble.commands()) {
      if (command.params.empty()) continue;
      session_.run("SELECT set_config('" + *command.params.at(0) + "', '" + *command.params.at(1) + "', false)");
    }
  }

  // With parameters that name one row.
  void prepare(const std::string& name, const Statement& statement, const std::string& parameters) {
    session_.run("PREPARE " + name + " AS " + statement.sql);
    session_.run("EXPLAIN EXECUTE " + name + "(" + parameters + ")");
    prepared_.emplace_back(name, parameters);
  }
  // All that row strategies ask about rows of one holder.
  void prepare(const postgres::RowStatements& use) {
    prepare("acquire", use.acquire,
            "'{7,8,n}', '{me,me,me}', '{me,me,me}', '{1000,1000,1000}', '{o7,o8,\"\"}', '{1,2,0}', '{0,0,0}', ''");
    prepare("acquire_one", use.acquire_one, "'7', 'me', 'me', 1000, 'o7', 1, 0, ''");
    prepare("release_one", use.release_one, "'7', 'o7', 1, ''");
    prepare("renew_one", use.renew_one, "'7', 'o7', 1000");
    prepare("renew", use.renew, "'{7}', '{o7}', '{1000}'");
    prepare("release", use.release, "'{7,8}', '{o7,o8}', '{1,1}', ''");
    prepare("mark", use.mark, "'{7,8}', 1000, 500");
    prepare("inspect", use.inspect, "'7'");
    prepare("break_lock", use.break_lock, "'7', ''");
  }
  void fill(const std::string& table, const std::string& columns, const std::string& values) {
    server.run("INSERT INTO dlock." + table + " (" + columns + ") SELECT " + values +
               " FROM generate_series(1, 20000) AS i");
  }
  void expect_few_rows_looked_at() {
    for (const auto& [name, parameters] : prepared_) {
      session_.run("BEGIN");
      const PostgresReply plan =
          session_.query("EXPLAIN (ANALYZE, TIMING OFF) EXECUTE " + name + "(" + parameters + ")");
      session_.run("ROLLBACK");
      ASSERT_FALSE(plan.is_error()) << name << ": " << plan.error;
      EXPECT_LT(rows_looked_at(plan), 200U) << name;
      for (const auto& row : plan.rows) EXPECT_FALSE(row.at(0).value().starts_with("JIT")) << name;
    }
  }

 private:
  PostgresConnection session_;
  std::vector<std::pair<std::string, std::string>> prepared_;
};

TEST_F(PlansTest, OfTableAreGoodForAnyNumberOfRows) {
  prepare(postgres::table_statements("dlock", Durability::sync));
  fill("lease", "name, owner, holder, token, expires_at", "i, 'o' || i, '', 1, 'infinity'");
  expect_few_rows_looked_at();
}

TEST_F(PlansTest, OfOptimisticAreGoodForAnyNumberOfRows) {
  prepare(postgres::optimistic_statements("dlock", Durability::sync));
  fill("optimistic", "name, owner, holder, version, token, lease_ms", "i, 'o' || i, '', 1, 1, 1000");
  expect_few_rows_looked_at();
}

TEST_F(PlansTest, OfElectionsAreGoodForAnyNumberOfRows) {
  prepare(postgres::table_statements("dlock", Durability::sync, LockKind::election));
  fill("lease_elect", "name, owner, holder, token, expires_at", "i, 'o' || i, '', 1, 'infinity'");
  expect_few_rows_looked_at();
}

TEST_F(PlansTest, OfWhatSeveralMayHoldAreGoodForAnyNumberOfRows) {
  const auto use = postgres::sharing_statements("dlock", Durability::sync, LockKind::semaphore);
  prepare("change", use.change,
          "'{7,8,n}', '{o7,me,me}', '{0,2,2}', '{1,1,1}', '{h,h,h}', '{1,1,1}', '{2,2,2}', '{0,9,0}', ''");
  prepare("mark", use.mark, "'{7,8}', 1000, 500");
  prepare("inspect", use.inspect, "'7'");
  prepare("break_lock", use.break_lock, "'7', ''");
  fill("lease_sem", "name, token, permits, holders",
       "i, 1, 2, jsonb_build_object('o' || i, jsonb_build_array(9000000000000000, 1, 1, 'h'))");
  expect_few_rows_looked_at();
}

// It costs more than the statements themselves.
TEST_F(PlansTest, AreNotCompiled) {
  const auto use = postgres::advisory_statements("dlock", Durability::sync, postgres::AdvisoryKey::KeySpace::bigint);
  prepare("forget", use.forget, "'7', 60000000, 100");
  prepare("list", use.list, "10");
  expect_few_rows_looked_at();
}

TEST_F(PlansTest, OfForUpdateAreGoodForAnyNumberOfRows) {
  const auto use = postgres::for_update_statements("dlock", Durability::sync);
  prepare("ensure", use.ensure, "'7'");
  prepare("try_lock", use.try_lock, "'7', 'me'");
  prepare("lock", use.lock, "'7', 'me'");
  prepare("try_in_transaction", use.try_in_transaction, "'7', 'me'");
  prepare("lock_in_transaction", use.lock_in_transaction, "'7', 'me', '1000', ''");
  prepare("inspect", use.inspect, "'7'");
  prepare("break_lock", use.break_lock, "'7', '{}'");
  fill("row_lock", "name", "i");
  fill("row_token", "name, holder, token", "i, '', 1");
  expect_few_rows_looked_at();
}

TEST_F(PlansTest, OfAdvisoryAreGoodForAnyNumberOfRows) {
  const auto use = postgres::advisory_statements("dlock", Durability::sync, postgres::AdvisoryKey::KeySpace::bigint);
  prepare("try_lock", use.try_lock, "'7', '7', 'me'");
  prepare("try_many", use.try_many, "'{7,8}', '{7,8}', '{me,me}'");
  prepare("inspect", use.inspect, "'7', '7'");
  const auto readers = postgres::advisory_statements("dlock", Durability::sync, postgres::AdvisoryKey::KeySpace::bigint,
                                                     LockKind::read_write, Mode::shared);
  prepare("try_shared", readers.try_lock, "'7', '7', 'me', '2'");
  prepare("join_shared", readers.join, "'7', '7', 'me', '2'");
  prepare("inspect_shared", readers.inspect, "'7', '7'");
  fill("fence_rw", "name, key, space, pid, holder, token", "i, i, 1, 0, '', 1");
  fill("fence", "name, key, space, pid, holder, token", "i, i, 1, 0, '', 1");
  expect_few_rows_looked_at();
}

}  // namespace

}  // namespace dlock::test
