// The servers that tests start for themselves, and the clients with which tests query them.
#include "tests/support/servers.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/server.hpp"
#include "torture/rig/hang_guard.hpp"
#include "torture/rig/tcp_proxy.hpp"

namespace dlock::test {

namespace {

using namespace std::chrono_literals;
using Names = std::vector<std::string>;

[[maybe_unused]] bool await(const std::function<bool()>& condition) {
  const auto give_up = std::chrono::steady_clock::now() + rig::hang_guard;
  while (!condition() && std::chrono::steady_clock::now() < give_up) {
  }
  return condition();
}

// --- Every server ----------------------------------------------------------------------------------------------------

struct Running {
  std::shared_ptr<Server> server;
  std::string url;  // with the parameter a=1
  std::function<void(const std::string& text)> put;
  std::function<std::string()> get;
};

struct Kind {
  const char* name;
  const char* scheme;
  std::function<Running()> start;
};

const Kind kinds[] = {
#if DLOCK_TEST_WITH_REDIS
    {"Redis", "redis://",
     [] {
       const auto server = std::make_shared<RedisServer>(RedisConfig{.append_only = true});
       return Running{server, server->url("a=1"),
                      [=](const auto& text) {
                        (void)server->command({"SET", "kept", text});
                      },
                      [=] {
                        return server->command({"GET", "kept"}).text;
                      }};
     }},
#endif
#if DLOCK_TEST_WITH_ZOOKEEPER
    {"ZooKeeper", "zookeeper://",
     [] {
       const auto server = std::make_shared<ZooKeeperServer>();
       return Running{server, server->url("a=1"),
                      [=](const auto& text) { ZooKeeperClient(server->address()).create("/kept", text); },
                      [=] { return ZooKeeperClient(server->address()).get("/kept").value().data; }};
     }},
#endif
#if DLOCK_TEST_WITH_ETCD
    {"Etcd", "etcd://",
     [] {
       const auto server = std::make_shared<EtcdServer>();
       return Running{server, server->url("a=1"),
                      [=](const auto& text) {
                        (void)server->ctl({"put", "kept", text});
                      },
                      [=] {
                        return server->ctl({"get", "kept", "--print-value-only"}).substr(0, 1);
                      }};
     }},
#endif
#if DLOCK_TEST_WITH_POSTGRES
    {"Postgres", "postgresql://locker:locker-secret@",
     [] {
       const auto server = std::make_shared<PostgresServer>();
       return Running{server, server->url("a=1"),
                      [=](const auto& text) { server->run("CREATE TABLE kept AS SELECT '" + text + "'::text AS x"); },
                      [=] { return server->value("SELECT x FROM kept"); }};
     }},
#endif
};

class ServerTest : public testing::TestWithParam<Kind> {
 protected:
  Running running = GetParam().start();
  Server& server = *running.server;
};

TEST_P(ServerTest, UrlHasAddressAndParameters) {
  EXPECT_TRUE(running.url.starts_with(GetParam().scheme + server.address())) << running.url;
  EXPECT_TRUE(running.url.ends_with("?a=1")) << running.url;
}

TEST_P(ServerTest, StoppedOrKilled_RefusesConnectionsAndKeepsItsData) {
  running.put("x");
  for (const bool asked : {true, false}) {
    asked ? server.stop() : server.kill();
    EXPECT_FALSE(server.running());
    EXPECT_THROW((void)rig::connect_to(rig::Endpoint::loopback(server.port())), std::system_error);
    server.start();
    EXPECT_EQ(running.get(), "x");
  }
}

TEST_P(ServerTest, Frozen_IsNotActiveUntilThawed) {
  running.put("x");
  EXPECT_TRUE(server.active());
  server.freeze();
  EXPECT_FALSE(server.active());
  EXPECT_TRUE(server.running());
  server.thaw();
  server.await_serving();
  EXPECT_EQ(running.get(), "x");
}

INSTANTIATE_TEST_SUITE_P(, ServerTest, testing::ValuesIn(kinds), [](const auto& info) { return info.param.name; });

// --- Ensembles -------------------------------------------------------------------------------------------------------

template <class Members>
class EnsembleTest : public testing::Test {
 protected:
  Members members;
};

#if DLOCK_TEST_WITH_ZOOKEEPER && DLOCK_TEST_WITH_ETCD
using Ensembles = testing::Types<ZooKeeperEnsemble, EtcdCluster>;
TYPED_TEST_SUITE(EnsembleTest, Ensembles);

TYPED_TEST(EnsembleTest, LeaderKilled_AnotherLeads) {
  auto& members = this->members;
  const std::size_t first = members.leader();
  const std::size_t other = members.follower();
  EXPECT_NE(other, first);
  EXPECT_NE(members.follower(other), first);
  EXPECT_NE(members.follower(other), other);
  members.server(first).kill();
  EXPECT_NE(members.leader(), first);
  members.start();
  EXPECT_TRUE(members.server(first).serves());
}

TYPED_TEST(EnsembleTest, WithoutMajority_NoMemberServes) {
  auto& members = this->members;
  const std::size_t last = members.follower();
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (i != last) members.server(i).kill();
  }
  EXPECT_TRUE(await([&] { return !members.server(last).serves(); }));
  members.start();
  EXPECT_TRUE(members.server(last).serves());
}
#endif

// --- Redis -----------------------------------------------------------------------------------------------------------

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
}

#endif

// --- ZooKeeper -------------------------------------------------------------------------------------------------------

#if DLOCK_TEST_WITH_ZOOKEEPER
using Node = ZooKeeperClient::Kind;

TEST(ZooKeeperServer, Request_IsCounted) {
  const ZooKeeperServer server;
  EXPECT_EQ(server.mode(), "standalone");
  const auto before = server.figure("zk_packets_received");
  EXPECT_FALSE(ZooKeeperClient(server.address()).get("/a").has_value());
  EXPECT_GT(server.figure("zk_packets_received"), before);
  EXPECT_THROW((void)server.figure("zk_nonsense"), std::runtime_error);
}

TEST(ZooKeeperServer, SessionCutOff_EndsNearItsTimeout) {
  const ZooKeeperServer server;
  rig::TcpProxy proxy(rig::Endpoint::loopback(server.port()));
  ZooKeeperClient zk(server.address());
  ZooKeeperClient doomed("127.0.0.1:" + std::to_string(proxy.port()), {}, 1s);
  doomed.create("/doomed", {}, Node::ephemeral);
  const auto start = std::chrono::steady_clock::now();
  proxy.refuse(true);
  proxy.drop();
  EXPECT_TRUE(await([&] { return !zk.get("/doomed"); }));
  EXPECT_GE(std::chrono::steady_clock::now() - start, 700ms);  // the last ping may be some time back
  proxy.refuse(false);
}

TEST(ZooKeeperClient, Tree_IsMadeReadAndRemoved) {
  const ZooKeeperServer server;
  ZooKeeperClient zk(server.address());
  zk.create_all("/a/b");
  EXPECT_EQ(zk.create("/a/b/x-", "one", Node::sequential), "/a/b/x-0000000000");
  EXPECT_EQ(zk.create("/a/b/x-", "two", Node::sequential), "/a/b/x-0000000001");
  EXPECT_EQ(zk.children("/a/b"), (Names{"x-0000000000", "x-0000000001"}));
  const auto one = zk.get("/a/b/x-0000000000").value();
  EXPECT_EQ(one.data, "one");
  EXPECT_LT(one.created, zk.get("/a/b/x-0000000001").value().created);
  EXPECT_EQ(one.owner, zk.session_id());
  EXPECT_TRUE(zk.remove("/a/b/x-0000000000"));
  EXPECT_FALSE(zk.remove("/a/b/x-0000000000"));
  EXPECT_FALSE(zk.children("/nothing").has_value());
  EXPECT_THROW((void)zk.create("/a"), ZooKeeperRefusal);
  zk.remove_all("/a");
  EXPECT_FALSE(zk.get("/a").has_value());
}

TEST(ZooKeeperClient, NodeOfItsDigest_IsDeniedToOthers) {
  const ZooKeeperServer server;
  ZooKeeperClient owner(server.address(), "user:secret");
  owner.create("/private", {}, Node::persistent, ZooKeeperClient::Access::creator);
  EXPECT_THROW((void)ZooKeeperClient(server.address()).get("/private"), ZooKeeperRefusal);
  EXPECT_TRUE(owner.remove("/private"));
}

TEST(ZooKeeperClient, SessionOfAnother_IsEnded) {
  const ZooKeeperServer server;
  ZooKeeperClient victim(server.address());
  victim.create("/mine", {}, Node::ephemeral);
  const auto before = victim.session_id();
  end_session_of(server.address(), "/mine");
  EXPECT_FALSE(victim.get("/mine").has_value());  // in a new session
  EXPECT_NE(victim.session_id(), before);
}
#endif

// --- etcd ------------------------------------------------------------------------------------------------------------

#if DLOCK_TEST_WITH_ETCD
TEST(EtcdServer, Request_IsCounted) {
  const EtcdServer server;
  const auto before = server.requests();
  const auto puts = server.figure("grpc_server_msg_received_total", "\"Put\"");
  (void)server.ctl({"put", "a", "1"});
  EXPECT_GT(server.requests(), before);
  EXPECT_EQ(server.figure("grpc_server_msg_received_total", "\"Put\""), puts.value() + 1);
  EXPECT_EQ(server.figure("grpc_server_msg_received"), std::nullopt);
}

TEST(EtcdServer, Compaction_ForgetsHistory) {
  const EtcdServer server;
  (void)server.ctl({"put", "a/1", "1"});
  const auto first = server.revision();
  (void)server.ctl({"put", "a/2", "2"});
  EXPECT_EQ(server.revision(), first + 1);
  server.compact();
  EXPECT_THROW((void)server.ctl({"get", "a/1", "--rev=" + std::to_string(first)}), std::runtime_error);
  EXPECT_EQ(server.keys("a/"), (Names{"a/1", "a/2"}));
}

TEST(EtcdCluster, LeaderMoved_LeadsAndUsersAreKnownToAll) {
  const EtcdCluster cluster({.user = EtcdUser{}});
  const std::size_t next = cluster.follower();
  cluster.move_leader(next);
  EXPECT_EQ(cluster.leader(), next);
  for (std::size_t i = 0; i < cluster.size(); ++i) {
    (void)cluster.server(i).ctl({"put", "dlock/" + std::to_string(i), "1"});
  }
  EXPECT_EQ(cluster.server(0).keys("dlock/").size(), cluster.size());
}
#endif

// --- PostgreSQL ------------------------------------------------------------------------------------------------------

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

TEST(PostgresServer, Standby_IsReadOnlyUntilPromoted) {
  PostgresServer primary({.max_connections = 20});
  PostgresServer standby({.max_connections = 20, .primary = &primary});
  primary.run("CREATE TABLE a AS SELECT 1 AS x");
  primary.await_standby();
  EXPECT_EQ(standby.value("SELECT x FROM a"), "1");
  EXPECT_EQ(PostgresConnection(standby.url()).query("CREATE TABLE b(x int)").sqlstate, "25006");
  primary.kill();
  standby.promote();
  EXPECT_EQ(standby.value("SELECT pg_is_in_recovery()"), "f");
}

TEST(PgBouncer, Client_HasConnectionOfThePooler) {
  const PostgresServer server;
  const PgBouncer pooler(server);
  PostgresConnection client(server.url_at(pooler.port()));
  EXPECT_NE(client.value("SELECT pg_backend_pid()"), std::to_string(client.backend_pid()));
}
#endif

}  // namespace

}  // namespace dlock::test
