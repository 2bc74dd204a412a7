#include "tests/support/postgres_server.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "tests/support/pgbouncer.hpp"
#include "torture/rig/tcp_proxy.hpp"

namespace dlock::test {

namespace {

TEST(PostgresServer, LetsItsClientInWithAPassword) {
  PostgresServer server;
  PostgresConnection client(server.url());
  EXPECT_EQ(client.value("SELECT current_user || ' ' || current_database()"), "locker locks");
  EXPECT_THROW(PostgresConnection(server.url_as("locker", "wrong")), std::runtime_error);
  EXPECT_EQ(client.query("SELECT nonsense").sqlstate, "42703");
  EXPECT_EQ(client.query("CREATE SCHEMA mine").sqlstate, "");
  EXPECT_EQ(client.query("CREATE ROLE other").sqlstate, "42501");
  EXPECT_EQ(server.value("SELECT count(*) FROM pg_stat_activity WHERE usename = 'locker'"), "1");
  EXPECT_EQ(server.terminate_clients(), 1);
  EXPECT_THROW((void)client.query("SELECT 1"), std::runtime_error);
}

TEST(PostgresServer, KeepsItsDataWhateverItsEnd) {
  PostgresServer server;
  server.run("CREATE TABLE a AS SELECT 1 AS x");
  server.kill();
  EXPECT_THROW(PostgresConnection(server.url()), std::runtime_error);
  server.start();
  EXPECT_EQ(server.value("SELECT x FROM a"), "1");
  server.stop();
  server.start();
  EXPECT_EQ(server.value("SELECT x FROM a"), "1");
}

TEST(PostgresServer, StandsStillWithAllItsProcesses) {
  const PostgresServer server;
  PostgresConnection client(server.url());
  server.freeze();
  client.send("SELECT 1");
  server.thaw();
  EXPECT_EQ(client.receive().rows.at(0).at(0), "1");
}

TEST(PostgresServer, SpeaksTls) {
  const PostgresServer server({.tls = true});
  PostgresConnection client(server.url());
  EXPECT_EQ(client.value("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"), "t");
  const std::string plain = "host=127.0.0.1 port=" + std::to_string(server.port()) +
                            " user=locker password=locker-secret dbname=locks sslmode=disable";
  EXPECT_THROW(PostgresConnection{plain}, std::runtime_error);
}

TEST(PostgresServer, HasAStandbyThatCanBePromoted) {
  PostgresServer primary;
  PostgresServer standby({.primary = &primary});
  primary.run("CREATE TABLE a AS SELECT 1 AS x");
  primary.await_standby();
  EXPECT_EQ(standby.value("SELECT x FROM a"), "1");
  EXPECT_EQ(PostgresConnection(standby.url()).query("CREATE TABLE b(x int)").sqlstate, "25006");
  primary.kill();
  standby.promote();
  EXPECT_EQ(standby.value("SELECT pg_is_in_recovery()"), "f");
}

TEST(PostgresServer, IsReachedThroughAPooler) {
  const PostgresServer server;
  const PgBouncer pooler(server);
  PostgresConnection client(server.url_at(pooler.port()));
  EXPECT_NE(client.value("SELECT pg_backend_pid()"), std::to_string(client.backend_pid()));
}

TEST(PostgresServer, IsReachedThroughAProxy) {
  const PostgresServer server;
  rig::TcpProxy proxy(rig::Endpoint::loopback(server.port()));
  EXPECT_EQ(PostgresConnection(server.url_at(proxy.port())).value("SELECT 1"), "1");
}

TEST(PostgresServer, TakesMoreConfiguration) {
  PostgresServer server({.max_connections = 6, .lines = {"default_transaction_isolation = serializable"}});
  EXPECT_EQ(server.value("SHOW default_transaction_isolation"), "serializable");
  EXPECT_EQ(server.value("SHOW max_connections"), "6");
}

}  // namespace

}  // namespace dlock::test
