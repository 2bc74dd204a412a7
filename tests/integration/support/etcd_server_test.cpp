#include "tests/support/etcd_server.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "torture/rig/child_process.hpp"
#include "torture/rig/hang_guard.hpp"

namespace dlock::test {

namespace {

using Names = std::vector<std::string>;

std::string what_is_thrown(const std::function<void()>& action) {
  try {
    action();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return {};
}

TEST(EtcdServer, ServesOnItsPort) {
  const EtcdServer server;
  EXPECT_TRUE(server.healthy());
  EXPECT_EQ(server.address(), "127.0.0.1:" + std::to_string(server.port()));
  EXPECT_EQ(server.url(), "etcd://" + server.address());
  EXPECT_EQ(server.url("session_ttl=2s"), server.url() + "?session_ttl=2s");
  (void)server.ctl({"put", "a/1", "one"});
  (void)server.ctl({"put", "a/2", "two"});
  EXPECT_EQ(server.ctl({"get", "a/2", "--print-value-only"}), "two\n");
  EXPECT_EQ(server.keys("a/"), (Names{"a/1", "a/2"}));
  EXPECT_EQ(server.keys("b/"), Names());
  EXPECT_NE(what_is_thrown([&] {
              (void)server.ctl({"lease", "revoke", "1"});
            }).find("lease not found"),
            std::string::npos);
}

TEST(EtcdServer, GrantsLeasesOfASecond) {
  const EtcdServer server;
  EXPECT_NE(server.ctl({"lease", "grant", "1"}).find("granted with TTL(1s)"), std::string::npos);
}

TEST(EtcdServer, CountsWhatItDoes) {
  const EtcdServer server;
  const auto before = server.requests();
  const auto puts = server.figure("grpc_server_msg_received_total", "\"Put\"");
  (void)server.ctl({"put", "a", "1"});
  EXPECT_GT(server.requests(), before);
  EXPECT_EQ(server.figure("grpc_server_msg_received_total", "\"Put\""), puts.value() + 1);
  EXPECT_EQ(server.figure("grpc_server_msg_received"), std::nullopt);
}

TEST(EtcdServer, ForgetsItsHistory) {
  const EtcdServer server;
  (void)server.ctl({"put", "a", "1"});
  const auto first = server.revision();
  (void)server.ctl({"put", "a", "2"});
  EXPECT_EQ(server.revision(), first + 1);
  server.compact();
  EXPECT_NE(what_is_thrown([&] {
              (void)server.ctl({"get", "a", "--rev=" + std::to_string(first)});
            }).find("compacted"),
            std::string::npos);
}

TEST(EtcdServer, KeepsItsDataAcrossRestarts) {
  EtcdServer server;
  (void)server.ctl({"put", "kept", "1"});
  server.stop();
  EXPECT_FALSE(server.healthy());
  server.start();
  EXPECT_EQ(server.keys("kept"), Names{"kept"});
  server.kill();
  server.start();
  EXPECT_EQ(server.keys("kept"), Names{"kept"});
}

TEST(EtcdServer, IsSilentWhileItStandsStill) {
  const EtcdServer server;
  server.freeze();
  EXPECT_FALSE(server.healthy());
  server.thaw();
  server.await_serving();
}

TEST(EtcdServer, LetsOthersLock) {
  const EtcdServer server;
  const auto holder = server.ctl_process({"lock", "a", "--ttl=1"});
  ASSERT_TRUE(holder->wait_for_output("a/"));
  EXPECT_EQ(server.keys("a/").size(), 1U);
  holder->signal(SIGKILL);
  const auto start = std::chrono::steady_clock::now();
  while (!server.keys("a/").empty()) ASSERT_LT(std::chrono::steady_clock::now() - start, rig::hang_guard);
}

TEST(EtcdServer, RefusesStrangers) {
  EtcdServer server({.user = EtcdUser{}});
  EXPECT_EQ(server.url(), "etcd://locker:locker-secret@" + server.address());
  (void)server.ctl({"put", "other/a", "1"});
  const auto ctl_as = [&](const std::string& user, const std::string& key) {
    std::vector<std::string> line = {"env", "ETCDCTL_API=3", "etcdctl", "--endpoints=" + server.address(),
                                     "--command-timeout=5s"};
    if (!user.empty()) line.push_back("--user=" + user);
    line.insert(line.end(), {"put", key, "1"});
    return what_is_thrown([&] { (void)rig::run_command(line); });
  };
  EXPECT_NE(ctl_as("", "dlock/a").find("user name is empty"), std::string::npos);
  EXPECT_NE(ctl_as("locker:wrong", "dlock/a").find("authentication failed"), std::string::npos);
  EXPECT_NE(ctl_as("locker:locker-secret", "other/a").find("permission denied"), std::string::npos);
  EXPECT_EQ(ctl_as("locker:locker-secret", "dlock/a"), "");
  server.stop();
  server.start();
  EXPECT_EQ(server.keys("dlock/"), Names{"dlock/a"});
}

TEST(EtcdServer, SpeaksTls) {
  const EtcdServer server({.tls = true});
  EXPECT_EQ(server.url("prefix=a/"),
            "etcds://" + server.address() + "?tls_ca=" + server.certificate().authority() + "&prefix=a/");
  (void)server.ctl({"put", "a", "1"});
  EXPECT_EQ(server.keys("a"), Names{"a"});
  EXPECT_NE(what_is_thrown([&] {
              (void)rig::run_command({"env", "ETCDCTL_API=3", "etcdctl", "--endpoints=" + server.address(),
                                      "--command-timeout=1s", "get", "a"});
            }),
            "");
}

TEST(EtcdServer, DemandsClientCertificates) {
  const EtcdServer server({.tls = true, .client_certificates = true});
  const ThrowawayCertificate& files = server.certificate();
  EXPECT_EQ(server.url(), "etcds://" + server.address() + "?tls_ca=" + files.authority() +
                              "&tls_cert=" + files.certificate() + "&tls_key=" + files.key());
  (void)server.ctl({"put", "a", "1"});
  EXPECT_EQ(server.keys("a"), Names{"a"});
  EXPECT_NE(what_is_thrown([&] {
              (void)rig::run_command({"env", "ETCDCTL_API=3", "etcdctl", "--endpoints=" + server.address(),
                                      "--insecure-transport=false", "--cacert=" + files.authority(),
                                      "--command-timeout=1s", "get", "a"});
            }),
            "");
}

TEST(EtcdCluster, ElectsALeaderAndAnother) {
  EtcdCluster cluster;
  EXPECT_EQ(cluster.url(), "etcd://" + cluster.addresses());
  const std::size_t first = cluster.leader();
  EXPECT_NE(cluster.follower(), first);
  EXPECT_NE(cluster.follower(cluster.follower()), cluster.follower());
  (void)cluster.server(first).ctl({"put", "a", "1"});
  cluster.server(first).kill();
  const std::size_t second = cluster.leader();
  EXPECT_NE(second, first);
  EXPECT_EQ(cluster.server(second).keys("a"), Names{"a"});
  cluster.start();
  EXPECT_EQ(cluster.server(first).keys("a"), Names{"a"});
}

TEST(EtcdCluster, MovesItsLeader) {
  const EtcdCluster cluster;
  const std::size_t next = cluster.follower();
  cluster.move_leader(next);
  EXPECT_EQ(cluster.leader(), next);
}

TEST(EtcdCluster, ServesNobodyWithoutAQuorum) {
  EtcdCluster cluster;
  const std::size_t last = cluster.follower();
  for (std::size_t i = 0; i < cluster.size(); ++i) {
    if (i != last) cluster.server(i).kill();
  }
  EXPECT_FALSE(cluster.server(last).healthy());
  cluster.start();
  EXPECT_TRUE(cluster.server(last).healthy());
}

TEST(EtcdCluster, KnowsItsUsersEverywhere) {
  const EtcdCluster cluster({.user = EtcdUser{}});
  for (std::size_t i = 0; i < cluster.size(); ++i) {
    (void)cluster.server(i).ctl({"put", "dlock/" + std::to_string(i), "1"});
  }
  EXPECT_EQ(cluster.server(0).keys("dlock/").size(), cluster.size());
}

}  // namespace

}  // namespace dlock::test
