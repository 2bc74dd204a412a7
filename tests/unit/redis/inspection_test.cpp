// Listing the locks among many other keys.
#include "backends/redis/administration/inspection.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "backend_fixture.hpp"

namespace dlock::redis {

namespace {

class RedisListTest : public BackendTest {
 protected:
  void list() {
    backend->list(LockKind::lock, [this](Result<std::vector<LockInfo>> result) { listed = std::move(result); });
    engine.run();
  }
  static std::string scanned(const std::string& cursor, const std::vector<std::string>& keys) {
    std::string bytes =
        "*2\r\n$" + std::to_string(cursor.size()) + "\r\n" + cursor + "\r\n*" + std::to_string(keys.size()) + "\r\n";
    for (const std::string& key : keys) bytes += "$" + std::to_string(key.size()) + "\r\n" + key + "\r\n";
    return bytes;
  }
  std::size_t scans() const {
    return static_cast<std::size_t>(std::count_if(server.commands.begin(), server.commands.end(),
                                                  [](const Words& command) { return command.front() == "SCAN"; }));
  }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const LockInfo& info : listed->value()) out.push_back(info.name);
    return out;
  }

  std::optional<Result<std::vector<LockInfo>>> listed;
};

constexpr const char* free_lock = "*4\r\n$-1\r\n:-2\r\n$-1\r\n:0\r\n";

TEST_F(RedisListTest, FindsLocksInOnePassOverTheKeys) {
  server.answer = [&](FakeWire&, const Words& command) -> std::string {
    if (script_in(command) == &inspect_script()) return free_lock;
    if (command.front() != "SCAN") return "";
    EXPECT_EQ(command.at(3), "*dlock:*");
    return command.at(1) == "0" ? scanned("7", {"{dlock:b}:dlf", "dlock:a", "a dlock:x"})
                                : scanned("0", {"{dlock:b}:dlq",
                                                "dlock:{t}\x1f"
                                                "dlf",
                                                "{other:dlock:}:dlf"});
  };
  list();
  ASSERT_TRUE(listed && listed->ok());
  EXPECT_EQ(names(), (std::vector<std::string>{"a", "b", "{t}"}));
  EXPECT_EQ(scans(), 2U);
}

TEST_F(RedisListTest, WithoutAPrefixFindsOnlyWhatHasARecord) {
  backend = make("redis://localhost?prefix=");
  server.answer = [&](FakeWire&, const Words& command) -> std::string {
    if (script_in(command) == &inspect_script()) return free_lock;
    if (command.front() != "SCAN") return "";
    EXPECT_EQ(command.at(3), "*dlf");
    return scanned("0", {"{b}:dlf", "data-dlf",
                         "{t}\x1f"
                         "dlf"});
  };
  list();
  ASSERT_TRUE(listed && listed->ok());
  EXPECT_EQ(names(), (std::vector<std::string>{"b", "{t}"}));
}

// A question that is left unanswered at the deadline would cost the connection, on which locks are renewed.
TEST_F(RedisListTest, AmongTooManyKeysItSaysSoAndKeepsTheConnection) {
  server.answer = [&](FakeWire& wire, const Words& command) -> std::string {
    if (command.front() == "PING") return "+PONG\r\n";
    if (command.front() != "SCAN") return "";
    (void)engine.schedule(engine.now() + 10ms, [&wire] { wire.reply(scanned("7", {})); });
    return "";
  };
  list();
  engine.advance(2s);
  ASSERT_TRUE(listed && !listed->ok());
  EXPECT_EQ(listed->failure().code, errc::unavailable);
  EXPECT_NE(listed->failure().detail.find("too many keys"), std::string::npos) << listed->failure().detail;
  const auto before = scans();
  engine.advance(10s);
  EXPECT_EQ(scans(), before);
  EXPECT_EQ(server.dialled, 1);
}

// --- Forgetting ------------------------------------------------------------------------------------------------------

class RedisForgettingTest : public RedisListTest {
 protected:
  void forget_idle() {
    backend->forget({.name = {}, .idle = 1h}, [this](Result<Names> result) { forgotten = std::move(result); });
    engine.run();
  }
  static std::string asked_for(const Words& command) { return command.at(3); }  // EVAL, script, 3, lock, ...

  using Names = std::vector<std::string>;
  std::optional<Result<Names>> forgotten;
};

TEST_F(RedisForgettingTest, HasEveryNameForgottenThatHasARecordPageByPage) {
  server.answer = [&](FakeWire&, const Words& command) -> std::string {
    if (script_in(command) == &forget_script()) {
      EXPECT_EQ(command.back(), "3600000000");
      return asked_for(command) == "dlock:young" ? ":0\r\n" : ":1\r\n";
    }
    if (command.front() != "SCAN") return "";
    EXPECT_EQ(command.at(3), "*dlock:*dlf");
    return command.at(1) == "0" ? scanned("7", {"{dlock:b}:dlf", "{dlock:young}:dlf", "dlock:dlf"})
                                : scanned("0", {"{dlock:a}:dlf", "{other:dlock:}:dlf"});
  };
  forget_idle();
  ASSERT_TRUE(forgotten && forgotten->ok());
  EXPECT_EQ(forgotten->value(), (Names{"b", "a"}));
}

TEST_F(RedisForgettingTest, WithoutTimeForAllItTellsThoseThatItHasForgotten) {
  bool any = true;
  server.answer = [&](FakeWire& wire, const Words& command) -> std::string {
    if (script_in(command) == &forget_script()) return any ? ":1\r\n" : ":0\r\n";
    if (command.front() == "PING") return "+PONG\r\n";
    if (command.front() != "SCAN") return "";
    (void)engine.schedule(engine.now() + 100ms, [&wire] { wire.reply(scanned("7", {"{dlock:a}:dlf"})); });
    return "";
  };
  forget_idle();
  engine.advance(2s);
  ASSERT_TRUE(forgotten && forgotten->ok());
  EXPECT_FALSE(forgotten->value().empty());
  any = false;
  forgotten.reset();
  forget_idle();
  engine.advance(2s);
  ASSERT_TRUE(forgotten && !forgotten->ok());
  EXPECT_EQ(forgotten->failure().code, errc::unavailable) << "not the same as none";
  EXPECT_EQ(server.dialled, 1);
}

}  // namespace

}  // namespace dlock::redis
