#include "bench/targets/postgres/target.hpp"

#include <gtest/gtest.h>

namespace dlock::bench {
namespace {

TEST(BenchPostgresTarget, HasItsStrategyAndASchemaOfItsOwn) {
  const auto target = make_postgres_target(rig::UrlText("postgresql://u:hunter2@h/db?sslmode=require"), "table");
  const rig::UrlText url(target->url(1));
  EXPECT_EQ(url.parameter("strategy"), "table");
  EXPECT_EQ(url.parameter("sslmode"), "require");
  EXPECT_EQ(url.parameter("schema")->substr(0, 12), "dlock_bench_");
  EXPECT_EQ(url.original().password(), "hunter2");
  EXPECT_EQ(target->info().url, "postgresql://u:***@h/db?sslmode=require&strategy=table");
}

TEST(BenchPostgresTarget, RespectsTheUsersSchema) {
  const auto target = make_postgres_target(rig::UrlText("postgresql://h/db?schema=app"), "table");
  EXPECT_EQ(rig::UrlText(target->url(1)).parameter("schema"), "app");
}

TEST(BenchPostgresTarget, HasConnectionsForTheLocksThatTakeOne) {
  const rig::UrlText given("postgresql://h/db");
  EXPECT_EQ(rig::UrlText(make_postgres_target(given, "for-update")->url(64)).parameter("max_connections"), "70");
  EXPECT_EQ(rig::UrlText(make_postgres_target(given, "advisory")->url(5000)).parameter("max_connections"), "1000");
  EXPECT_EQ(rig::UrlText(make_postgres_target(given, "table")->url(64)).parameter("max_connections"), std::nullopt);
}

TEST(BenchPostgresTarget, RespectsTheUsersLimitOfConnections) {
  const auto target = make_postgres_target(rig::UrlText("postgresql://h/db?max_connections=20"), "advisory");
  EXPECT_EQ(rig::UrlText(target->url(64)).parameter("max_connections"), "20");
}

TEST(BenchPostgresTarget, HasNoFloorWithoutTablesForIt) {
  EXPECT_FALSE(make_postgres_target(rig::UrlText("postgresql://h/db"), "table")->has_floor());
}

TEST(BenchPostgresTarget, ThereAreNoProxiesForAUnixSocketOrACheckedName) {
  using std::chrono::milliseconds;
  for (const char* url : {"postgresql:///db?host=/run/postgresql", "postgresql://%2Frun%2Fpostgresql/db",
                          "postgresql://h/db?sslmode=verify-full"}) {
    EXPECT_EQ(make_postgres_target(rig::UrlText(url), "table")->at_distance(milliseconds(1)), nullptr) << url;
  }
}

}  // namespace
}  // namespace dlock::bench
