// How dlock's schema comes to be, on real servers.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backends/postgres/schema/layout.hpp"
#include "backends/postgres/sql/identifier.hpp"
#include "held_lock.hpp"
#include "integration_test.hpp"
#include "live_services.hpp"
#include "postgres/shared_server.hpp"
#include "strategies.hpp"
#include "suite/wait.hpp"
#include "tests/support/pgbouncer.hpp"
#include "tests/support/sanitizers.hpp"
#include "tests/unit/postgres/hostile_names.hpp"

namespace dlock::test {

namespace {

using postgres::layout;
using Made = LiveServices::Made;

// A value in a URL's query.
std::string escaped(const std::string& text) {
  constexpr const char* digits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += digits[byte >> 4U];
    out += digits[byte & 15U];
  }
  return out;
}

class PostgresSchemaTest : public OnSharedServer<> {
 protected:
  void SetUp() override { drop_schema(); }
  void TearDown() override { drop_schema(); }
  void drop_schema(const std::string& name = "dlock") const {
    server.run("DROP SCHEMA IF EXISTS " + postgres::quote_identifier(name) + " CASCADE");
  }
  [[nodiscard]] std::string tables_in(const std::string& schema) const {
    return server.value("SELECT count(*) FROM pg_tables WHERE schemaname = " + literal(schema));
  }
  static std::string literal(std::string text) {
    for (auto at = text.find('\''); at != std::string::npos; at = text.find('\'', at + 2)) text.insert(at, 1, '\'');
    for (auto at = text.find('\\'); at != std::string::npos; at = text.find('\\', at + 2)) text.insert(at, 1, '\\');
    return "E'" + text + "'";
  }
  void create_role(const std::string& role) const {
    server.run("DROP ROLE IF EXISTS " + role);
    server.run("CREATE ROLE " + role + " LOGIN PASSWORD 'secret'");
  }

  const std::string everything = std::to_string(layout().size());
};

TEST_F(PostgresSchemaTest, IsMadeOnceAndForAll) {
  LiveServices services(server.url());
  Made expected = {"schema \"dlock\""};
  for (const auto& table : layout()) expected.push_back("table " + postgres::qualified("dlock", table.name));
  auto made = services.initialize();
  ASSERT_TRUE(made.ok()) << made.failure().detail;
  EXPECT_EQ(made.value(), expected);
  EXPECT_EQ(server.value("SELECT version FROM dlock.meta"), "1");
  EXPECT_EQ(services.initialize().value(), Made{});
  // A session ends a moment after its connection.
  server.await("NOT EXISTS (SELECT FROM pg_stat_activity WHERE application_name LIKE '%setup%')");
}

// As many at once as there are, many times: none may fail, and of each thing one may say that it made it.
TEST_F(PostgresSchemaTest, IsMadeByManyAtOnce) {
  constexpr std::size_t clients = 8;
  std::vector<std::unique_ptr<LiveServices>> services;
  for (std::size_t i = 0; i < clients; ++i) services.push_back(std::make_unique<LiveServices>(server.url()));
  for (int round = 0; round < (dlock::test::sanitized ? 6 : 25); ++round) {
    drop_schema();
    std::vector<std::optional<Result<Made>>> results(clients);
    {
      std::vector<std::jthread> threads;
      for (std::size_t i = 0; i < clients; ++i)
        threads.emplace_back([&, i] { results[i] = services[i]->initialize(); });
    }
    Made all;
    for (auto& result : results) {
      ASSERT_TRUE(result->ok()) << result->failure().detail;
      for (const std::string& what : result->value()) all.push_back(what);
    }
    EXPECT_EQ(all.size(), layout().size() + 1);
    EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), all.size()) << "made twice";
    EXPECT_EQ(tables_in("dlock"), everything);
  }
}

// Somebody else's migration does not take our lock.
TEST_F(PostgresSchemaTest, IsMadeWhileSomebodyElseMakesItWithoutTheLock) {
  LiveServices services(server.url());
  for (int round = 0; round < 10; ++round) {
    drop_schema();
    std::vector<std::jthread> others;
    for (int i = 0; i < 3; ++i) {
      others.emplace_back([&] {
        PostgresConnection sql(server.admin_conninfo());
        (void)sql.query("CREATE SCHEMA IF NOT EXISTS dlock AUTHORIZATION locker");
        (void)sql.query("CREATE TABLE IF NOT EXISTS dlock.row_lock (name text COLLATE \"C\" PRIMARY KEY)");
        (void)sql.query("ALTER TABLE dlock.row_lock OWNER TO locker");
      });
    }
    const auto why_not = services.set_up();
    ASSERT_FALSE(why_not) << why_not->detail;
    others.clear();
    EXPECT_EQ(tables_in("dlock"), everything);
  }
}

TEST_F(PostgresSchemaTest, WaitsForSomebodyWhoIsMakingIt) {
  PostgresConnection other(server.admin_conninfo());
  std::vector<std::string> making = postgres::creation("dlock", postgres::Durability::sync, true);
  making.back() = postgres::recording("dlock").at(postgres::first_change);  // in the place of COMMIT
  for (const std::string& sql : making) other.run(sql);
  other.run("GRANT ALL ON SCHEMA dlock TO locker");
  other.run("GRANT ALL ON ALL TABLES IN SCHEMA dlock TO locker");
  LiveServices services(server.url());
  std::optional<Failure> why_not;
  {
    const std::jthread waiting([&] { why_not = services.set_up(); });
    server.await("EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted)");
    other.run("COMMIT");
  }
  EXPECT_FALSE(why_not) << why_not->detail;
}

TEST_F(PostgresSchemaTest, ARoleThatMayNotMakeItIsToldWhatToDo) {
  server.run("REVOKE CREATE ON DATABASE locks FROM PUBLIC");
  create_role("guest");
  LiveServices guest(server.url_as("guest", "secret"));
  auto why_not = guest.set_up();
  ASSERT_TRUE(why_not);
  EXPECT_EQ(why_not->code, errc::access_denied);
  EXPECT_NE(why_not->detail.find("dlock init"), std::string::npos) << why_not->detail;
  EXPECT_NE(why_not->detail.find("GRANT USAGE ON SCHEMA \"dlock\""), std::string::npos) << why_not->detail;
  EXPECT_EQ(why_not->detail.find("secret"), std::string::npos) << why_not->detail;

  LiveServices owner(server.url());
  ASSERT_TRUE(owner.initialize().ok());
  why_not = guest.set_up();
  ASSERT_TRUE(why_not) << "it may not use what there is";
  EXPECT_EQ(why_not->code, errc::access_denied);
  EXPECT_NE(why_not->detail.find("GRANT USAGE ON SCHEMA \"dlock\""), std::string::npos) << why_not->detail;
  server.run("DROP ROLE guest");
}

TEST_F(PostgresSchemaTest, ASchemaThatSomebodyMadeForItIsFilled) {
  create_role("tenant");
  server.run("CREATE SCHEMA dlock AUTHORIZATION tenant");
  LiveServices tenant(server.url_as("tenant", "secret"));
  auto made = tenant.initialize();
  ASSERT_TRUE(made.ok()) << made.failure().detail;
  EXPECT_EQ(made.value().size(), layout().size());
  drop_schema();
  server.run("DROP ROLE tenant");
}

TEST_F(PostgresSchemaTest, SomebodyElsesTablesAreLeftAlone) {
  server.run("CREATE SCHEMA dlock AUTHORIZATION locker");
  server.run("CREATE TABLE dlock.lease (house text, rent money)");
  LiveServices services(server.url());
  const auto why_not = services.set_up();
  ASSERT_TRUE(why_not);
  EXPECT_EQ(why_not->code, errc::invalid_argument);
  EXPECT_NE(why_not->detail.find("\"dlock\".\"lease\""), std::string::npos) << why_not->detail;
  EXPECT_EQ(tables_in("dlock"), "1");
}

// Another role was there first, and what it made looks like dlock's. Its trigger would run with our rights.
TEST_F(PostgresSchemaTest, WhatAnotherRoleMadeBeforehandIsNotTaken) {
  create_role("mallory");
  server.run("GRANT CREATE ON DATABASE locks TO mallory");
  server.run("CREATE SEQUENCE public.sprung");
  server.run("GRANT ALL ON SEQUENCE public.sprung TO PUBLIC");
  PostgresConnection mallory(server.url_as("mallory", "secret"));
  for (const std::string& sql : postgres::creation("dlock", postgres::Durability::sync, true)) mallory.run(sql);
  mallory.run("GRANT ALL ON SCHEMA dlock TO PUBLIC; GRANT ALL ON ALL TABLES IN SCHEMA dlock TO PUBLIC");
  mallory.run(
      "CREATE FUNCTION dlock.trap() RETURNS trigger LANGUAGE plpgsql AS "
      "$$ BEGIN PERFORM nextval('public.sprung'); RETURN NULL; END $$");
  mallory.run("CREATE TRIGGER trap BEFORE INSERT ON dlock.meta FOR EACH STATEMENT EXECUTE FUNCTION dlock.trap()");
  const std::string as_superuser =
      "postgresql:///locks?user=postgres&host=" + server.socket_directory() + "&port=" + std::to_string(server.port());
  const auto expect_refused = [&](const std::string& url, const std::string& because) {
    LiveServices services(url);
    auto made = services.initialize();
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.failure().code, errc::access_denied);
    EXPECT_NE(made.failure().detail.find(because), std::string::npos) << made.failure().detail;
    EXPECT_NE(made.failure().detail.find("\"mallory\""), std::string::npos) << made.failure().detail;
    EXPECT_EQ(server.value("SELECT is_called FROM public.sprung"), "f");
  };
  expect_refused(as_superuser, "trigger trap");
  expect_refused(server.url(), "trigger trap");
  mallory.run("DROP TRIGGER trap ON dlock.meta");
  expect_refused(as_superuser, "belongs to role");
  for (const char* const planted :
       {"CREATE RULE trap AS ON INSERT TO dlock.meta DO ALSO SELECT nextval('public.sprung')",
        "CREATE POLICY trap ON dlock.meta USING (nextval('public.sprung') > 0)",
        "ALTER TABLE dlock.meta ALTER version SET DEFAULT dlock.number()",
        "ALTER TABLE dlock.meta ADD CHECK (dlock.number() > 0)", "CREATE TABLE dlock.more () INHERITS (dlock.meta)"}) {
    mallory.run(
        "CREATE FUNCTION dlock.number() RETURNS integer LANGUAGE plpgsql AS "
        "$$ BEGIN RETURN nextval('public.sprung'); END $$");
    mallory.run(std::string("BEGIN; ") + planted + "; COMMIT");
    expect_refused(server.url(), "not dlock's");
    mallory.run(
        "DROP RULE IF EXISTS trap ON dlock.meta; DROP POLICY IF EXISTS trap ON dlock.meta; "
        "DROP FUNCTION dlock.number() CASCADE; DROP TABLE IF EXISTS dlock.more");
  }
  // Whose the schema is, that role's tables are in it.
  LiveServices services(server.url());
  EXPECT_FALSE(services.set_up());
  drop_schema();
  server.run("DROP SEQUENCE public.sprung");
  server.run("DROP OWNED BY mallory; DROP ROLE mallory");
}

TEST_F(PostgresSchemaTest, AViewInTheWayIsNoticed) {
  server.run("CREATE SCHEMA dlock AUTHORIZATION locker");
  server.run("CREATE VIEW dlock.fence AS SELECT 1 AS one");
  LiveServices services(server.url());
  const auto why_not = services.set_up();
  ASSERT_TRUE(why_not);
  EXPECT_EQ(why_not->code, errc::invalid_argument);
  EXPECT_NE(why_not->detail.find("\"dlock\".\"fence\""), std::string::npos) << why_not->detail;
}

// As long as a dlock of tomorrow only adds to it.
TEST_F(PostgresSchemaTest, WhatANewerDlockAddsIsPassedOver) {
  LiveServices tomorrow(server.url());
  ASSERT_FALSE(tomorrow.set_up());
  server.run("DROP TABLE dlock.fence");  // so that something is missing
  for (const char* const table : {"lease", "optimistic", "row_token"}) {
    server.run(std::string("ALTER TABLE dlock.") + table + " ADD COLUMN permits integer NOT NULL DEFAULT 1");
  }
  server.run("CREATE TABLE dlock.readers (name text PRIMARY KEY)");
  LiveServices today(server.url());
  ASSERT_FALSE(today.set_up());
  EXPECT_EQ(tables_in("dlock"), std::to_string(layout().size() + 1));
  for (const postgres::Strategy strategy : all_strategies) {
    HeldLock lock(server.url(), strategy, "lock");
    EXPECT_TRUE(lock.taken()) << lock.failure();
    const HeldLock other(server.url(), strategy, "lock", "owner-2");
    EXPECT_FALSE(other.taken());
    EXPECT_TRUE(lock.release());
  }
}

class OlderSchemaTest : public PostgresSchemaTest {
 protected:
  void SetUp() override {
    PostgresSchemaTest::SetUp();
    create_role("worker");
    LiveServices services(server.url());
    ASSERT_FALSE(services.set_up());
    server.run("GRANT USAGE ON SCHEMA dlock TO worker");
    server.run("GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA dlock TO worker");
    for (const char* const table : {"lease", "optimistic"}) {
      server.run("ALTER TABLE dlock." + std::string(table) +
                 " ADD COLUMN waiters text[] NOT NULL DEFAULT ARRAY['somebody']::text[]");
    }
  }
  void TearDown() override {
    drop_schema();
    server.run("DROP ROLE worker");
  }
};

// Where clients stood in a queue.
TEST_F(OlderSchemaTest, IsLeftAsItIs) {
  LiveServices owner(server.url());
  EXPECT_FALSE(owner.set_up());
  EXPECT_TRUE(owner.initialize().value().empty());
}

TEST_F(OlderSchemaTest, LocksAreTakenWaitedForAndReleased) {
  for (const auto& [strategy, table] : {std::pair{"table", "lease"}, std::pair{"optimistic", "optimistic"}}) {
    const std::string url = server.url_as("worker", "secret", "strategy=" + std::string(strategy));
    const Client one = connect_patiently(url, ClientOptions{.lease = 10min});
    const Client two = connect_patiently(url, ClientOptions{.lease = 10min});
    DistributedLock lock = one.make_lock("lock");
    DistributedLock other = two.make_lock("lock");
    for (int i = 0; i < 3; ++i) {
      Lease lease = conformance::take(lock);
      conformance::Pending waiting(other, {});
      server.await("EXISTS (SELECT FROM dlock." + std::string(table) + " WHERE waiting_until > clock_timestamp())");
      EXPECT_TRUE(lease.release());
      EXPECT_TRUE(waiting.lease().release());
    }
  }
}

TEST_F(PostgresSchemaTest, ANewerVersionIsLeftAlone) {
  LiveServices services(server.url());
  ASSERT_FALSE(services.set_up());
  server.run("UPDATE dlock.meta SET version = 2");
  server.run("DROP TABLE dlock.fence");
  const auto why_not = services.set_up();
  ASSERT_TRUE(why_not);
  EXPECT_EQ(why_not->code, errc::unsupported);
  EXPECT_NE(why_not->detail.find("version 2"), std::string::npos) << why_not->detail;
  EXPECT_EQ(server.value("SELECT to_regclass('dlock.fence') IS NULL"), "t") << "it may do without";
}

TEST_F(PostgresSchemaTest, TablesAreLeftLoggedOrNotAsTheyAre) {
  const auto unlogged = [&] {
    return server.value("SELECT count(*) FROM pg_class WHERE relpersistence = 'u' AND relkind = 'r'");
  };
  LiveServices forgetful(server.url("durability=unlogged"));
  ASSERT_FALSE(forgetful.set_up());
  const std::string all_but_meta = std::to_string(layout().size() - 1);
  EXPECT_EQ(unlogged(), all_but_meta);
  LiveServices careful(server.url());
  EXPECT_EQ(careful.initialize().value(), Made{});
  EXPECT_EQ(unlogged(), all_but_meta);
  drop_schema();
  ASSERT_FALSE(careful.set_up());
  EXPECT_EQ(forgetful.initialize().value(), Made{});
  EXPECT_EQ(unlogged(), "0");
}

TEST_F(PostgresSchemaTest, NamesThatLookLikeSqlAreOnlyNames) {
  server.run("CREATE TABLE IF NOT EXISTS public.x (canary text)");
  for (const std::string& name : postgres::hostile_names(dlock::test::sanitized ? 15 : 60)) {
    SCOPED_TRACE(name);
    if (name.find('.') != std::string::npos) continue;  // refused, lest it is taken for schema.table
    LiveServices services(server.url("schema=" + escaped(name)));
    auto made = services.initialize();
    ASSERT_TRUE(made.ok()) << made.failure().detail;
    EXPECT_EQ(made.value().size(), layout().size() + 1);
    EXPECT_EQ(tables_in(name), everything);
    EXPECT_EQ(services.initialize().value(), Made{});
    drop_schema(name);
  }
  server.run("DROP TABLE public.x");
}

TEST_F(PostgresSchemaTest, IsMadeThroughAPooler) {
  const PgBouncer pooler(server);
  LiveServices services(server.url_at(pooler.port()));
  auto made = services.initialize();
  ASSERT_TRUE(made.ok()) << made.failure().detail;
  EXPECT_EQ(made.value().size(), layout().size() + 1);
  EXPECT_EQ(services.initialize().value(), Made{});
}

TEST_F(PostgresSchemaTest, IsMadeWhereTransactionsAreSerializable) {
  server.run("ALTER ROLE locker SET default_transaction_isolation TO serializable");
  server.run("ALTER ROLE locker SET default_transaction_read_only TO on");
  LiveServices services(server.url());
  const auto why_not = services.set_up();
  EXPECT_FALSE(why_not) << why_not->detail;
  server.run("ALTER ROLE locker RESET ALL");
}

}  // namespace

}  // namespace dlock::test
