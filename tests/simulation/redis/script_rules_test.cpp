// The model of a server does to keys what a real one does.
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <stdexcept>
#include <utility>

#include "tests/simulation/redis/redis_model.hpp"
#include "tests/simulation/redis/script_rules.hpp"

namespace dlock::redis {
namespace {

using namespace std::chrono_literals;

class ModelServer final : public ScriptServer {
 public:
  ModelServer() {
    model_.publish = [this](const std::string& channel, const std::string& text) -> std::int64_t {
      const auto found = messages_.find(channel);
      if (found == messages_.end()) return 0;
      found->second.push_back(text);
      return 1;
    };
  }
  Reply command(const Words& words) override {
    time_ += 20us;
    return model_.run(words);
  }
  Reply script(const Words& words) override { return command(words); }
  void forbid_publishing() override { model_.may_publish = false; }
  void listen(const std::string& channel) override { messages_[channel]; }
  std::string hear(const std::string& channel) override {
    auto& messages = messages_.at(channel);
    if (messages.empty()) throw std::runtime_error("no message");
    std::string text = std::move(messages.front());
    messages.pop_front();
    return text;
  }
  std::int64_t published() override { return model_.calls["PUBLISH"]; }
  void await_gone(const std::string& key) override {
    while (model_.run({"EXISTS", key}).integer != 0) time_ += 1ms;
  }

 private:
  std::chrono::microseconds time_{1'760'000'000'000'000};
  RedisModel model_{[this] { return time_; }};
  std::map<std::string, std::deque<std::string>> messages_;
};

class RedisModelTest : public testing::TestWithParam<ScriptRule> {};

TEST_P(RedisModelTest, Rule_HoldsAsOnAServer) {
  ModelServer server;
  run_rule(GetParam(), server);
}

INSTANTIATE_TEST_SUITE_P(Rules, RedisModelTest, testing::ValuesIn(script_rules()),
                         [](const auto& rule) { return rule.param.name; });

}  // namespace
}  // namespace dlock::redis
