#include "tests/support/zookeeper_server.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/zookeeper_client.hpp"
#include "torture/rig/tcp_proxy.hpp"

namespace dlock::test {

namespace {

using namespace std::chrono_literals;
using Kind = ZooKeeperClient::Kind;
using Names = std::vector<std::string>;

TEST(ZooKeeperServer, ServesOnItsPort) {
  const ZooKeeperServer server;
  EXPECT_EQ(server.mode(), "standalone");
  EXPECT_EQ(server.ask("ruok"), "imok");
  EXPECT_EQ(server.address(), "127.0.0.1:" + std::to_string(server.port()));
  EXPECT_EQ(server.url(), "zookeeper://" + server.address());
  EXPECT_EQ(server.url("/chroot"), server.url() + "/chroot");
  EXPECT_EQ(server.url("strategy=ephemeral"), server.url() + "?strategy=ephemeral");
}

TEST(ZooKeeperServer, CountsWhatItDoes) {
  const ZooKeeperServer server;
  const auto before = server.figure("zk_packets_received");
  ZooKeeperClient zk(server.address());
  EXPECT_FALSE(zk.get("/a").has_value());
  EXPECT_GT(server.figure("zk_packets_received"), before);
  EXPECT_THROW((void)server.figure("zk_nonsense"), std::runtime_error);
}

TEST(ZooKeeperServer, KeepsItsDataAndItsSessionsAcrossRestarts) {
  ZooKeeperServer server;
  ZooKeeperClient zk(server.address());
  zk.create("/kept", "1");
  zk.create("/mine", {}, Kind::ephemeral);
  server.stop();
  EXPECT_EQ(server.mode(), "");
  server.start();
  EXPECT_EQ(zk.get("/kept").value().data, "1");
  EXPECT_EQ(zk.get("/mine").value().owner, zk.session_id());
  server.kill();
  server.start();
  EXPECT_EQ(zk.get("/kept").value().data, "1");
}

TEST(ZooKeeperServer, IsSilentWhileItStandsStill) {
  const ZooKeeperServer server;
  server.freeze();
  EXPECT_EQ(server.ask("ruok"), "");
  server.thaw();
  EXPECT_EQ(server.mode(), "standalone");
}

TEST(ZooKeeperServer, EndsShortSessions) {
  const ZooKeeperServer server;
  rig::TcpProxy proxy(rig::Endpoint::loopback(server.port()));
  ZooKeeperClient zk(server.address());
  ZooKeeperClient doomed("127.0.0.1:" + std::to_string(proxy.port()), {}, 1s);
  doomed.create("/doomed", {}, Kind::ephemeral);
  const auto start = std::chrono::steady_clock::now();
  proxy.refuse(true);
  proxy.drop();
  while (zk.get("/doomed")) ASSERT_LT(std::chrono::steady_clock::now() - start, 30s);
  EXPECT_GE(std::chrono::steady_clock::now() - start, 700ms);  // the last ping may be some time back
  proxy.refuse(false);
}

TEST(ZooKeeperClient, SeesTheTree) {
  const ZooKeeperServer server;
  ZooKeeperClient zk(server.address());
  zk.create_all("/a/b");
  EXPECT_EQ(zk.create("/a/b/x-", "one", Kind::sequential), "/a/b/x-0000000000");
  EXPECT_EQ(zk.create("/a/b/x-", "two", Kind::sequential), "/a/b/x-0000000001");
  EXPECT_EQ(zk.children("/a/b"), (Names{"x-0000000000", "x-0000000001"}));
  const auto one = zk.get("/a/b/x-0000000000").value();
  const auto two = zk.get("/a/b/x-0000000001").value();
  EXPECT_EQ(one.data, "one");
  EXPECT_LT(one.created, two.created);
  EXPECT_EQ(one.owner, zk.session_id());
  EXPECT_TRUE(zk.remove("/a/b/x-0000000000"));
  EXPECT_FALSE(zk.remove("/a/b/x-0000000000"));
  EXPECT_FALSE(zk.children("/nothing").has_value());
  EXPECT_THROW((void)zk.create("/a"), ZooKeeperRefusal);
  zk.remove_all("/a");
  EXPECT_FALSE(zk.get("/a").has_value());
}

TEST(ZooKeeperClient, HasItsNodesForItself) {
  const ZooKeeperServer server;
  ZooKeeperClient owner(server.address(), "user:secret");
  owner.create("/private", {}, Kind::persistent, ZooKeeperClient::Access::creator);
  ZooKeeperClient stranger(server.address());
  EXPECT_THROW((void)stranger.get("/private"), ZooKeeperRefusal);
  EXPECT_TRUE(owner.remove("/private"));
}

TEST(ZooKeeperClient, EndsSessionsOfOthers) {
  const ZooKeeperServer server;
  ZooKeeperClient zk(server.address());
  ZooKeeperClient victim(server.address());
  victim.create("/mine", {}, Kind::ephemeral);
  const auto before = victim.session_id();
  end_session_of(server.address(), "/mine");
  EXPECT_FALSE(zk.get("/mine").has_value());
  EXPECT_FALSE(victim.get("/mine").has_value());  // in a new session
  EXPECT_NE(victim.session_id(), before);
}

TEST(ZooKeeperEnsemble, ElectsALeaderAndAnother) {
  ZooKeeperEnsemble ensemble;
  const std::size_t first = ensemble.leader();
  EXPECT_EQ(ensemble.server(ensemble.follower()).mode(), "follower");
  ZooKeeperClient zk(ensemble.addresses());
  zk.create("/a", "1");
  ensemble.server(first).kill();
  const std::size_t second = ensemble.leader();
  EXPECT_NE(second, first);
  EXPECT_EQ(zk.get("/a").value().data, "1");
  ensemble.start();
  ZooKeeperClient again(ensemble.server(first).address());
  again.sync();
  EXPECT_EQ(again.get("/a").value().data, "1");
}

TEST(ZooKeeperEnsemble, ServesNobodyWithoutAQuorum) {
  ZooKeeperEnsemble ensemble;
  const std::size_t last = ensemble.follower();
  for (std::size_t i = 0; i < ensemble.size(); ++i) {
    if (i != last) ensemble.server(i).kill();
  }
  const auto start = std::chrono::steady_clock::now();
  while (!ensemble.server(last).mode().empty()) ASSERT_LT(std::chrono::steady_clock::now() - start, 60s);
  ensemble.start();
  ZooKeeperClient zk(ensemble.server(last).address());
  zk.create("/a");
}

}  // namespace

}  // namespace dlock::test
