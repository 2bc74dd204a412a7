// Listing, forgetting and breaking locks among many other keys.
#include "backends/redis/administration/inspection.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "backend_fixture.hpp"
#include "backends/redis/requests/keys.hpp"

namespace dlock::redis {

namespace {

using Names = std::vector<std::string>;

class RedisListTest : public BackendTest {
 protected:
  // The answer to a question, if it comes within so long.
  template <class T, class Ask>
  Result<T> answer_to(Ask&& ask, std::chrono::nanoseconds within = 0s) {
    std::optional<Result<T>> answer;
    ask([&answer](Result<T> result) { answer = std::move(result); });
    engine.advance(within);
    return answer ? *std::move(answer) : Result<T>(Failure{errc::cancelled, "no answer"});
  }
  Result<Names> list(LockKind kind = LockKind::lock, std::chrono::nanoseconds within = 0s) {
    const auto infos = answer_to<std::vector<LockInfo>>([&](auto done) { backend->list(kind, done); }, within);
    if (!infos.ok()) return infos.failure();
    Names names;
    for (const LockInfo& info : infos.value()) names.push_back(info.name);
    return names;
  }
  Result<Names> forget_idle(std::chrono::nanoseconds within = 0s) {
    return answer_to<Names>([&](auto done) { backend->forget({.name = {}, .idle = 1h}, done); }, within);
  }
  Result<bool> break_lock(LockKind kind) {
    return answer_to<bool>([&](auto done) { backend->break_lock(kind, "lock", done); });
  }
  void put(const std::vector<std::string>& keys) {
    for (const std::string& key : keys) (void)model.run({"SET", key, "1 c:1 host:1:x"});
  }
  // SCAN goes on for ever, a key at a time.
  void scan_slowly(std::chrono::nanoseconds pause, const std::string& key) {
    const std::string page = "*2\r\n" + bulk("7") + "*1\r\n" + bulk(key);
    server.answer = [this, pause, page, answer = server.answer](FakeStream& wire, const Words& command) {
      if (command.front() != "SCAN") return answer(wire, command);
      (void)engine.schedule(engine.now() + pause, [&wire, page] { wire.reply(page); });
      return std::string();
    };
  }
};

TEST_F(RedisListTest, FindsLocksInOnePassOverTheKeys) {
  put({"{dlock:b}:dlf", "dlock:a", "a dlock:x", "{dlock:c}:dlq", "{other:dlock:}:dlf", "dlock.rw:c", "data",
       "dlock:{t}\x1f"
       "dlf"});
  const auto held = contend({.name = "d", .kind = LockKind::read_write});
  EXPECT_EQ(list().value(), (Names{"a", "b", "{t}"}));
  EXPECT_EQ(list(LockKind::read_write).value(), (Names{"d"})) << "c is of another type";
  EXPECT_EQ(server.calls("inspect").size(), 5U);
}

TEST_F(RedisListTest, WithoutAPrefixFindsOnlyWhatHasARecord) {
  backend = make("redis://localhost?prefix=");
  put({"{b}:dlf", "data-dlf",
       "{t}\x1f"
       "dlf"});
  EXPECT_EQ(list().value(), (Names{"b", "{t}"}));
}

// A question that is left unanswered at the deadline would cost the connection, on which locks are renewed.
TEST_F(RedisListTest, AmongTooManyKeysItSaysSoAndKeepsTheConnection) {
  scan_slowly(10ms, "data");
  const auto listed = list(LockKind::lock, 2s);
  ASSERT_FALSE(listed.ok());
  EXPECT_EQ(listed.failure().code, errc::unavailable);
  EXPECT_NE(listed.failure().detail.find("too many keys"), std::string::npos) << listed.failure().detail;
  const auto before = server.commands.size();
  engine.advance(10s);
  EXPECT_EQ(server.commands.size(), before);
  EXPECT_EQ(server.dialled, 1);
}

// --- Forgetting ------------------------------------------------------------------------------------------------------

TEST_F(RedisListTest, ForgetsEveryNameThatHasARecordPageByPage) {
  put({"{dlock:b}:dlf", "dlock:dlf", "{dlock:a}:dlf", "{other:dlock:}:dlf", "data"});
  const std::string now = std::to_string(model.now_ms() * 1000);
  (void)model.run({"SET", "{dlock:young}:dlf", now + " c:1 host:1:x"});
  EXPECT_EQ(forget_idle().value(), (Names{"a", "b"}));
  EXPECT_EQ(model.run({"EXISTS", "{dlock:young}:dlf", "dlock:dlf", "{other:dlock:}:dlf", "data"}).integer, 4);
}

TEST_F(RedisListTest, WithoutTimeForAllItTellsThoseThatItHasForgotten) {
  put({"{dlock:a}:dlf"});
  scan_slowly(100ms, "{dlock:a}:dlf");
  EXPECT_EQ(forget_idle(2s).value(), (Names{"a"}));
  const auto none = forget_idle(2s);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.failure().code, errc::unavailable) << "not the same as none";
  EXPECT_EQ(server.dialled, 1);
}

// --- One lock --------------------------------------------------------------------------------------------------------

TEST_F(RedisListTest, BreaksTheHoldOfEachHolder) {
  constexpr auto kind = LockKind::semaphore;
  EXPECT_FALSE(break_lock(kind).value());
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(contend({.kind = kind, .permits = 2})->grant);
  EXPECT_TRUE(break_lock(kind).value());
  EXPECT_FALSE(break_lock(kind).value());
  EXPECT_TRUE(contend({.kind = kind, .permits = 2})->grant);
  (void)model.run({"ZADD", "dlock.sem:lock", "1", "somebody's data"});
  const auto refused = break_lock(kind);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.failure().code, errc::protocol);
  EXPECT_EQ(model.run({"ZCARD", "dlock.sem:lock"}).integer, 2);
}

TEST_F(RedisListTest, ShowsTheValueOfALeader) {
  const auto attempt = contend({.wait = true, .kind = LockKind::election, .value = "10.0.0.7:80"});
  const auto info =
      answer_to<LockInfo>([&](auto done) { backend->inspect(LockKind::election, attempt->request.name, done); });
  EXPECT_EQ(info.value().value, "10.0.0.7:80");
  EXPECT_EQ(info.value().holder, "host:1:test");
}

}  // namespace

}  // namespace dlock::redis
