// The creation of dlock's schema, on a real server, and schemas that others have created.
#include <algorithm>
#include <deque>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "backends/postgres/schema/layout.hpp"
#include "backends/postgres/sql/identifier.hpp"
#include "postgres/postgres_test.hpp"
#include "tests/support/pgbouncer.hpp"

namespace dlock::test {

namespace {

using postgres::layout;
using Made = std::vector<std::string>;

class PostgresSchemaTest : public PostgresTest {
 protected:
  void TearDown() override {
    drop_schema();
    for (const std::string& role : roles_) server.run("DROP OWNED BY " + role + "; DROP ROLE " + role);
    PostgresTest::TearDown();
  }

  void drop_schema() { server.run("DROP SCHEMA IF EXISTS dlock CASCADE"); }
  [[nodiscard]] Client client(const std::string& parameters = {}) const { return steady(patient(), parameters); }
  // The first use of a lock.
  static void use(const Client& client) { EXPECT_TRUE(client.make_lock("first").try_acquire()); }
  [[nodiscard]] std::size_t tables() const {
    return std::stoul(server.value("SELECT count(*) FROM pg_tables WHERE schemaname = 'dlock'"));
  }
  void create_role(const std::string& role) {
    server.run("CREATE ROLE " + role + " LOGIN PASSWORD 'secret'");
    roles_.push_back(role);
  }

 private:
  std::vector<std::string> roles_;
};

TEST_F(PostgresSchemaTest, Initialize_CreatesAllTablesOnce) {
  const PgBouncer pooler(server);
  Made expected = {"schema \"dlock\""};
  for (const auto& table : layout()) expected.push_back("table " + postgres::qualified("dlock", table.name));
  for (const std::string& url : {server.url(), server.url_at(pooler.port())}) {
    drop_schema();
    const Client own = connect_patiently(url, patient());
    EXPECT_EQ(own.initialize(), expected);
    EXPECT_EQ(server.value("SELECT version FROM dlock.meta"), "1");
    EXPECT_EQ(own.initialize(), Made{});
  }
}

// As many at once as there are, many times: none may fail, and of each thing one may report that it made it.
// Hazard: `CREATE ... IF NOT EXISTS` fails if several run at once
TEST_F(PostgresSchemaTest, ManyInitializeAtOnce_EachTableIsCreatedOnce) {
  constexpr std::size_t many = 8;
  std::deque<Client> clients;
  for (std::size_t i = 0; i < many; ++i) clients.push_back(client());
  for (int round = 0; round < (dlock::test::sanitized ? 6 : 25); ++round) {
    drop_schema();
    std::vector<Made> results(many);
    {
      std::vector<std::jthread> threads;
      for (std::size_t i = 0; i < many; ++i) {
        threads.emplace_back([&, i] { EXPECT_NO_THROW(results[i] = clients[i].initialize()); });
      }
    }
    Made all;
    for (const Made& made : results) all.insert(all.end(), made.begin(), made.end());
    EXPECT_EQ(all.size(), layout().size() + 1);
    EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), all.size()) << "made twice";
    EXPECT_EQ(tables(), layout().size());
  }
}

TEST_F(PostgresSchemaTest, EmptySchema_IsFilled) {
  create_role("tenant");
  server.run("CREATE SCHEMA dlock AUTHORIZATION tenant");
  EXPECT_EQ(connect_patiently(server.url_as("tenant", "secret")).initialize().size(), layout().size());
}

TEST_F(PostgresSchemaTest, OtherTables_AreRefusedAndLeftAlone) {
  for (const std::string theirs :
       {"TABLE dlock.lease (house text, rent money)", "VIEW dlock.fence AS SELECT 1 AS one"}) {
    drop_schema();
    server.run("CREATE SCHEMA dlock AUTHORIZATION locker");
    server.run("CREATE " + theirs);
    expect_failure(errc::invalid_argument, theirs.starts_with("TABLE") ? "\"dlock\".\"lease\"" : "\"dlock\".\"fence\"",
                   [&] { use(client()); });
    EXPECT_TRUE(!theirs.starts_with("TABLE") || tables() == 1);
  }
}

// Another role was there first, and what it made looks like dlock's. Its trigger would run with our rights.
// Hazard: tables that another role created with a trigger
TEST_F(PostgresSchemaTest, TablesOfAnotherRole_AreRefused) {
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
  const auto expect_trap = [&](const std::string& url, const std::string& because) {
    const Failure failure = failure_of([&] { (void)connect_patiently(url).initialize(); });
    EXPECT_EQ(failure.code, errc::access_denied);
    EXPECT_NE(failure.detail.find(because), std::string::npos) << failure.detail;
    EXPECT_NE(failure.detail.find("\"mallory\""), std::string::npos) << failure.detail;
    EXPECT_EQ(server.value("SELECT is_called FROM public.sprung"), "f");
  };
  expect_trap(as_superuser, "trigger trap");
  expect_trap(server.url(), "trigger trap");
  mallory.run("DROP TRIGGER trap ON dlock.meta");
  expect_trap(as_superuser, "belongs to role");
  for (const char* const planted :
       {"CREATE RULE trap AS ON INSERT TO dlock.meta DO ALSO SELECT nextval('public.sprung')",
        "CREATE POLICY trap ON dlock.meta USING (nextval('public.sprung') > 0)",
        "ALTER TABLE dlock.meta ALTER version SET DEFAULT dlock.number()",
        "ALTER TABLE dlock.meta ADD CHECK (dlock.number() > 0)", "CREATE TABLE dlock.more () INHERITS (dlock.meta)"}) {
    mallory.run(
        "CREATE FUNCTION dlock.number() RETURNS integer LANGUAGE plpgsql AS "
        "$$ BEGIN RETURN nextval('public.sprung'); END $$");
    mallory.run(std::string("BEGIN; ") + planted + "; COMMIT");
    expect_trap(server.url(), "not dlock's");
    mallory.run(
        "DROP RULE IF EXISTS trap ON dlock.meta; DROP POLICY IF EXISTS trap ON dlock.meta; "
        "DROP FUNCTION dlock.number() CASCADE; DROP TABLE IF EXISTS dlock.more");
  }
  use(client());  // the tables of the role that owns the schema are accepted
  drop_schema();
  server.run("DROP SEQUENCE public.sprung");
}

// Tables and columns that another version has added, such as the queue of waiters of an earlier one; tables for other
// kinds of locks that an earlier one did not create.
TEST_F(PostgresSchemaTest, TablesOfAnotherVersion_AreUsedAndCompleted) {
  (void)client().initialize();
  server.run(
      "DROP TABLE dlock.lease_rw, dlock.lease_sem, dlock.lease_elect, dlock.optimistic_elect, dlock.fence_elect");
  for (const char* const table : {"lease", "optimistic", "row_token"}) {
    server.run(std::string("ALTER TABLE dlock.") + table +
               " ADD COLUMN waiters text[] NOT NULL DEFAULT ARRAY['somebody']::text[]");
  }
  server.run("CREATE TABLE dlock.readers (name text PRIMARY KEY)");
  for (const Strategy strategy : all_strategies) {
    Contender one(client(with(strategy)), "lock");
    Contender two(client(with(strategy)), "lock");
    for (int i = 0; i < 3; ++i) {
      Lease lease = take(one.lock);
      EXPECT_FALSE(two.lock.try_acquire());
      Pending waiting(two.lock, {});
      server.await("(" + PostgresLock(strategy, "lock").waiters() + ") > 0");
      EXPECT_TRUE(lease.release());
      EXPECT_TRUE(waiting.lease().release());
    }
  }
  EXPECT_EQ(server.value("SELECT to_regclass('dlock.lease_rw') IS NULL"), "t") << "plain locks do without";
  const Client own = client();
  EXPECT_FALSE(own.inspect("x", LockKind::read_write).held);
  EXPECT_TRUE(own.make_read_write_lock("x").try_acquire_shared());
  EXPECT_EQ(tables(), layout().size() + 1);
  EXPECT_EQ(own.initialize(), Made{});
}

}  // namespace

}  // namespace dlock::test
