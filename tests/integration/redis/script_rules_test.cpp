// A real server does to keys what the rules say.
#include "tests/simulation/redis/script_rules.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "backends/redis/requests/scripts.hpp"
#include "tests/support/redis_server.hpp"

namespace dlock::test {
namespace {

redis::Reply convert(const RedisReply& reply) {
  redis::Reply out{.type = static_cast<redis::Reply::Type>(reply.type), .integer = reply.integer, .text = reply.text};
  for (const RedisReply& each : reply.elements) out.elements.push_back(convert(each));
  return out;
}

class RealServer final : public redis::ScriptServer {
 public:
  redis::Reply command(const Words& words) override { return convert(server_.command(words)); }
  redis::Reply script(const Words& words) override { return convert(client_.command(words)); }
  void forbid_publishing() override {
    RedisUser user;
    user.patterns = {"~dlock:*", "~{dlock:*"};
    Words words = {"ACL", "SETUSER"};
    for (const std::string& rule : user.rules()) words.push_back(rule);
    (void)server_.command(words);
    (void)client_.command({"AUTH", user.name, user.password});
  }
  void listen(const std::string& channel) override {
    const auto [connection, is_new] = subscribed_.try_emplace(channel, server_.connect());
    EXPECT_TRUE(is_new);
    EXPECT_EQ(connection->second.command({"SUBSCRIBE", channel}).elements.size(), 3U);
  }
  std::string hear(const std::string& channel) override {
    return subscribed_.at(channel).receive().elements.at(2).text;
  }
  std::int64_t published() override { return server_.calls_of({"publish"}); }
  void await_gone(const std::string& key) override {
    while (server_.command({"EXISTS", key}).integer != 0) {
    }
  }

 private:
  RedisServer server_;
  RedisConnection client_ = server_.connect();
  std::map<std::string, RedisConnection> subscribed_;
};

class ScriptRulesTest : public testing::TestWithParam<redis::ScriptRule> {};

TEST_P(ScriptRulesTest, KeepsRule) {
  RealServer server;
  redis::run_rule(GetParam(), server);
}

INSTANTIATE_TEST_SUITE_P(Rules, ScriptRulesTest, testing::ValuesIn(redis::script_rules()),
                         [](const auto& rule) { return rule.param.name; });

TEST(ScriptsTest, TheServerKnowsEachByItsHash) {
  RedisServer server;
  for (const LockKind kind : {LockKind::lock, LockKind::read_write, LockKind::semaphore, LockKind::election}) {
    for (const redis::Script* script :
         {&redis::acquire_script(kind), &redis::renew_script(kind), &redis::release_script(kind),
          &redis::inspect_script(kind), &redis::forget_script(kind)}) {
      EXPECT_EQ(server.command({"SCRIPT", "LOAD", std::string(script->text)}).text, script->sha1) << script->name;
    }
  }
}

}  // namespace
}  // namespace dlock::test
