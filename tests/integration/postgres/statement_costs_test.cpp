// The costs of each statement in the server. The server keeps the plan of a prepared statement, so one that was made
// when dlock's tables were empty must be good for full ones. A statement that finds a lock busy, or that only asks,
// writes nothing: no WAL, and no transaction that would have to be committed to disk.
#include <gtest/gtest.h>

#include <ostream>
#include <regex>
#include <string>
#include <vector>

#include "backends/postgres/sql/preamble.hpp"
#include "backends/postgres/sql/statements.hpp"
#include "postgres/postgres_test.hpp"

namespace dlock::test {

namespace {

using postgres::Durability;
using postgres::Statement;

constexpr std::size_t many_names = 20'000;
constexpr std::size_t few = 200;
constexpr std::size_t each_a_few_times = 20 * many_names;

enum class Writes { nothing, something, either };

struct Case {
  const char* what;
  Statement statement;
  std::string arguments;
  Writes writes = Writes::nothing;
  std::size_t most_rows = few;
  bool without_nested_loops = false;
};

struct Costs {
  std::string name;
  std::string fill;       // the tables with so many names
  std::string meanwhile;  // done by another session, which stays
  std::vector<Case> cases;
};

void PrintTo(const Costs& costs, std::ostream* out) {
  *out << costs.name;
}

std::string insert(const std::string& table, const std::string& columns, const std::string& values) {
  return "INSERT INTO dlock." + table + " (" + columns + ") SELECT " + values + " FROM generate_series(1, " +
         std::to_string(many_names) + ") AS i; ";
}

// Locks with one holder: o1 has 1, o2 has 2, ... Lock 9 is marked. Another transaction has the row of 10, which is
// free.
Costs of_rows(const std::string& name, const std::string& table, const postgres::RowStatements& use) {
  const bool optimistic = table == "optimistic";
  const auto tries = [](const std::string& which, const std::string& seen_owner, const std::string& seen_version) {
    return "'{" + which + "}', '{me}', '{h}', '{1000}', '{" + seen_owner + "}', '{" + seen_version + "}', '{0}', ''";
  };
  const std::string marked = "CASE WHEN i = 9 THEN 'infinity' ELSE '-infinity' END::timestamptz";
  const std::string many =
      "'{7,8,n}', '{me,me,me}', '{h,h,h}', '{1000,1000,1000}', '{o7,o8,\"\"}', '{1,2,0}', '{0,0,0}', ''";
  return {
      name,
      optimistic
          ? insert(table, "name, owner, holder, version, token, lease_ms, waiting_until",
                   "i, CASE WHEN i <> 10 THEN 'o' || i END, '', 1, 1, 1000, " + marked)
          : insert(table, "name, owner, holder, token, expires_at, waiting_until",
                   "i, 'o' || i, '', 1, CASE WHEN i = 10 THEN '-infinity' ELSE 'infinity' END::timestamptz, " + marked),
      "BEGIN; SELECT FROM dlock." + table + " WHERE name = '10' FOR UPDATE",
      {
          {"a try of a held lock", use.acquire, tries("7", "somebody", "7")},
          {"a try alone", use.acquire_one, "'7', 'me', 'h', 1000, 'somebody', 7, 0, ''"},
          {"a try of a free lock whose row another transaction has", use.acquire, tries("10", "", "0")},
          {"grants", use.acquire, many, Writes::something},
          {"a grant alone", use.acquire_one, "'n', 'me', 'h', 1000, '', 0, 0, ''", Writes::something},
          {"a renewal of a lost lock", use.renew, "'{7}', '{me}', '{1000}'"},
          {"a renewal of a lost lock alone", use.renew_one, "'7', 'me', 1000"},
          {"a renewal", use.renew, "'{7}', '{o7}', '{1000}'", Writes::something},
          {"a renewal alone", use.renew_one, "'7', 'o7', 1000", Writes::something},
          {"a release of a lost lock", use.release, "'{7}', '{me}', '{0}', 'c'"},
          {"a release of a lost lock alone", use.release_one, "'7', 'me', 0, 'c'"},
          {"releases", use.release, "'{7,8}', '{o7,o8}', '{1,1}', ''", Writes::something},
          {"a release alone", use.release_one, "'7', 'o7', 1, ''", Writes::something},
          {"a mark", use.mark, "'{7,8}', 60000, 30000", Writes::something},
          {"a mark on a marked lock", use.mark, "'{9}', 60000, 30000"},
          {"an inspection", use.inspect, "'7'"},
          {"a list", use.list, "100001", Writes::nothing, each_a_few_times},
          {"a break of a lock that is not held", use.break_lock, "'n', 'c'"},
          {"a break", use.break_lock, "'7', ''", Writes::something},
      }};
}

// A read-write lock, with 9 permits: writer o1 has 1, ... Writer me has marked 8. Lock 9 is read and marked, lock 11
// is read.
Costs of_sharing() {
  const auto use = postgres::sharing_statements("dlock", Durability::sync, LockKind::read_write);
  const auto change = [](const std::string& lock, const std::string& what, const std::string& weight,
                         const std::string& mark = "0") {
    return "'{" + lock + "}', '{me}', '{" + what + "}', '{1000}', '{h}', '{" + weight + "}', '{9}', '{" + mark +
           "}', 'c'";
  };
  return {"read_write",
          insert("lease_rw", "name, token, permits, holders, writer, marked_until",
                 "i, 1, 9, CASE WHEN i IN (9, 11) THEN '{\"r\": [9000000000000000, 1, 1, \"h\"]}' ELSE "
                 "jsonb_build_object('o' || i, jsonb_build_array(9000000000000000, 1, 9, 'h')) END, CASE WHEN i IN (8, "
                 "9) THEN 'me' END, CASE WHEN i IN (8, 9) THEN 'infinity' ELSE '-infinity' END::timestamptz"),
          "",
          {
              {"a reader while there is a writer", use.change, change("7", "2", "1")},
              {"a writer that does not wait", use.change, change("7", "2", "9")},
              {"a writer that waits", use.change, change("7", "2", "9", "60000"), Writes::something},
              {"a writer that has waited", use.change, change("8", "2", "9", "60000")},
              {"a reader while a writer waits", use.change,
               "'{9}', '{you}', '{2}', '{1000}', '{h}', '{1}', '{9}', '{0}', ''"},
              {"a reader among readers", use.change, change("11", "2", "1"), Writes::something},
              {"a renewal of a lost lock", use.change, change("7", "1", "9")},
              {"a release of a lost lock", use.change, change("7", "0", "9")},
              {"several", use.change,
               "'{7,8,n}', '{o7,you,me}', '{0,2,2}', '{1,1,1}', '{h,h,h}', '{9,1,1}', '{9,9,9}', '{0,9,0}', ''",
               Writes::something},
              {"a mark", use.mark, "'{7,8}', 60000, 30000", Writes::something},
              {"an inspection", use.inspect, "'7'"},
              {"a list", use.list, "100001", Writes::nothing, each_a_few_times},
              {"a break of a lock that is not held", use.break_lock, "'n', 'c'"},
              {"a break", use.break_lock, "'7', ''", Writes::something},
          }};
}

// Another transaction has lock 7.
Costs of_for_update() {
  const auto use = postgres::for_update_statements("dlock", Durability::sync);
  return {"for_update",
          insert("row_lock", "name", "i") + insert("row_token", "name, holder, token", "i, '', 1"),
          "BEGIN; SELECT FROM dlock.row_lock WHERE name = '7' FOR UPDATE",
          {
              {"a name that is known", use.ensure, "'7'"},
              {"a try of a held lock in a transaction", use.try_in_transaction, "'7', 'me'"},
              {"a try in a transaction", use.try_in_transaction, "'8', 'me'", Writes::something},
              {"a try", use.try_lock, "'8', 'me'", Writes::something},
              {"an acquire", use.lock, "'8', 'me'", Writes::something},
              {"an acquire in a transaction", use.lock_in_transaction, "'8', 'me', '1000', ''", Writes::something},
              {"an inspection", use.inspect, "'7'"},
              {"a list", use.list, "100001", Writes::nothing, each_a_few_times, true},
              {"forgetting", use.forget, "'7', 60000000, 100", Writes::either, each_a_few_times, true},
              {"forgetting idle names", use.forget, "'', 60000000, 1000", Writes::something, each_a_few_times, true},
              {"a break of a lock that is not held", use.break_lock, "'8', '{}'"},
          }};
}

// Another session has lock 7, and a thousand that nobody asks for.
Costs of_advisory() {
  constexpr auto bigint = postgres::AdvisoryKey::KeySpace::bigint;
  constexpr std::size_t all_locks = 10'000;  // those in pg_locks, a few times
  const auto use = postgres::advisory_statements("dlock", Durability::sync, bigint);
  const auto readers =
      postgres::advisory_statements("dlock", Durability::sync, bigint, LockKind::read_write, Mode::shared);
  return {"advisory",
          insert("fence", "name, key, space, pid, holder, token", "i, i, 1, 0, '', 1") +
              insert("fence_rw", "name, key, space, pid, holder, token", "i, i, 1, 0, '', 1"),
          "SELECT pg_advisory_lock(7); SELECT pg_advisory_lock(i) FROM generate_series(1001, 2000) AS i",
          {
              {"a try of a held lock", use.try_lock, "'7', '7', 'me'"},
              {"a try", use.try_lock, "'8', '8', 'me'", Writes::something},
              {"tries of a held lock", use.try_many, "'{7}', '{7}', '{me}'"},
              {"tries", use.try_many, "'{7,8}', '{7,8}', '{me,me}'", Writes::something},
              {"an inspection", use.inspect, "'7', '7'", Writes::nothing, all_locks},
              {"a list", use.list, "100001", Writes::nothing, each_a_few_times, true},
              {"forgetting", use.forget, "'7', 60000000, 100", Writes::either, each_a_few_times, true},
              {"a reader's try of a held lock", readers.try_lock, "'7', '7', 'me', '2'", Writes::nothing, all_locks},
              {"a reader's try", readers.try_lock, "'8', '8', 'me', '2'", Writes::something, all_locks},
              {"one more reader", readers.join, "'8', '8', 'me', '2'", Writes::something, all_locks},
              {"an inspection of readers", readers.inspect, "'7', '7'", Writes::nothing, all_locks},
          }};
}

class PostgresStatementTest : public PostgresTest, public testing::WithParamInterface<Costs> {
 protected:
  PostgresStatementTest() {
    (void)steady(patient()).initialize();
    server.run("VACUUM ANALYZE");
    const postgres::Preamble preamble({}, {.version = 150000});
    for (const postgres::Command& command : preamble.commands()) {
      if (command.params.empty()) continue;
      sql.run("SELECT set_config('" + *command.params.at(0) + "', '" + *command.params.at(1) + "', false)");
    }
  }

  void begin(const Case& of) {
    sql.run("BEGIN");
    if (of.without_nested_loops) sql.run(postgres::without_nested_loops_sql);
  }
  void prepare() {
    const auto& cases = GetParam().cases;
    for (std::size_t i = 0; i < cases.size(); ++i) {
      begin(cases[i]);
      sql.run("PREPARE s" + std::to_string(i) + " AS " + cases[i].statement.sql);
      sql.run("EXPLAIN EXECUTE s" + std::to_string(i) + "(" + cases[i].arguments + "); COMMIT");
    }
  }
  void expect_cost(std::size_t number) {
    const Case& expected = GetParam().cases[number];
    SCOPED_TRACE(expected.what);
    begin(expected);
    const PostgresReply plan = sql.query("EXPLAIN (ANALYZE, WAL, TIMING OFF) EXECUTE s" + std::to_string(number) + "(" +
                                         expected.arguments + ")");
    ASSERT_FALSE(plan.is_error()) << plan.error;
    const bool transaction = sql.value("SELECT pg_current_xact_id_if_assigned() IS NOT NULL") == "t";
    sql.run("ROLLBACK; SELECT pg_advisory_unlock_all()");
    EXPECT_LT(rows_read(plan), expected.most_rows);
    for (const auto& row : plan.rows) EXPECT_FALSE(row.at(0).value().starts_with("JIT")) << "compiling costs more";
    const bool writes = transaction || wal_bytes(plan) > 0;
    if (expected.writes != Writes::either) {
      EXPECT_EQ(writes, expected.writes == Writes::something) << wal_bytes(plan) << " bytes of WAL";
    }
  }

  PostgresConnection sql{server.admin_conninfo()};

 private:
  static std::size_t rows_read(const PostgresReply& plan) {
    static const std::regex in_node("actual rows=([0-9]+) loops=([0-9]+)|Rows Removed by [A-Za-z ]+: ([0-9]+)");
    std::size_t sum = 0;
    std::size_t loops = 1;  // of the node that the lines are about
    for (const auto& row : plan.rows) {
      std::smatch found;
      const std::string line = row.at(0).value();
      if (!std::regex_search(line, found, in_node)) continue;
      if (found[2].matched) loops = std::stoul(found[2]);
      sum += loops * std::stoul(found[found[3].matched ? 3 : 1]);
    }
    return sum;
  }
  static std::size_t wal_bytes(const PostgresReply& plan) {
    static const std::regex of_node("WAL: .*bytes=([0-9]+)");
    std::size_t sum = 0;
    for (const auto& row : plan.rows) {
      std::smatch found;
      const std::string line = row.at(0).value();
      if (std::regex_search(line, found, of_node)) sum += std::stoul(found[1]);
    }
    return sum;
  }
};

// Hazard: a kept plan for an empty table scans a full one
// Hazard: a list scans all locks for each name
// Hazard: a try of a busy lock writes, and flushes the log
TEST_P(PostgresStatementTest, PlannedForEmptyTables_ReadsLittleAndWritesOnlyGrants) {
  prepare();
  server.run(GetParam().fill);
  PostgresConnection other(server.admin_conninfo());
  if (!GetParam().meanwhile.empty()) other.run(GetParam().meanwhile);
  // Reading a page after an update may remove dead rows, which is written.
  for (const bool first : {true, false}) {
    for (std::size_t i = 0; i < GetParam().cases.size(); ++i) {
      if ((GetParam().cases[i].writes == Writes::nothing) == first) expect_cost(i);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    , PostgresStatementTest,
    testing::Values(of_rows("table", "lease", postgres::table_statements("dlock", Durability::sync)),
                    of_rows("optimistic", "optimistic", postgres::optimistic_statements("dlock", Durability::sync)),
                    of_rows("election", "lease_elect",
                            postgres::table_statements("dlock", Durability::sync, LockKind::election)),
                    of_sharing(), of_for_update(), of_advisory()),
    [](const auto& test) { return test.param.name; });

}  // namespace

}  // namespace dlock::test
