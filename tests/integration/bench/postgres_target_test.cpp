#include <gtest/gtest.h>

#include "target_checks.hpp"
#include "tests/support/postgres_server.hpp"
#include "torture/rig/socket.hpp"

namespace dlock::bench {
namespace {

class PostgresTargetTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    server_ = std::make_unique<test::PostgresServer>(
        test::PostgresConfig{.max_connections = 200, .lines = {"shared_preload_libraries = 'pg_stat_statements'"}});
    server_->run("CREATE EXTENSION pg_stat_statements");
  }
  static void TearDownTestSuite() { server_.reset(); }

  static std::string schemas() { return server_->value("SELECT count(*) FROM pg_namespace"); }

  static inline std::unique_ptr<test::PostgresServer> server_;
};

TEST_F(PostgresTargetTest, FloorsExclude) {
  for (const auto& each : targets_of(server_->url())) expect_that_its_floor_excludes(*each);
}

TEST_F(PostgresTargetTest, CountsOperations) {
  for (const auto& each : targets_of(server_->url())) {
    // BEGIN and COMMIT are not counted where they are prepared.
    expect_that_operations_are_counted(*each, each->info().strategy == "for-update" ? 1 : 2);
  }
}

TEST_F(PostgresTargetTest, DistanceTakesTime) {
  for (const auto& each : targets_of(server_->url())) expect_that_distance_takes_time(*each);
}

TEST_F(PostgresTargetTest, LeavesNothingBehind) {
  const auto before = schemas();
  const Targets targets = targets_of(server_->url());
  for (const auto& each : targets) {
    acquire_and_release(*each, 1);
    use_its_floor(*each);
  }
  EXPECT_NE(schemas(), before);
  for (const auto& each : targets) each->clean_up();
  EXPECT_EQ(schemas(), before);
}

TEST_F(PostgresTargetTest, InTheUsersSchemaOnlyOurLocksAreRemoved) {
  const std::string url = server_->url("schema=app");
  {
    const Client user = connect(url);
    ASSERT_TRUE(user.make_lock("orders").acquire().release());
  }
  const Targets targets = targets_of(url);
  for (const auto& each : targets) {
    acquire_and_release(*each, 1);
    use_other_kinds(*each);
    use_its_floor(*each);
  }
  EXPECT_NE(server_->value("SELECT count(*) FROM app.lease"), "1");
  EXPECT_NE(server_->value("SELECT count(*) FROM app.lease_sem"), "0");
  for (const auto& each : targets) each->clean_up();
  EXPECT_EQ(server_->value("SELECT string_agg(name, ',') FROM app.lease"), "orders");
  for (const std::string table : {"optimistic", "row_lock", "row_token", "fence", "lease_rw", "lease_sem"}) {
    EXPECT_EQ(server_->value("SELECT count(*) FROM app." + table), "0") << table;
  }
  EXPECT_EQ(
      server_->value("SELECT count(*) FROM pg_tables WHERE schemaname = 'app' AND tablename LIKE 'dlock\\_bench\\_%'"),
      "0");
}

TEST_F(PostgresTargetTest, WithoutTheRightToMakeTablesThereIsNoFloor) {
  (void)connect(server_->url("schema=shared")).initialize();
  server_->run("CREATE ROLE guest LOGIN PASSWORD 'secret'");
  server_->run("GRANT USAGE ON SCHEMA shared TO guest");
  server_->run("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA shared TO guest");
  const auto targets = targets_of(server_->url_as("guest", "secret", "schema=shared&strategy=table"));
  EXPECT_FALSE(targets.front()->has_floor());
  targets.front()->clean_up();
}

TEST_F(PostgresTargetTest, SaysHowTheServerIsSetUp) {
  const auto target = std::move(targets_of(server_->url()).front());
  EXPECT_EQ(setting(*target, "server_version"), server_->value("SHOW server_version"));
  EXPECT_EQ(setting(*target, "fsync"), "off");
  EXPECT_EQ(setting(*target, "synchronous_commit"), "on");
  EXPECT_EQ(setting(*target, "full_page_writes"), "off");
}

TEST_F(PostgresTargetTest, KnowsHowManyConnectionsThereAre) {
  for (const auto& each : targets_of(server_->url())) {
    SCOPED_TRACE(each->label());
    const bool takes_connections = each->info().strategy == "for-update" || each->info().strategy == "advisory";
    EXPECT_GT(each->most_floors(), 40U);
    EXPECT_LT(each->most_floors(), 200U);
    EXPECT_EQ(each->most_locks() != 0, takes_connections);
    EXPECT_LE(each->most_locks() + (takes_connections ? each->most_floors() : 0), 200U);
  }
}

TEST_F(PostgresTargetTest, AllLocksOfAClientCanBeHeldAtOnce) {
  const auto target = std::move(targets_of(server_->url("strategy=for-update")).front());
  constexpr std::size_t count = 20;
  const Client client = target->connect(count);
  std::vector<Lease> leases;
  for (std::size_t i = 0; i < count; ++i) {
    auto lease = client.make_lock(test_name + std::to_string(i)).try_acquire();
    ASSERT_TRUE(lease) << i;
    leases.push_back(std::move(*lease));
  }
}

TEST(PostgresTargetOfAPlainServerTest, DoesNotKnowWhatTheServerCarriesOut) {
  const test::PostgresServer server;
  const auto target = std::move(targets_of(server.url("strategy=table")).front());
  acquire_and_release(*target, 1);
  EXPECT_FALSE(target->operations());
}

TEST(PostgresTargetOfNobodyTest, IsSaidToBeUnreachable) {
  rig::Listener nobody;
  nobody.close();
  const std::string port = std::to_string(nobody.port());
  expect_that_it_is_said_to_be_unreachable("postgresql://u:hunter2@127.0.0.1:" + port + "/db", port);
}

TEST(PostgresTargetOfNobodyTest, AWrongPasswordIsNotShown) {
  const test::PostgresServer server;
  try {
    (void)targets_of(server.url_as("locker", "hunter2"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), errc::access_denied);
    EXPECT_EQ(std::string(error.what()).find("hunter2"), std::string::npos);
  }
}

}  // namespace
}  // namespace dlock::bench
