// What is different for read-write locks, semaphores and elections: keys, scripts, and what they are told.
#include <gtest/gtest.h>

#include <algorithm>

#include "backend_fixture.hpp"
#include "backends/redis/timing.hpp"

namespace dlock::redis {

namespace {

struct Asked {
  bool wait = false;
  LockKind kind = LockKind::lock;
  Mode mode = Mode::exclusive;
  std::uint32_t permits = 1;
  std::string value = {};
};

class RedisKindsTest : public BackendTest {
 protected:
  std::unique_ptr<Attempt> contend_for(Asked asked) {
    auto attempt = std::make_unique<Attempt>();
    attempt->request = {.name = "lock",
                        .owner = host.new_owner_id(),
                        .holder = "host:1:test",
                        .lease = 30s,
                        .wait = asked.wait,
                        .kind = asked.kind,
                        .mode = asked.mode,
                        .permits = asked.permits,
                        .value = std::move(asked.value)};
    attempt->contention = backend->contend(attempt->request, *attempt);
    engine.run();
    return attempt;
  }
  // EVAL, script, number of keys, keys, arguments.
  static Words keys_in(const Words& call) { return {call.begin() + 3, call.begin() + 3 + std::stoi(call.at(2))}; }
  static Words arguments_in(const Words& call) { return {call.begin() + 3 + std::stoi(call.at(2)), call.end()}; }
  void answer_by(LockKind kind, const std::string& acquire) {
    server.answer = [kind, acquire](FakeWire&, const Words& command) -> std::string {
      const Script* script = script_in(command);
      if (command.front() == "SUBSCRIBE") return subscribed(command[1]);
      if (script == &acquire_script(kind)) return acquire;
      return script == &release_script(kind) ? "*3\r\n:1\r\n:1\r\n:0\r\n"
             : script == &renew_script(kind) ? number(1)
                                             : "";
    };
  }
};

TEST(RedisCapabilities, OfEachStrategy) {
  for (const auto& [url, shared] : {std::pair("redis://h", true), std::pair("redis://h?strategy=poll", true),
                                    std::pair("redis://h?strategy=broadcast", false)}) {
    test::ManualEngine engine;
    test::RecordingHost host{engine};
    FakeServer server;
    const BackendConfig config{.url = Url::parse(url), .holder = "host:1:test", .lease = 30s, .response_timeout = 2s};
    const Capabilities caps = RedisBackend(host, parse_options(config), server.wires()).capabilities();
    EXPECT_EQ(caps.has(LockKind::read_write), shared) << url;
    EXPECT_EQ(caps.has(LockKind::semaphore), shared) << url;
    EXPECT_TRUE(caps.has(LockKind::election)) << url;
  }
}

TEST_F(RedisKindsTest, AReaderAndAWriterSayWhatTheyAre) {
  answer_by(LockKind::read_write, granted(7));
  for (const Mode mode : {Mode::shared, Mode::exclusive}) {
    const auto attempt = contend_for({.kind = LockKind::read_write, .mode = mode});
    ASSERT_TRUE(attempt->grant);
    EXPECT_EQ(attempt->grant->kind, LockKind::read_write);
    EXPECT_EQ(attempt->grant->mode, mode);
    const Words call = server.calls("acquire").back();
    EXPECT_EQ(keys_in(call),
              (Words{"dlock.rw:lock", "{dlock.rw:lock}:dlq", "{dlock.rw:lock}:dla", "{dlock.rw:lock}:dlf"}));
    const Words arguments = arguments_in(call);
    ASSERT_EQ(arguments.size(), 9U);
    EXPECT_EQ(arguments[7], "0");
    EXPECT_EQ(arguments[8], mode == Mode::shared ? "1" : "0");
  }
}

TEST_F(RedisKindsTest, APermitIsAskedForWithTheirNumberAndKeptByTheScriptsOfItsKind) {
  answer_by(LockKind::semaphore, granted(7));
  const auto attempt = contend_for({.wait = true, .kind = LockKind::semaphore, .permits = 5});
  ASSERT_TRUE(attempt->grant);
  const Words arguments = arguments_in(server.calls("acquire").back());
  EXPECT_EQ((Words{arguments.end() - 2, arguments.end()}), (Words{"5", "1"}));
  renew(*attempt);
  release(*attempt);
  engine.run();
  ASSERT_TRUE(renewed);
  EXPECT_EQ(renewed->status, RenewOutcome::Status::renewed);
  EXPECT_EQ(release_status(), ReleaseOutcome::Status::released);
  EXPECT_EQ(keys_in(server.calls("renew").back()), (Words{"dlock.sem:lock", "{dlock.sem:lock}:dlf"}));
  EXPECT_EQ(keys_in(server.calls("release").back()).size(), 4U);
}

TEST_F(RedisKindsTest, AnotherNumberOfPermitsEndsATryAndAWait) {
  answer_by(LockKind::semaphore, "*2\r\n:2\r\n:3\r\n");
  for (const bool wait : {false, true}) {
    const auto attempt = contend_for({.wait = wait, .kind = LockKind::semaphore, .permits = 5});
    ASSERT_TRUE(attempt->failure);
    EXPECT_EQ(attempt->failure->code, errc::invalid_argument);
    EXPECT_NE(attempt->failure->detail.find('3'), std::string::npos) << attempt->failure->detail;
  }
  EXPECT_TRUE(server.calls("release").empty()) << "there is nothing to take back";
}

TEST_F(RedisKindsTest, WithoutAQueueAWaitingWriterLeavesAMarkAndNobodyElseDoes) {
  backend = make("redis://localhost?strategy=poll");
  answer_by(LockKind::read_write, busy());
  const auto mode_of = [&](Asked asked) {
    const auto attempt = contend_for(std::move(asked));
    return mode_in(server.calls("acquire").back());
  };
  EXPECT_EQ(mode_of({.wait = true, .kind = LockKind::read_write}), "mark");
  EXPECT_EQ(server.calls("acquire").back().at(10), in_milliseconds(mark_for));
  EXPECT_EQ(mode_of({.wait = false, .kind = LockKind::read_write}), "try");
  EXPECT_EQ(mode_of({.wait = true, .kind = LockKind::read_write, .mode = Mode::shared}), "try");
  EXPECT_EQ(mode_of({.wait = true, .kind = LockKind::semaphore, .permits = 2}), "try");
}

TEST_F(RedisKindsTest, WhoeverGivesUpLeavesTheQueueOfItsKind) {
  answer_by(LockKind::read_write, busy());
  auto attempt = contend_for({.wait = true, .kind = LockKind::read_write, .mode = Mode::shared});
  attempt->contention.reset();
  engine.run();
  const auto releases = server.calls("release");
  ASSERT_EQ(releases.size(), 1U);
  EXPECT_EQ(keys_in(releases[0]).front(), "dlock.rw:lock");
  EXPECT_EQ(releases[0].back(), "leave");
}

TEST_F(RedisKindsTest, CloseWaitsForThoseWhoGiveUpOfEveryKind) {
  server.answer = [](FakeWire&, const Words& command) { return script_in(command) == nullptr ? "" : busy(); };
  auto attempt = contend_for({.wait = true, .kind = LockKind::semaphore, .permits = 2});
  server.answer = nullptr;  // it hangs
  attempt->contention.reset();
  close();
  engine.run();
  EXPECT_FALSE(closed);
  server.answer = [](FakeWire&, const Words& command) { return script_in(command) == nullptr ? "" : nobodys(); };
  engine.advance(10s);
  EXPECT_TRUE(closed);
}

TEST_F(RedisKindsTest, ALeaderIsKnownByItsValueAndTellsWhoWatches) {
  answer_by(LockKind::election, granted(7));
  const auto attempt = contend_for({.wait = true, .kind = LockKind::election, .value = "10.0.0.7:80"});
  ASSERT_TRUE(attempt->grant);
  EXPECT_EQ(attempt->grant->kind, LockKind::election);
  const Words call = server.calls("acquire").back();
  EXPECT_EQ(keys_in(call).front(), "dlock.elect:lock");
  EXPECT_EQ(arguments_in(call).at(5), "host:1:test\n10.0.0.7:80");
  EXPECT_EQ(arguments_in(call).size(), 7U);
}

TEST_F(RedisKindsTest, OfABrokenLockEveryHolderIsReleased) {
  const std::string one = value_of(OwnerId(1, 2).to_string(), OwnerId(3, 4));
  const std::string two = value_of(OwnerId(1, 2).to_string(), OwnerId(5, 6));
  std::string holders = "*2\r\n" + bulk(one) + bulk(two);
  server.answer = [&](FakeWire&, const Words& command) -> std::string {
    if (command.front() == "ZRANGE") return holders;
    return script_in(command) == &release_script(LockKind::semaphore) ? "*3\r\n:1\r\n:1\r\n:0\r\n" : "";
  };
  std::optional<Result<bool>> broken;
  const auto break_it = [&] {
    broken.reset();
    backend->break_lock(LockKind::semaphore, "lock", [&](Result<bool> result) { broken = std::move(result); });
    engine.run();
  };
  break_it();
  ASSERT_TRUE(broken && broken->ok());
  EXPECT_TRUE(broken->value());
  EXPECT_EQ(server.calls("release").size(), 2U);
  holders = "*0\r\n";
  break_it();
  ASSERT_TRUE(broken && broken->ok());
  EXPECT_FALSE(broken->value());
  holders = "*2\r\n" + bulk(one) + bulk("somebody's data");
  break_it();
  ASSERT_TRUE(broken && !broken->ok());
  EXPECT_EQ(broken->failure().code, errc::protocol);
  EXPECT_EQ(server.calls("release").size(), 2U);
}

TEST_F(RedisKindsTest, ListsUnderThePrefixOfTheKind) {
  server.answer = [&](FakeWire&, const Words& command) -> std::string {
    if (script_in(command) == &inspect_script(LockKind::read_write)) return "*4\r\n:0\r\n$-1\r\n:0\r\n*0\r\n";
    if (command.front() != "SCAN") return "";
    EXPECT_EQ(command.at(3), "*dlock.rw:*");
    return "*2\r\n" + bulk("0") + "*3\r\n" + bulk("dlock.rw:a") + bulk("{dlock.rw:b}:dlf") + bulk("dlock:c");
  };
  std::vector<std::string> names;
  backend->list(LockKind::read_write, [&](Result<std::vector<LockInfo>> result) {
    ASSERT_TRUE(result.ok());
    for (const LockInfo& info : result.value()) names.push_back(info.name);
  });
  engine.run();
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b"}));
}

}  // namespace

}  // namespace dlock::redis
