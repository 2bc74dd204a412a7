// Whom a client believes about where the master is: sentinels that answer, do not, know nothing, or are behind.
#include "backends/redis/sentinel/sentinels.hpp"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend_fixture.hpp"
#include "backends/redis/connection/handshake.hpp"
#include "backends/redis/sentinel/sentinel_findings.hpp"
#include "backends/redis/sentinel/sentinel_wire.hpp"
#include "backends/redis/sentinel/service_state.hpp"
#include "fake_server.hpp"
#include "tests/unit/support/reports.hpp"

namespace dlock::redis {

namespace {

using common::Host;

Options sentinel_options(const std::string& url) {
  return parse_options(
      {.url = Url::parse(url), .holder = "host:1:test", .lease = 10s, .response_timeout = 2s, .connect_timeout = 5s});
}

std::string list_of(const std::vector<std::string>& words) {
  std::string out = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words) out += bulk(word);
  return out;
}

// A sentinel, and what it says.
struct FakeSentinel {
  FakeServer server;
  std::optional<std::string> master = "one";  // nullopt: knows no such service
  int epoch = 0;
  int replicas = 2;
  std::vector<std::string> others;  // sentinels
  std::string id;
  std::string refusal;

  FakeSentinel() {
    server.answer = [this](FakeWire&, const Words& command) -> std::string {
      if (command.front() == "SUBSCRIBE") return about_channel("subscribe", command[1]);
      if (command.front() == "PING") return "+PONG\r\n";
      if (command.front() != "SENTINEL") return "";
      if (!refusal.empty()) return "-" + refusal + "\r\n";
      if (command[1] == "MYID") return id.empty() ? "-ERR unknown subcommand\r\n" : bulk(id);
      if (command[1] == "GET-MASTER-ADDR-BY-NAME") return master ? list_of({*master, "6379"}) : "*-1\r\n";
      if (!master) return "-ERR No such master with that name\r\n";
      if (command[1] == "MASTER") {
        return list_of({"name", "ours", "config-epoch", std::to_string(epoch), "num-slaves", std::to_string(replicas),
                        "quorum", "2", "down-after-milliseconds", "1000"});
      }
      std::string out = "*" + std::to_string(others.size()) + "\r\n";
      for (const std::string& other : others) out += list_of({"ip", other, "port", "26379"});
      return out;
    };
  }
  ~FakeSentinel() { server.answer = nullptr; }
  FakeSentinel(const FakeSentinel&) = delete;
  FakeSentinel& operator=(const FakeSentinel&) = delete;

  // How often it was asked for the master.
  [[nodiscard]] std::size_t questions() const {
    std::size_t count = 0;
    for (const Words& command : server.commands) count += command.size() > 1 && command[1] == "MASTER" ? 1 : 0;
    return count;
  }
  void tell(const std::string& text) { server.publish("+switch-master", text); }
};

class SentinelsTest : public testing::Test, public Sentinels::Follower {
 protected:
  void master_moved(const Host& to) override { moves.push_back(to.name); }

  [[nodiscard]] static Options options(const std::string& parameters = {}) {
    return sentinel_options("redis-sentinel://a,b,c?service_name=ours" + parameters);
  }
  [[nodiscard]] WireFactory network() {
    return [this](Executor& executor, const Options& to, Wire::Events& events) {
      FakeServer& server = to.host.port == 26379 ? all[to.host.name].server : servers[to.host.name];
      return std::make_unique<FakeWire>(server, executor, events);
    };
  }
  void make(const std::string& parameters = {}) {
    sentinels = std::make_unique<Sentinels>(engine, options(parameters), network());
    sentinels->follow(*this);
  }
  // What is known once nothing more happens for a while.
  std::optional<Result<Host>> locate(std::chrono::nanoseconds within = 0s) {
    const auto answer = std::make_shared<std::optional<Result<Host>>>();
    sentinels->locate([answer](const Result<Host>& result) { *answer = result; });
    EXPECT_FALSE(*answer) << "inside the call";
    engine.advance(within);
    return *answer;
  }
  [[nodiscard]] std::string located(std::chrono::nanoseconds within = 0s) {
    const auto answer = locate(within);
    if (!answer) return "no answer";
    return answer->ok() ? answer->value().name : answer->failure().detail;
  }
  void set_all(const std::string& master, int epoch) {
    for (const char* name : {"a", "b", "c"}) {
      all[name].master = master;
      all[name].epoch = epoch;
    }
  }

  // It is asked again once switches are heard of: one may have been missed.
  static constexpr std::size_t asked_and_subscribed = 2;

  const OwnerId owner{1, 2};
  test::ManualEngine engine;
  std::map<std::string, FakeServer> servers;
  std::map<std::string, FakeSentinel> all;
  std::vector<std::string> moves;
  std::unique_ptr<Sentinels> sentinels;
};

// --- Whom it asks ----------------------------------------------------------------------------------------------------

TEST_F(SentinelsTest, OneAnswerIsEnough) {
  make();
  EXPECT_EQ(located(), "one");
  EXPECT_EQ(all["b"].questions() + all["c"].questions(), 0U);
}

TEST_F(SentinelsTest, OneThatRefusesIsPassedOverAtOnceAndOneThatIsSilentSoon) {
  make();
  all["a"].server.dialling = FakeServer::Dialling::refuse;
  all["b"].server.dialling = FakeServer::Dialling::silence;
  EXPECT_FALSE(locate(499ms));
  EXPECT_EQ(located(1ms), "one");
  EXPECT_GE(all["c"].questions(), 1U);
}

TEST_F(SentinelsTest, WhoAsksMeanwhileSharesTheAnswer) {
  make();
  int answers = 0;
  for (int i = 0; i < 5; ++i) sentinels->locate([&](const Result<Host>& result) { answers += result.ok() ? 1 : 0; });
  engine.run();
  EXPECT_EQ(answers, 5);
  EXPECT_EQ(all["a"].questions(), asked_and_subscribed);
}

TEST_F(SentinelsTest, WhoAsksAgainSoonAsksAnotherOne) {
  make();
  EXPECT_EQ(located(), "one");
  EXPECT_EQ(located(), "one");
  EXPECT_EQ(all["b"].questions(), 1U);
  engine.advance(10s);
  EXPECT_EQ(located(), "one");
  EXPECT_EQ(all["b"].questions(), 2U);
}

TEST_F(SentinelsTest, OneThatCannotBeReachedIsLeftAloneUntilItIsAskedAgain) {
  make();
  all["a"].server.dialling = FakeServer::Dialling::refuse;
  EXPECT_EQ(located(), "one");
  const int dialled = all["a"].server.dialled;
  engine.advance(1min);
  EXPECT_EQ(all["a"].server.dialled, dialled);
}

TEST_F(SentinelsTest, NoAnswerAtAllIsUnavailableAndNamesEach) {
  make();
  for (const char* name : {"a", "b", "c"}) all[name].server.dialling = FakeServer::Dialling::silence;
  const auto answer = locate(2s);
  ASSERT_TRUE(answer && !answer->ok());
  EXPECT_EQ(answer->failure().code, errc::unavailable);
  for (const char* name : {"a:26379", "b:26379", "c:26379"}) {
    EXPECT_NE(answer->failure().detail.find(name), std::string::npos) << answer->failure().detail;
  }
}

TEST_F(SentinelsTest, AServiceThatNoneKnowsIsAWrongName) {
  make();
  for (const char* name : {"a", "b", "c"}) all[name].master.reset();
  const auto answer = locate();
  ASSERT_TRUE(answer && !answer->ok());
  EXPECT_EQ(answer->failure().code, errc::invalid_argument);
  EXPECT_NE(answer->failure().detail.find("service_name"), std::string::npos);
}

TEST_F(SentinelsTest, OneThatIsSilentMightKnowIt) {
  make();
  all["a"].master.reset();
  all["b"].master.reset();
  all["c"].server.dialling = FakeServer::Dialling::refuse;
  const auto answer = locate();
  ASSERT_TRUE(answer && !answer->ok());
  EXPECT_EQ(answer->failure().code, errc::unavailable);
}

TEST_F(SentinelsTest, AWrongPasswordIsDenied) {
  make();
  for (const char* name : {"a", "b", "c"}) all[name].refusal = "NOAUTH Authentication required.";
  const auto answer = locate();
  ASSERT_TRUE(answer && !answer->ok());
  EXPECT_EQ(answer->failure().code, errc::access_denied);
}

TEST_F(SentinelsTest, OthersAreLearntUpToABound) {
  for (int i = 0; i < 100; ++i) all["a"].others.push_back("x" + std::to_string(i));
  make();
  EXPECT_EQ(located(), "one");
  for (auto& [name, sentinel] : all) sentinel.server.dialling = FakeServer::Dialling::refuse;
  for (int i = 0; i < 100; ++i) all["x" + std::to_string(i)].server.dialling = FakeServer::Dialling::refuse;
  all["x12"].server.dialling = FakeServer::Dialling::accept;
  for (FakeWire* wire : std::vector(all["a"].server.connections)) wire->close({errc::unavailable, "gone"});
  EXPECT_EQ(located(10s), "one") << "a, b, c and thirteen others";
  EXPECT_EQ(all["x13"].server.dialled, 0);
}

TEST_F(SentinelsTest, OneThatHasTwoNamesIsOne) {
  make();
  all["a"].others = {"x"};
  all["x"].id = all["b"].id = "the id of b";
  EXPECT_EQ(located(), "one");
  std::vector<std::string> names;
  sentinels->survey([&](const std::vector<Sentinels::Said>& said) {
    for (const auto& each : said) names.push_back(each.sentinel.name);
  });
  engine.run();
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b", "c"}));
}

// --- Whom it believes ------------------------------------------------------------------------------------------------

TEST_F(SentinelsTest, OneThatHasNotHeardOfTheLastFailoverCountsForNothing) {
  make();
  set_all("two", 5);
  all["b"].master = "one";
  all["b"].epoch = 4;
  EXPECT_EQ(located(), "two");
  EXPECT_EQ(located(), "two") << "b was asked";
  EXPECT_EQ(all["b"].questions(), 1U);
  EXPECT_EQ(moves, std::vector<std::string>{"two"});
}

TEST_F(SentinelsTest, AServiceThatWasSetUpAnewIsBelievedWhereMostSaySoForLong) {
  make();
  set_all("two", 5);
  EXPECT_EQ(located(), "two");
  set_all("three", 0);
  all["c"].server.dialling = FakeServer::Dialling::refuse;
  engine.advance(59s);
  EXPECT_NE(located().find("does not know of the latest failover"), std::string::npos);
  engine.advance(1s);
  EXPECT_EQ(located(), "three");
  EXPECT_EQ(located(), "three");
}

TEST_F(SentinelsTest, OfThoseThatWereLearntOnlyTheOnesThatAnswerCount) {
  const Options one = sentinel_options("redis-sentinel://a?service_name=ours");
  sentinels = std::make_unique<Sentinels>(engine, one, network());
  all["a"].others = {"x", "y", "z"};
  all["a"].epoch = 5;
  EXPECT_EQ(located(), "one");
  // All are new, behind the same name.
  all["a"].others = {"p", "q"};
  for (const char* name : {"a", "p", "q"}) {
    all[name].master = "two";
    all[name].epoch = 0;
  }
  for (const char* name : {"x", "y", "z"}) all[name].server.dialling = FakeServer::Dialling::refuse;
  engine.advance(1min);
  (void)located();
  EXPECT_EQ(located(), "two");
}

TEST_F(SentinelsTest, AFewThatAreBehindAreNeverBelieved) {
  make();
  set_all("two", 5);
  EXPECT_EQ(located(), "two");
  set_all("one", 4);
  for (const char* name : {"b", "c"}) all[name].server.dialling = FakeServer::Dialling::refuse;
  engine.advance(1min);
  EXPECT_NE(located().find("does not know of the latest failover"), std::string::npos);
}

TEST_F(SentinelsTest, OneThatMayOnlyBeAskedForTheAddressIsBelieved) {
  make();
  all["a"].server.answer = [](FakeWire&, const Words& command) -> std::string {
    if (command.front() != "SENTINEL") return "";
    if (command[1] == "GET-MASTER-ADDR-BY-NAME") return list_of({"one", "6379"});
    return "-NOPERM this user has no permissions to run this command\r\n";
  };
  EXPECT_EQ(located(), "one");
}

TEST_F(SentinelsTest, OneThatKeepsSilentAboutTheEpochIsNotBelieved) {
  make();
  set_all("two", 5);
  EXPECT_EQ(located(), "two");
  all["b"].server.answer = [](FakeWire&, const Words& command) -> std::string {
    if (command.front() != "SENTINEL") return "";
    if (command[1] == "GET-MASTER-ADDR-BY-NAME") return list_of({"one", "6379"});
    return "-BUSY Redis is busy\r\n";
  };
  EXPECT_EQ(located(), "two");
  EXPECT_EQ(moves, std::vector<std::string>{"two"});
}

TEST_F(SentinelsTest, WhereAllReplicasCountTheirNumberHasToBeKnown) {
  make("&replicas_ack=all");
  EXPECT_EQ(sentinels->replicas_wanted(), 1U) << "never none";
  all["a"].server.answer = [](FakeWire&, const Words& command) -> std::string {
    if (command.front() != "SENTINEL") return "";
    if (command[1] == "GET-MASTER-ADDR-BY-NAME") return list_of({"one", "6379"});
    return "-NOPERM this user has no permissions to run this command\r\n";
  };
  all["b"].replicas = 4;
  EXPECT_EQ(located(), "one");
  EXPECT_GE(all["b"].questions(), 1U);
  EXPECT_EQ(sentinels->replicas_wanted(), 4U);
}

TEST_F(SentinelsTest, ASentinelThatWasResetDoesNotMakeThemFewer) {
  make("&replicas_ack=all");
  EXPECT_EQ(located(), "one");
  EXPECT_EQ(sentinels->replicas_wanted(), 2U);
  all["a"].replicas = 0;
  EXPECT_EQ(located(10s), "one");
  EXPECT_EQ(sentinels->replicas_wanted(), 2U) << "b and c know better";
  make("&replicas_ack=all");
  EXPECT_EQ(located(10s), "one");
  EXPECT_EQ(sentinels->replicas_wanted(), 2U) << "all are asked at the beginning";
}

TEST_F(SentinelsTest, FewerReplicasCountOnceAllHaveSaidSoForAWhile) {
  make("&replicas_ack=all");
  EXPECT_EQ(located(), "one");
  sentinels->in_use(owner, 5min);
  for (const char* name : {"a", "b", "c"}) all[name].replicas = 1;
  engine.advance(14s);
  EXPECT_EQ(sentinels->replicas_wanted(), 2U);
  engine.advance(8s);
  EXPECT_EQ(sentinels->replicas_wanted(), 1U);
}

TEST_F(SentinelsTest, FewerThanTheFloorAreNotEnough) {
  make("&replicas_ack=all&replicas_min=2");
  for (const char* name : {"a", "b", "c"}) all[name].replicas = 0;
  EXPECT_EQ(located(), "one");
  EXPECT_EQ(sentinels->replicas_wanted(), 2U);
  make("&replicas_ack=3");
  EXPECT_EQ(located(), "one");
  EXPECT_EQ(sentinels->replicas_wanted(), 3U) << "as the URL says";
}

// --- Moves -----------------------------------------------------------------------------------------------------------

TEST_F(SentinelsTest, HearsOfASwitch) {
  make();
  EXPECT_EQ(located(), "one");
  all["a"].tell("ours one 6379 two 6379");
  engine.run();
  EXPECT_EQ(moves, (std::vector<std::string>{"one", "two"}));
}

TEST_F(SentinelsTest, WhoHasNotHeardOfTheSwitchIsNotBelievedAfterIt) {
  make();
  EXPECT_EQ(located(), "one");
  all["a"].master = "two";
  all["a"].epoch = 1;
  std::optional<Result<Host>> answer;
  sentinels->locate([&](const Result<Host>& result) { answer = result; });  // b is asked, which is behind
  all["a"].tell("ours one 6379 two 6379");
  engine.run();
  ASSERT_TRUE(answer && answer->ok());
  EXPECT_EQ(answer->value().name, "two");
  EXPECT_EQ(located(), "two");
  all["a"].tell("ours one 6379 two 6379");  // once more
  EXPECT_EQ(located(), "two");
  EXPECT_EQ(moves, (std::vector<std::string>{"one", "two"}));
}

TEST_F(SentinelsTest, OtherServicesAndNonsenseAreNoSwitch) {
  make();
  EXPECT_EQ(located(), "one");
  for (const char* text :
       {"theirs one 6379 two 6379", "ours one 6379 two", "ours one 6379 two 0", "ours one 6379 two 65536",
        "ours one 6379 two 6379 more", "", "ours", "ours one 6379 t/o 6379"}) {
    all["a"].tell(text);
    engine.run();
  }
  EXPECT_EQ(moves, std::vector<std::string>{"one"});
}

TEST_F(SentinelsTest, WhoNoLongerFollowsIsNotTold) {
  make();
  EXPECT_EQ(located(), "one");
  sentinels->unfollow(*this);
  all["a"].tell("ours one 6379 two 6379");
  engine.run();
  EXPECT_EQ(moves, std::vector<std::string>{"one"});
}

TEST_F(SentinelsTest, LooksEverySecondWhileTheClientHasALockAndNotLonger) {
  make();
  EXPECT_EQ(located(), "one");
  engine.advance(10s);
  const auto all_questions = [&] { return all["a"].questions() + all["b"].questions() + all["c"].questions(); };
  auto before = all_questions();
  sentinels->in_use(owner, 10s);
  engine.advance(1min);
  EXPECT_GE(all_questions() - before, 9U);
  EXPECT_LE(all_questions() - before, 11U);
  for (const char* name : {"a", "b", "c"}) EXPECT_GE(all[name].questions(), 3U) << "in turn";
  before = all_questions();
  sentinels->in_use(owner, 24h);
  engine.advance(5s);
  sentinels->done_with(owner);
  engine.advance(1min);
  EXPECT_LE(all_questions() - before, 7U);
}

// The sentinel that it listens to is cut off together with the old master.
TEST_F(SentinelsTest, TheOthersAreBelievedThoughTheOneThatItListensToKnowsNothing) {
  make();
  EXPECT_EQ(located(), "one");
  engine.advance(10s);
  sentinels->in_use(owner, 1min);
  for (const char* name : {"b", "c"}) {
    all[name].master = "two";
    all[name].epoch = 6;
  }
  engine.advance(3s);
  EXPECT_EQ(moves, (std::vector<std::string>{"one", "two"}));
}

TEST_F(SentinelsTest, AnotherNameOfTheSameMasterMovesNothing) {
  make();
  EXPECT_EQ(located(), "one");
  all["b"].master = "one.example.net";
  sentinels->in_use(owner, 1min);
  engine.advance(10s);
  EXPECT_EQ(moves, std::vector<std::string>{"one"});
}

TEST_F(SentinelsTest, AnIdleClientListensElsewhereToo) {
  make();
  EXPECT_EQ(located(), "one");
  all["a"].server.dialling = FakeServer::Dialling::refuse;
  all["a"].server.cut();
  engine.advance(3s);
  EXPECT_EQ(all["b"].server.subscribers() + all["c"].server.subscribers(), 1);
  const int dialled = all["a"].server.dialled;
  engine.advance(10min);
  EXPECT_EQ(all["a"].server.dialled, dialled) << "nobody asks it";
}

TEST_F(SentinelsTest, WhoComesBackToALockLooksAtOnce) {
  make();
  EXPECT_EQ(located(), "one");
  engine.advance(10s);
  set_all("two", 1);
  sentinels->in_use(owner, 1min);
  engine.run();
  EXPECT_EQ(moves, (std::vector<std::string>{"one", "two"}));
}

TEST_F(SentinelsTest, OneThatHangsUpOnListenersIsNotStormed) {
  make();
  all["a"].server.answer = [answer = all["a"].server.answer](FakeWire& from, const Words& command) {
    if (command.front() != "SUBSCRIBE") return answer(from, command);
    from.reply(about_channel("subscribe", command[1]));
    from.close({errc::unavailable, "gone"});
    return std::string();
  };
  EXPECT_EQ(located(), "one");
  engine.advance(10s);
  EXPECT_LE(all["a"].server.dialled, 40);
}

TEST_F(SentinelsTest, AMasterThatWasForgottenWithoutAWordIsFoundOut) {
  make();
  EXPECT_EQ(located(), "one");
  sentinels->in_use(owner, 1min);
  set_all("two", 1);
  engine.advance(2s);
  EXPECT_EQ(moves, (std::vector<std::string>{"one", "two"}));
}

TEST_F(SentinelsTest, ListensElsewhereWhereTheSentinelGoes) {
  make();
  EXPECT_EQ(located(), "one");
  sentinels->in_use(owner, 1min);
  EXPECT_EQ(all["a"].server.subscribers(), 1);
  all["a"].server.dialling = FakeServer::Dialling::refuse;
  all["a"].server.cut();
  engine.advance(3s);
  EXPECT_EQ(all["a"].server.subscribers() + all["b"].server.subscribers() + all["c"].server.subscribers(), 1);
  all["b"].tell("ours one 6379 two 6379");
  all["c"].tell("ours one 6379 two 6379");
  engine.run();
  EXPECT_EQ(moves, (std::vector<std::string>{"one", "two"}));
}

TEST_F(SentinelsTest, WhoMayNotListenIsNotTriedForever) {
  make();
  all["a"].server.answer = [answer = all["a"].server.answer](FakeWire& from, const Words& command) {
    return command.front() == "SUBSCRIBE" ? std::string("-NOPERM no permissions\r\n") : answer(from, command);
  };
  EXPECT_EQ(located(), "one");
  sentinels->in_use(owner, 10s);
  const int dialled = all["a"].server.dialled;
  engine.advance(10s);
  EXPECT_EQ(all["a"].server.dialled, dialled);
}

// --- Connections -----------------------------------------------------------------------------------------------------

class SentinelBackendTest : public SentinelsTest {
 protected:
  void TearDown() override {
    for (auto& [name, server] : servers) server.answer = nullptr;
  }
  // A server that says what it is and grants everything, with this token.
  void add_server(const std::string& name, const std::string& role, std::uint64_t token) {
    servers[name].answer = [role, token](FakeWire&, const Words& command) -> std::string {
      if (command.front() == "ROLE") return "*1\r\n" + bulk(role);
      if (command.front() == "SUBSCRIBE") return about_channel("subscribe", command[1]);
      if (command.front() == "PING") return "+PONG\r\n";
      const Script* script = script_in(command);
      if (script == &acquire_script()) return granted(token);
      return script == &release_script() ? released() : "";
    };
  }
  void connect(const std::string& parameters = {}) {
    const Options all_options = options(parameters);
    auto shared = std::make_shared<Sentinels>(engine, all_options, network());
    backend = std::make_unique<RedisBackend>(host, all_options, sentinel_wires(shared, network()), shared);
  }
  std::unique_ptr<test::Attempt> contend(bool wait) {
    auto attempt = std::make_unique<test::Attempt>();
    attempt->request = {
        .name = "lock", .owner = host.new_owner_id(), .holder = "host:1:test", .lease = 30s, .wait = wait};
    attempt->contention = backend->contend(attempt->request, *attempt);
    engine.run();
    return attempt;
  }

  test::RecordingHost host{engine};
  std::unique_ptr<RedisBackend> backend;
};

TEST_F(SentinelBackendTest, LocksAtTheMaster) {
  add_server("one", "master", 7);
  connect();
  const auto attempt = contend(false);
  ASSERT_TRUE(attempt->grant);
  EXPECT_EQ(attempt->grant->token.value(), 7U);
}

TEST_F(SentinelBackendTest, AReplicaThatIsNamedAsTheMasterIsNotUsed) {
  add_server("one", "slave", 7);
  connect();
  const auto attempt = contend(false);
  ASSERT_TRUE(test::failed(*attempt, errc::unavailable, "says that it is not"));
  EXPECT_TRUE(servers["one"].calls("acquire").empty());
}

TEST_F(SentinelBackendTest, AWaiterFindsTheMasterOnceThereIsOne) {
  add_server("one", "slave", 7);
  connect();
  const auto attempt = contend(true);
  engine.advance(3s);
  EXPECT_FALSE(attempt->grant);
  add_server("two", "master", 8);
  set_all("two", 1);
  engine.advance(2s);
  ASSERT_TRUE(attempt->grant);
  EXPECT_EQ(attempt->grant->token.value(), 8U);
}

TEST_F(SentinelBackendTest, ASwitchEndsEveryConnectionToTheOldMaster) {
  add_server("one", "master", 7);
  add_server("two", "master", 8);
  connect();
  ASSERT_TRUE(contend(false)->grant);
  EXPECT_FALSE(servers["one"].connections.empty());
  set_all("two", 1);
  all["a"].tell("ours one 6379 two 6379");
  engine.run();
  EXPECT_TRUE(servers["one"].connections.empty());
  const auto attempt = contend(false);
  engine.advance(1s);
  ASSERT_TRUE(attempt->grant);
  EXPECT_EQ(attempt->grant->token.value(), 8U);
}

TEST_F(SentinelBackendTest, SoDoesOneThatIsJustBeingMade) {
  add_server("one", "master", 7);
  add_server("two", "master", 8);
  connect();
  servers["one"].dialling = FakeServer::Dialling::silence;
  const auto attempt = contend(true);
  EXPECT_EQ(servers["one"].dialled, 1);
  servers["one"].dialling = FakeServer::Dialling::accept;
  set_all("two", 1);
  all["a"].tell("ours one 6379 two 6379");
  engine.advance(2s);
  ASSERT_TRUE(attempt->grant);
  EXPECT_EQ(attempt->grant->token.value(), 8U);
  EXPECT_TRUE(servers["one"].calls("acquire").empty());
}

TEST_F(SentinelBackendTest, AllReplicasAreAsManyAsTheSentinelsList) {
  add_server("one", "master", 7);
  servers["one"].answer = [answer = servers["one"].answer](FakeWire& from, const Words& command) {
    return command.front() == "WAIT" ? number(2) : answer(from, command);
  };
  for (const auto& [replicas, granted] : std::vector<std::pair<int, bool>>{{2, true}, {3, false}}) {
    all["a"].replicas = replicas;
    connect("&replicas_ack=all");
    const auto attempt = contend(false);
    EXPECT_EQ(attempt->grant.has_value(), granted) << replicas;
    if (!granted) {
      EXPECT_TRUE(test::failed(*attempt, errc::unavailable, "2 of 3 replicas acknowledged"));
    }
  }
}

// --- What servers and sentinels say ----------------------------------------------------------------------------------

Reply array_of(const std::vector<std::string>& words) {
  Reply reply{.type = Reply::Type::array};
  for (const std::string& word : words) reply.elements.push_back({.type = Reply::Type::string, .text = word});
  return reply;
}

TEST(ServiceState, NonsenseIsRefused) {
  EXPECT_TRUE(read_address(array_of({"10.0.0.1", "6379"})).ok());
  EXPECT_TRUE(read_address(array_of({"::1", "1"})).ok());
  for (const auto& words : std::vector<std::vector<std::string>>{{},
                                                                 {"10.0.0.1"},
                                                                 {"10.0.0.1", "0"},
                                                                 {"10.0.0.1", "65536"},
                                                                 {"10.0.0.1", "-1"},
                                                                 {"", "1"},
                                                                 {"a b", "1"},
                                                                 {"a,b", "1"},
                                                                 {"/tmp", "1"},
                                                                 {"a", "1", "x"},
                                                                 {"a", ""}}) {
    const auto answer = read_address(array_of(words));
    ASSERT_FALSE(answer.ok());
    EXPECT_EQ(answer.failure().code, errc::protocol);
  }
  EXPECT_FALSE(read_service(array_of({"config-epoch", "1"})).ok());
  EXPECT_FALSE(read_service(array_of({"config-epoch", "-1", "num-slaves", "1"})).ok());
  EXPECT_FALSE(read_service(array_of({"config-epoch"})).ok());
  EXPECT_FALSE(read_service({.type = Reply::Type::nil}).ok());
  EXPECT_TRUE(read_sentinels(array_of({"ip", "10.0.0.1"})).empty());
}

// What the handshake makes of the answers to ROLE and INFO.
std::optional<Failure> verdict_on(const Reply& role, const Reply& info) {
  const Options options = sentinel_options("redis-sentinel://a?service_name=ours");
  Handshake handshake(options);
  for (const Reply& reply : {role, info}) {
    if (auto verdict = handshake.replied(reply)) return verdict;
  }
  return handshake.replied({.type = Reply::Type::status});
}

TEST(SentinelHandshake, AsksTheServerWhetherItIsAMaster) {
  const Reply denied{.type = Reply::Type::error, .text = "NOPERM this user has no permissions"};
  const Reply master_info{.type = Reply::Type::string, .text = "# Replication\r\nrole:master\r\n"};
  const Reply slave_info{.type = Reply::Type::string, .text = "# Replication\r\nrole:slave\r\n"};
  EXPECT_EQ(verdict_on(array_of({"master"}), denied)->code, std::error_code());
  EXPECT_EQ(verdict_on(denied, master_info)->code, std::error_code());
  EXPECT_EQ(verdict_on(array_of({"slave"}), slave_info)->code, errc::unavailable);
  EXPECT_EQ(verdict_on(array_of({}), master_info)->code, std::error_code());
  EXPECT_EQ(verdict_on(array_of({}), array_of({}))->code, errc::unavailable);
  EXPECT_EQ(verdict_on(denied, slave_info)->code, errc::unavailable);
  EXPECT_EQ(verdict_on(denied, denied)->code, errc::access_denied);
  const auto closed_to_us =
      verdict_on({.type = Reply::Type::error, .text = "DENIED Redis is running in protected mode"}, master_info);
  EXPECT_EQ(closed_to_us->code, errc::access_denied);
  EXPECT_EQ(verdict_on({.type = Reply::Type::error, .text = "LOADING Redis is loading"}, master_info)->code,
            errc::unavailable);
}

// --- Findings --------------------------------------------------------------------------------------------------------

using Severity = Finding::Severity;

std::vector<Finding> judge(const std::vector<std::optional<std::string>>& masters, std::uint32_t replicas,
                           std::optional<std::uint32_t> min_replicas, const std::string& parameters = {},
                           std::chrono::milliseconds down_after = 1s) {
  std::vector<Sentinels::Said> said;
  for (const auto& master : masters) {
    const Host sentinel{.name = "s" + std::to_string(said.size()), .port = 26379};
    if (!master) {
      said.push_back({sentinel, Failure{errc::unavailable, "no connection"}});
      continue;
    }
    said.push_back({sentinel, ServiceState{.master = Host{.name = *master, .port = 6379},
                                           .replicas = replicas,
                                           .quorum = static_cast<std::uint32_t>(masters.size() / 2 + 1),
                                           .down_after = down_after}});
  }
  const Options options = sentinel_options("redis-sentinel://a?service_name=ours" + parameters);
  return judge_sentinels(said, options, {min_replicas, 2});
}

// The worst of the findings of that check.
Severity severity_of(const std::vector<Finding>& findings, const std::string& check) {
  Severity worst = Severity::ok;
  for (const Finding& each : findings) {
    if (each.check == check) worst = std::max(worst, each.severity);
  }
  return worst;
}

TEST(SentinelFindings, JudgeSentinels) {
  EXPECT_EQ(severity_of(judge({"m", "m", "m"}, 2, 2), "sentinels"), Severity::ok);
  EXPECT_EQ(severity_of(judge({"m", "m", std::nullopt}, 2, 2), "sentinels"), Severity::warning);
  EXPECT_EQ(severity_of(judge({std::nullopt, "m", std::nullopt}, 2, 2), "sentinels"), Severity::error);
  EXPECT_EQ(severity_of(judge({std::nullopt, std::nullopt, std::nullopt}, 2, 2), "sentinels"), Severity::error);
  EXPECT_EQ(severity_of(judge({std::nullopt, "m", "n", "m"}, 2, 2), "sentinels"), Severity::warning);
  EXPECT_EQ(severity_of(judge({"m"}, 2, 2), "sentinels"), Severity::warning);
}

TEST(SentinelFindings, JudgeWhatAFailoverCosts) {
  EXPECT_EQ(severity_of(judge({"m", "m", "m"}, 0, 0), "failover"), Severity::error);
  EXPECT_EQ(severity_of(judge({"m", "m", "m"}, 2, 1), "failover"), Severity::warning);
  EXPECT_EQ(severity_of(judge({"m", "m", "m"}, 2, std::nullopt), "failover"), Severity::note);
  EXPECT_EQ(severity_of(judge({"m", "m", "m"}, 2, 2), "failover"), Severity::ok);
  EXPECT_EQ(severity_of(judge({"m", "m", "m"}, 2, 0, "&replicas_ack=all"), "failover"), Severity::ok);
  EXPECT_EQ(severity_of(judge({"m", "m", "m"}, 2, 2, "", 30s), "down-after"), Severity::note);
  EXPECT_EQ(severity_of(judge({"m", "m", "m"}, 2, 2, "", 10s), "down-after"), Severity::ok);
}

}  // namespace

}  // namespace dlock::redis
