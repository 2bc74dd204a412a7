// Roles: what another role plants in a schema of the search_path, which rights locks need, and which settings of a role
// must not matter.
#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include <dlock/postgres.hpp>

#include "backends/postgres/schema/layout.hpp"
#include "postgres/postgres_test.hpp"
#include "tests/support/pgbouncer.hpp"

namespace dlock::test {

namespace {

using postgres::TransactionLockOptions;

// Operators, functions and types with the names of PostgreSQL's own. None of them is run by a client behind a pooler,
// where no search_path can be set, nor by a lock inside a transaction of the caller's.
//
// Run by the role "mallory", which has nothing but CREATE on the schema public. Each trap counts in a sequence, which
// no rollback undoes, and answers nothing.
constexpr const char* traps = R"sql(
  CREATE FUNCTION public.plant(what text, signature text, result text) RETURNS text LANGUAGE plpgsql AS $plant$
  DECLARE trap text := 'trap_' || nextval('public.traps');
  BEGIN
    INSERT INTO public.planted VALUES (trap, what || ' (' || signature || ')');
    EXECUTE format('CREATE SEQUENCE public.%I', trap);
    EXECUTE format('CREATE FUNCTION public.%I(%s) RETURNS %s VOLATILE SECURITY DEFINER LANGUAGE plpgsql AS '
                   '$trap$ BEGIN PERFORM pg_catalog.nextval(%L); RETURN NULL; END $trap$',
                   CASE WHEN what LIKE 'function %' THEN substr(what, 10) ELSE trap END, signature, result,
                   'public.' || trap);
    RETURN trap;
  END $plant$;

  DO $do$
  DECLARE
    o record;
    kinds CONSTANT regtype[] := ARRAY['smallint', 'integer', 'bigint', 'numeric', 'double precision', 'text', 'name',
                                      'timestamptz', 'interval', 'oid', 'xid', 'boolean', '"char"']::regtype[];
  BEGIN
    -- As they are, which are found where public comes first; and those of mixed types that PostgreSQL has not got, which
    -- are found wherever public comes.
    FOR o IN
      SELECT p.oprname AS name, p.oprleft::regtype AS l, p.oprright::regtype AS r, p.oprresult::regtype AS result
        FROM pg_operator AS p
        WHERE p.oprname IN ('*', '+', '-', '=', '<>', '<', '<=', '>', '>=', '||', '<<', '>>', '|')
          AND p.oprleft = ANY (kinds) AND p.oprright = ANY (kinds)
      UNION
      SELECT n.name, l.l, r.r, CASE WHEN n.name = '*' AND 'interval'::regtype IN (l.l, r.r) THEN 'interval'::regtype
                                    WHEN n.name IN ('=', '<>', '<', '<=', '>', '>=') THEN 'boolean'::regtype
                                    WHEN n.name = '||' THEN 'text'::regtype ELSE 'numeric'::regtype END
        FROM unnest(ARRAY['*', '+', '-', '=', '<=', '>', '||']) AS n (name), unnest(kinds) AS l (l),
          unnest(kinds) AS r (r)
        WHERE (l.l = ANY (kinds[2:5]) OR n.name = '||') AND (r.r = ANY (kinds[2:5]) OR r.r = 'interval'::regtype)
          AND NOT EXISTS (SELECT FROM pg_operator AS p
            WHERE p.oprname = n.name AND p.oprleft = l.l::oid AND p.oprright = r.r::oid)
    LOOP
      EXECUTE format('CREATE OPERATOR public.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = public.%I)', o.name, o.l, o.r,
                     public.plant('operator ' || o.name, o.l || ', ' || o.r, o.result::text));
    END LOOP;
    FOR o IN
      SELECT p.proname AS name, pg_get_function_identity_arguments(p.oid) AS arguments, p.prorettype::regtype AS result
        FROM pg_proc AS p
        WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind = 'f' AND NOT p.proretset
          AND pg_get_function_identity_arguments(p.oid) !~ 'any|cstring|internal|VARIADIC' AND p.proname IN (
            'clock_timestamp', 'now', 'set_config', 'current_setting', 'pg_notify', 'pg_advisory_lock',
            'pg_advisory_xact_lock', 'pg_try_advisory_lock', 'pg_try_advisory_xact_lock', 'pg_advisory_unlock',
            'pg_backend_pid', 'pg_is_in_recovery', 'isfinite', 'octet_length', 'hashtextextended', 'current_database',
            'has_schema_privilege', 'has_table_privilege', 'has_database_privilege', 'pg_terminate_backend',
            'pg_total_relation_size', 'inet_server_addr', 'regexp_replace', 'substring', 'substr', 'split_part', 'chr',
            'extract', 'date_part', 'timestamptz_pl_interval', 'textcat')
    LOOP
      PERFORM public.plant('function ' || o.name, o.arguments, CASE o.result WHEN 'void'::regtype THEN 'text'
                                                                             ELSE o.result::text END);
    END LOOP;
    FOR o IN SELECT t.name, public.plant('type ' || t.name, 'pg_catalog.' || quote_ident(t.name), 'boolean') AS trap
      FROM unnest(ARRAY['text', 'name', 'int2', 'int4', 'int8', 'float8', 'bool', 'numeric', 'interval', 'timestamptz',
                        'point', 'oid']) AS t (name)
    LOOP
      EXECUTE format('CREATE DOMAIN public.%I AS pg_catalog.%I CHECK (public.%I(VALUE))', o.name, o.name, o.trap);
    END LOOP;
  END $do$;
)sql";

class PlantedTest : public PostgresTest {
 protected:
  PlantedTest() : PostgresTest(Own{}) {
    server.run("CREATE ROLE mallory LOGIN PASSWORD 'mallory'");
    server.run("GRANT USAGE, CREATE ON SCHEMA public TO mallory");
    PostgresConnection mallory(server.url_as("mallory", "mallory"));
    mallory.run("CREATE TABLE public.planted (trap text, what text); CREATE SEQUENCE public.traps");
    mallory.run("SET search_path = pg_catalog");  // mallory knows
    mallory.run(traps);
  }

  // What was run, one a line.
  [[nodiscard]] std::string sprung() {
    return server.value(
        "SELECT coalesce(string_agg(p.what, E'\\n' ORDER BY p.what), '') FROM public.planted AS p JOIN pg_sequences AS "
        "s ON s.schemaname = 'public' AND s.sequencename = p.trap WHERE s.last_value IS NOT NULL");
  }
  void expect_that_traps_work() {
    PostgresConnection victim(server.url());
    (void)victim.query("SELECT 2.5 * 2");
    (void)victim.query("SELECT 2::bigint * interval '1 ms'");
    EXPECT_EQ(sprung(), "operator * (bigint, interval)\noperator * (numeric, integer)");
    (void)victim.query("SET search_path = public, pg_catalog");
    (void)victim.query("SELECT 1 = 1, clock_timestamp(), 'x'::text");
    for (const char* const what : {"operator = (integer, integer)", "function clock_timestamp ()", "type text"}) {
      EXPECT_NE(sprung().find(what), std::string::npos) << what;
    }
    server.run("SELECT setval(format('public.%I', trap)::regclass, 1, false) FROM public.planted");
    ASSERT_EQ(sprung(), "");
  }
};

// Hazard: others' operators or triggers run with lockers' rights
TEST_F(PlantedTest, ClientBehindAPooler_RunsNoPlantedOperators) {
  expect_that_traps_work();
  server.run("ALTER ROLE locker SET search_path = public, pg_catalog");
  for (const Strategy strategy : all_strategies) {
    SCOPED_TRACE(postgres::to_string(strategy));
    // Locks of sessions are refused where sessions are shared.
    const std::string mode = lives_in_sessions(strategy) ? "session" : "transaction";
    const PgBouncer pooler(server, {.pool_mode = mode, .pool_size = 20});
    const std::string url = server.url_at(pooler.port(), with(strategy, "pooler=" + mode));
    Contender ours(connect_patiently(url, {.lease = short_lease}), "planted");
    Contender other(connect_patiently(url, {.lease = short_lease}), "planted");
    Lease lease = take(ours.lock);
    Pending waiting(other.lock, {});
    EXPECT_TRUE(other.client.inspect("planted").held);
    EXPECT_FALSE(other.client.diagnose().empty());
    await_renewal(lease);
    EXPECT_TRUE(lease.release());
    const Lease next = waiting.lease();
    EXPECT_TRUE(ours.client.break_lock("planted"));
  }
  EXPECT_EQ(sprung(), "");
}

// Of the caller's, too, whose search_path is the caller's business.
// Hazard: operators of another role in the `search_path`
TEST_F(PlantedTest, LockInATransaction_RunsNoPlantedOperators) {
  (void)steady(patient()).initialize();
  expect_that_traps_work();
  const PgBouncer pooler(server);
  for (const std::string& url : {server.url(), server.url_at(pooler.port())}) {
    for (const auto kind : {TransactionLockOptions::Kind::row, TransactionLockOptions::Kind::advisory}) {
      for (const char* const key : {"sha256", "pair:1,2", "hashtextextended"}) {
        const TransactionLockOptions options{.kind = kind, .key = key, .wait = 10s};
        PostgresConnection program(url);
        PostgresConnection other(url);
        for (auto* each : {&program, &other}) each->run("BEGIN; SET LOCAL search_path = public, pg_catalog");
        EXPECT_NO_THROW((void)postgres::lock_in_transaction(program.handle(), "new", options));
        EXPECT_NO_THROW((void)postgres::try_lock_in_transaction(program.handle(), "other", options));
        EXPECT_NO_THROW({ EXPECT_FALSE(postgres::try_lock_in_transaction(other.handle(), "new", options)); });
        program.run("COMMIT");
        other.run("COMMIT");
      }
    }
  }
  EXPECT_EQ(sprung(), "");
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

// They end or fail what takes long, or what changes anything.
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
