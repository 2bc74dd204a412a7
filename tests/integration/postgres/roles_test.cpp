// Roles: what another role plants in a schema of the search_path, which rights locks need, and which settings of a role
// must not matter.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <regex>
#include <stdexcept>
#include <string>
#include <vector>

#include "backends/postgres/schema/layout.hpp"
#include "postgres/postgres_test.hpp"
#include "tests/unit/postgres/all_statements.hpp"

namespace dlock::test {

namespace {

// Another role may create in a schema of the search_path, which comes first.
class PlantedTest : public PostgresTest {
 protected:
  // There it has operators, functions, types, relations and a collation with the names of PostgreSQL's own.
  PlantedTest() : PostgresTest(Own{}) {
    server.run(R"sql(
      DO $do$
      DECLARE
        o record;
      BEGIN
        FOR o IN SELECT * FROM pg_operator AS p JOIN pg_proc AS f ON f.oid = p.oprcode LOOP
          EXECUTE format('CREATE OPERATOR public.%s (%s RIGHTARG = %s, FUNCTION = pg_catalog.%I)', o.oprname,
                         'LEFTARG = ' || nullif(o.oprleft, 0)::regtype || ',', o.oprright::regtype, o.proname);
        END LOOP;
        -- In place of an aggregate function any other does.
        FOR o IN
          SELECT p.proname, pg_get_function_arguments(p.oid) AS arguments, pg_get_function_result(p.oid) AS result,
            CASE p.prokind WHEN 'a' THEN 'now' ELSE p.prosrc END AS source
          FROM pg_proc AS p JOIN pg_language AS l ON l.oid = p.prolang
          WHERE p.pronamespace = 'pg_catalog'::regnamespace AND l.lanname = 'internal' AND p.prokind IN ('f', 'a')
        LOOP
          CONTINUE WHEN o.arguments || ' ' || o.result ~ 'cstring|internal|trigger|ORDER BY';
          EXECUTE format('CREATE FUNCTION public.%I(%s) RETURNS %s LANGUAGE internal AS %L', o.proname, o.arguments,
                         o.result, o.source);
        END LOOP;
        FOR o IN
          SELECT * FROM pg_type WHERE typnamespace = 'pg_catalog'::regnamespace AND typtype = 'b' AND typelem = 0
        LOOP
          EXECUTE format('CREATE DOMAIN public.%I AS pg_catalog.%I', o.typname, o.typname);
        END LOOP;
        FOR o IN SELECT * FROM pg_class WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind IN ('r', 'v') LOOP
          EXECUTE format('CREATE VIEW public.%I AS SELECT', o.relname);
        END LOOP;
      END $do$;
      CREATE COLLATION public."C" FROM pg_catalog."C")sql");
    program.run("SET search_path = public, pg_catalog");
    for (const std::string& sql : postgres::creation("dlock", postgres::Durability::sync, true)) program.run(sql);
  }

  // Of the body of a function, the server notes what it refers to. Parameters are texts, which the statement casts.
  void make_function(const std::string& name, const std::string& sql) {
    std::string parameters = "pg_catalog.text";
    for (int i = 1; i < 10; ++i) parameters += ", pg_catalog.text";
    program.run("CREATE FUNCTION dlock.\"" + name + "\"(" + parameters + ") RETURNS pg_catalog.void BEGIN ATOMIC " +
                sql + "; END");
  }
  // Objects of dlock's schema that refer to anything planted, one a line.
  [[nodiscard]] std::string trapped() {
    return server.value(
        "SELECT string_agg(ours.identity || ' uses ' || planted.identity, E'\\n') FROM pg_depend AS d, "
        "pg_identify_object(d.classid, d.objid, d.objsubid) AS ours, "
        "pg_identify_object(d.refclassid, d.refobjid, d.refobjsubid) AS planted "
        "WHERE ours.identity ~ '\\mdlock\\M' AND planted.schema = 'public'");
  }

  PostgresConnection program{server.admin_conninfo()};
};

// Behind a pooler no search_path can be set, and inside a transaction of the caller's it is the caller's business.
// Hazard: operators of another role in the `search_path`
// Hazard: others' operators or triggers run with lockers' rights
TEST_F(PlantedTest, EachStatement_RefersToNothingPlanted) {
  const std::regex looks_up("^(SELECT|WITH|INSERT|UPDATE|DELETE)\\b");
  std::size_t functions = 0;
  for (const auto durability : {postgres::Durability::sync, postgres::Durability::async}) {
    for (const auto& [name, sql] : postgres::all_statements("dlock", durability)) {
      SCOPED_TRACE(name + ": " + sql);
      if (!std::regex_search(sql, looks_up)) continue;
      ASSERT_NO_THROW(make_function(name + std::to_string(++functions), sql));
    }
  }
  EXPECT_GT(functions, 300U);
  EXPECT_EQ(trapped(), "");
}

TEST_F(PlantedTest, CarelessStatement_RefersToThePlantedOrIsRefused) {
  for (const std::string sql :
       {"SELECT token * 2", "UPDATE dlock.lease SET token = 1 WHERE token = 1", "SELECT token OPERATOR(public.=) token",
        "SELECT pg_catalog.now(), clock_timestamp()", "SELECT $1::text", "SELECT unnest(ARRAY[1])",
        "SELECT name ORDER BY name COLLATE \"C\"", "SELECT FROM pg_class AS c, dlock.lease", "SELECT token IN (1, 2)",
        "SELECT token OPERATOR(pg_catalog.=) ANY (ARRAY[1]), token = ANY (ARRAY[1])", "SELECT token BETWEEN 1 AND 2",
        "SELECT token IS NOT DISTINCT FROM 2", "SELECT CASE token WHEN 1 THEN 2 END", "SELECT name LIKE 'x'"}) {
    const auto at = std::min(sql.find(" ORDER BY"), sql.size());
    const bool whole = sql.find("dlock") != sql.npos;
    make_function("careless", whole ? sql : std::string(sql).insert(at, " FROM dlock.lease"));
    EXPECT_NE(trapped(), "") << sql;
    program.run("DROP FUNCTION dlock.careless");
  }
  EXPECT_THROW(make_function("careless", "SELECT count(*) FROM dlock.lease"), std::runtime_error) << "no aggregate";
}

class GrantsTest : public PostgresStrategyTest {
 protected:
  GrantsTest() {
    server.run("DROP ROLE IF EXISTS runtime; CREATE ROLE runtime LOGIN PASSWORD 'runtime'");
    make_schema();
  }
  void TearDown() override {
    server.run("DROP OWNED BY runtime; DROP ROLE runtime; GRANT CREATE ON DATABASE locks TO PUBLIC");
    PostgresStrategyTest::TearDown();
  }

  // The owner makes it by taking a lock, and grants what the documents and the failures name.
  void make_schema() {
    Contender owner(steady(), "first");
    EXPECT_TRUE(take(owner.lock).release());
    std::string grants = postgres::needed_grants("dlock");
    for (auto at = grants.find("<role>"); at != std::string::npos; at = grants.find("<role>")) {
      grants.replace(at, 6, "runtime");
    }
    server.run(grants);
  }
  // The error of an acquire without a time limit, at once.
  void expect_refused(const std::vector<std::string>& words) const {
    Contender ours(as("runtime", patient()), "refused");
    const auto start = std::chrono::steady_clock::now();
    const Failure failure = failure_of([&] { (void)ours.lock.acquire({.wait = 1min}); });
    EXPECT_LT(std::chrono::steady_clock::now() - start, far_too_long) << "it is tried again and again";
    EXPECT_EQ(failure.code, errc::access_denied) << failure.detail;
    for (const std::string& word : words) EXPECT_NE(failure.detail.find(word), std::string::npos) << failure.detail;
    EXPECT_TRUE(mentions(ours.client.diagnose(), Finding::Severity::error, words.front())) << words.front();
  }
  void expect_admitted() const {
    Contender own(as("runtime", patient()), "refused");
    EXPECT_TRUE(take(own.lock).release());
  }
};
INSTANTIATE_TEST_SUITE_P(, GrantsTest, testing::ValuesIn(tested()), strategy_name);

// Hazard: rights that are missing
TEST_P(GrantsTest, DocumentedGrants_Suffice) {
  const auto log = std::make_shared<EventLog>();
  Contender holder(as("runtime", {.lease = 12s, .observer = log}), "held");
  Contender other(as("runtime", {.lease = 12s, .observer = log}), "held");
  Lease lease = take(holder.lock);
  EXPECT_FALSE(other.lock.try_acquire().has_value());
  Pending waiting(other.lock, {});
  await_waiter("held");
  await_renewal(lease);
  EXPECT_TRUE(lease.release());
  const Lease next = waiting.lease();
  EXPECT_GT(next.token(), lease.token());
  EXPECT_EQ(other.client.inspect("held").token, next.token());
  EXPECT_EQ(other.client.list().size(), 2U);
  const LossEvent loss(next);
  EXPECT_TRUE(holder.client.break_lock("held"));
  loss.event().wait("a lock that was broken is not lost");
  EXPECT_EQ(log->warned.count(), 0U);
}

// Hazard: rights that are missing
TEST_P(GrantsTest, MissingGrant_IsNamedAndNotRetried) {
  for (const std::string right : {"USAGE ON SCHEMA", "SELECT ON ALL TABLES IN SCHEMA", "INSERT ON ALL TABLES IN SCHEMA",
                                  "UPDATE ON ALL TABLES IN SCHEMA"}) {
    server.run("REVOKE " + right + " dlock FROM runtime");
    expect_refused({"GRANT", right.substr(0, right.find(' ')), "dlock"});
    server.run("GRANT " + right + " dlock TO runtime");
  }
  expect_admitted();
}

TEST_P(GrantsTest, ForgettingAndBreaking_NeedOneMore) {
  Contender owner(steady(), "held");
  const Lease lease = take(owner.lock);
  server.run("UPDATE " + token_table(GetParam()) + " SET token = 1 WHERE name = 'first'");
  const Client client = as("runtime", patient());
  expect_failure(errc::access_denied, "GRANT DELETE", [&] { (void)client.forget("first"); });
  server.run("GRANT DELETE ON ALL TABLES IN SCHEMA dlock TO runtime");
  EXPECT_TRUE(client.forget("first"));
  if (in_session()) {
    expect_failure(errc::access_denied, "pg_signal_backend", [&] { (void)client.break_lock("held"); });
    server.run("GRANT pg_signal_backend TO runtime");
  }
  EXPECT_TRUE(client.break_lock("held"));
}

TEST_P(GrantsTest, RoleWithoutCreate_IsReferredToDlockInit) {
  server.run("DROP SCHEMA dlock CASCADE; REVOKE CREATE ON DATABASE locks FROM PUBLIC");
  expect_refused({"dlock init", "GRANT USAGE ON SCHEMA \"dlock\""});
  make_schema();
  expect_admitted();
}

class RoleSettingsTest : public PostgresStrategyTest {};
INSTANTIATE_TEST_SUITE_P(, RoleSettingsTest, testing::ValuesIn(tested()), strategy_name);

// They end or fail what takes long, or what changes anything. Behind a pooler, the conformance suite runs on a
// serializable server.
// Hazard: another default isolation makes contention an error
// Hazard: settings of the role end a holder
TEST_P(RoleSettingsTest, AnySetting_DisturbsNoHolderAndNoWaiter) {
  for (const char* setting : {"default_transaction_isolation = 'serializable'", "default_transaction_read_only = on",
                              "statement_timeout = '20ms'", "lock_timeout = '20ms'", "idle_session_timeout = '50ms'",
                              "idle_in_transaction_session_timeout = '50ms'", "search_path = 'nowhere'",
                              "default_transaction_deferrable = on", "standard_conforming_strings = off",
                              "datestyle = 'SQL, DMY'", "intervalstyle = 'sql_standard'", "timezone = 'Asia/Kabul'",
                              "bytea_output = 'escape'", "synchronous_commit = off"}) {
    server.run(std::string("ALTER ROLE locker SET ") + setting);
  }
  Contender holder(steady(), "held");
  Contender other(steady(), "held");
  Lease lease = take(holder.lock);
  Pending waiting(other.lock, {});
  await_waiter("held");
  server.run("SELECT pg_sleep(0.3)");  // longer than any of the limits
  EXPECT_TRUE(lease.held());
  EXPECT_FALSE(waiting.done());
  EXPECT_TRUE(lease.release());
  EXPECT_TRUE(waiting.lease().release());
  EXPECT_EQ(holder.client.stats().failed + other.client.stats().failed, 0U);
}

}  // namespace

}  // namespace dlock::test
