#include "tests/support/redis_server.hpp"

#include <gtest/gtest.h>

#include <string>
#include <system_error>

#include "torture/rig/tcp_proxy.hpp"

namespace dlock::test {

namespace {

TEST(RedisServer, AnswersOnItsPort) {
  const RedisServer server;
  RedisConnection redis(rig::Endpoint::loopback(server.port()));
  EXPECT_EQ(redis.command({"PING"}).text, "PONG");
  EXPECT_EQ(server.url(), "redis://127.0.0.1:" + std::to_string(server.port()));
  EXPECT_EQ(server.url("strategy=poll"), server.url() + "?strategy=poll");
}

TEST(RedisServer, UnderstandsAllKindsOfReplies) {
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

TEST(RedisServer, IsGoneWhenStopped) {
  RedisServer server;
  server.stop();
  EXPECT_THROW(RedisConnection(rig::Endpoint::loopback(server.port())), std::system_error);
}

TEST(RedisServer, ForgetsEverythingWithoutAnAppendOnlyFile) {
  RedisServer server;
  (void)server.command({"SET", "a", "1"});
  server.stop();
  server.start();
  EXPECT_TRUE(server.command({"GET", "a"}).is_nil());
}

TEST(RedisServer, KeepsItsDataInAnAppendOnlyFile) {
  RedisServer server({.append_only = true});
  (void)server.command({"SET", "a", "1"});
  server.kill();
  server.start();
  EXPECT_EQ(server.command({"GET", "a"}).text, "1");
  server.stop();
  server.start();
  EXPECT_EQ(server.command({"GET", "a"}).text, "1");
}

TEST(RedisServer, KnowsItsUsers) {
  const RedisServer server({.password = "top", .user = RedisUser{}});
  RedisConnection redis(rig::Endpoint::loopback(server.port()));
  EXPECT_TRUE(redis.command({"PING"}).is_error());
  EXPECT_FALSE(redis.command({"AUTH", "locker", "locker-secret"}).is_error());
  EXPECT_TRUE(redis.command({"FLUSHALL"}).is_error());
  EXPECT_TRUE(redis.command({"SET", "other", "1"}).is_error());
  EXPECT_EQ(redis.command({"SET", "dlock:a", "1"}).text, "OK");
  EXPECT_EQ(server.connect().command({"GET", "dlock:a"}).text, "1");
}

TEST(RedisServer, SpeaksTls) {
  RedisServer server({.tls = true});
  EXPECT_EQ(server.command({"PING"}).text, "PONG");
  const std::string port = std::to_string(server.port());
  EXPECT_EQ(rig::run_command({"redis-cli", "--tls", "--cacert", server.certificate().authority(), "-p", port, "PING"}),
            "PONG\n");
  EXPECT_NE(server.url().find("rediss://127.0.0.1:" + port), std::string::npos);
}

TEST(RedisServer, HasReplicas) {
  RedisServer primary;
  RedisServer replica({.primary = primary.port()});
  ASSERT_TRUE(replica.process().wait_for_output("MASTER <-> REPLICA sync: Finished with success"));
  (void)primary.command({"SET", "a", "1"});
  EXPECT_EQ(primary.command({"WAIT", "1", "0"}).integer, 1);
  EXPECT_EQ(replica.command({"GET", "a"}).text, "1");
  replica.freeze();
  (void)primary.command({"SET", "a", "2"});
  EXPECT_EQ(primary.command({"WAIT", "1", "50"}).integer, 0);
}

TEST(RedisServer, IsReachedThroughAProxy) {
  RedisServer server;
  rig::TcpProxy proxy(rig::Endpoint::loopback(server.port()));
  RedisConnection redis(rig::Endpoint::loopback(proxy.port()));
  EXPECT_EQ(redis.command({"PING"}).text, "PONG");
  proxy.lose_reply_to("SET");
  EXPECT_THROW((void)redis.command({"SET", "a", "1"}), std::runtime_error);
  EXPECT_EQ(server.command({"GET", "a"}).text, "1");
  EXPECT_FALSE(server.info("server", "redis_version").empty());
}

}  // namespace

}  // namespace dlock::test
