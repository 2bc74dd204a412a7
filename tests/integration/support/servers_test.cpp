// The servers that tests start for themselves, and the clients with which tests query them: that these report an error
// where a test relies on it. That servers start, stop, freeze and come back with their data is what the tests of each
// backend do all the time.
#include "tests/support/servers.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "torture/rig/tcp_proxy.hpp"

namespace dlock::test {

namespace {

#if DLOCK_TEST_WITH_REDIS
TEST(RedisServer, RepliesOfEachType_AreRead) {
  RedisServer server;
  EXPECT_TRUE(server.command({"GET", "a"}).is_nil());
  EXPECT_EQ(server.command({"SET", "a", "1"}).type, RedisReply::Type::status);
  EXPECT_EQ(server.command({"INCR", "a"}).integer, 2);
  const RedisReply array = server.command({"EVAL", "return {1, {'x'}, redis.call('GET', 'a')}", "0"});
  ASSERT_EQ(array.elements.size(), 3U);
  EXPECT_EQ(array.elements[1].elements.at(0).text, "x");
  EXPECT_EQ(array.elements[2].text, "2");
  EXPECT_THROW((void)server.command({"NONSENSE"}), std::runtime_error);
  EXPECT_TRUE(server.connect().command({"NONSENSE"}).is_error());
  server.freeze();
  EXPECT_FALSE(server.active());
  server.thaw();
  server.stop();
  EXPECT_THROW((void)rig::connect_to(rig::Endpoint::loopback(server.port())), std::system_error);
}
#endif

#if DLOCK_TEST_WITH_ZOOKEEPER
TEST(ZooKeeperServer, UnknownFigureOrRefusal_IsAnError) {
  const ZooKeeperServer server;
  EXPECT_THROW((void)server.figure("zk_nonsense"), std::runtime_error);
  ZooKeeperClient owner(server.address(), "user:secret");
  owner.create("/private", {}, ZooKeeperClient::Kind::persistent, ZooKeeperClient::Access::creator);
  EXPECT_THROW((void)owner.create("/private"), ZooKeeperRefusal);
  ZooKeeperClient other(server.address());
  EXPECT_THROW((void)other.get("/private"), ZooKeeperRefusal);
  EXPECT_FALSE(other.get("/nothing").has_value());
  EXPECT_FALSE(other.children("/nothing").has_value());
  EXPECT_TRUE(owner.remove("/private"));
  EXPECT_FALSE(owner.remove("/private"));
}
#endif

#if DLOCK_TEST_WITH_ETCD
TEST(EtcdServer, Request_IsCountedAndHistoryForgotten) {
  const EtcdServer server;
  const auto before = server.requests();
  (void)server.ctl({"put", "a/1", "1"});
  EXPECT_GT(server.requests(), before);
  EXPECT_EQ(server.figure("grpc_server_msg_received"), std::nullopt);
  const auto first = server.revision();
  (void)server.ctl({"put", "a/2", "2"});
  EXPECT_EQ(server.revision(), first + 1);
  server.compact();
  EXPECT_THROW((void)server.ctl({"get", "a/1", "--rev=" + std::to_string(first)}), std::runtime_error);
  EXPECT_EQ(server.keys("a/"), (std::vector<std::string>{"a/1", "a/2"}));
}
#endif

#if DLOCK_TEST_WITH_POSTGRES
TEST(PostgresServer, Locker_HasPasswordAndItsDatabaseOnly) {
  PostgresServer server;
  PostgresConnection client(server.url());
  EXPECT_EQ(client.value("SELECT current_user || ' ' || current_database()"), "locker locks");
  EXPECT_THROW(PostgresConnection(server.url_as("locker", "wrong")), std::runtime_error);
  EXPECT_EQ(client.query("SELECT nonsense").sqlstate, "42703");
  EXPECT_EQ(client.query("CREATE SCHEMA mine").sqlstate, "");
  EXPECT_EQ(client.query("CREATE ROLE other").sqlstate, "42501");
  EXPECT_EQ(server.terminate_clients(), 1);
  EXPECT_THROW((void)client.query("SELECT 1"), std::runtime_error);
}
#endif

}  // namespace

}  // namespace dlock::test
