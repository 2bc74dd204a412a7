// A cluster whose nodes the test plays: the limits of a request that follows redirections and is made again, which the
// simulation does not reach, the map, which a client asks for and keeps, and channels.
#include "backends/redis/cluster/cluster.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backends/redis/requests/release_request.hpp"
#include "backends/redis/requests/scripts.hpp"
#include "fake_server.hpp"
#include "tests/support/manual_engine.hpp"
#include "tests/support/recording_host.hpp"

namespace dlock::redis {

namespace {

using namespace std::chrono_literals;

// Keys in slots of a (5061) and of b (12182).
const std::string bar = "bar";
const std::string foo = "foo";

// By default, "a" and "b" have half of the slots each, all nodes know that, and each answers to requests
// with its name.
class ClusterTest : public testing::Test, private Node::User {
 protected:
  using Map = std::vector<SlotRange>;

  static common::Host at(const std::string& name) { return {.name = name, .port = 7000}; }

  struct FakeNode {
    FakeServer server;
    std::optional<Map> map;                                  // nullopt: as all others
    std::string refusal;                                     // instead of the map
    bool silent = false;                                     // when asked for the map
    std::function<std::string(const Words& command)> reply;  // empty: the node's name
    std::set<FakeStream*> stuck;                             // what waits for an answer that does not come
    int maps = 0;                                            // how often it was asked for the map

    FakeNode() = default;
    FakeNode(const FakeNode&) = delete;
    FakeNode& operator=(const FakeNode&) = delete;
    ~FakeNode() { server.answer = nullptr; }

    // Without questions for the map.
    [[nodiscard]] std::vector<Words> requests() const {
      std::vector<Words> out;
      for (const Words& command : server.commands) {
        if (command.front() != "CLUSTER") out.push_back(command);
      }
      return out;
    }
    void refuse(const std::string& error) {
      reply = [error](const Words&) { return "-" + error + "\r\n"; };
    }
  };

  FakeNode& node(const std::string& name) {
    auto& node = nodes[at(name).to_string()];
    if (node) return *node;
    node = std::make_unique<FakeNode>();
    node->server.answer = [this, name, node = node.get()](FakeStream& from, const Words& command) -> std::string {
      // Answers come in order: behind one that is missing there is none.
      if (command.front() == "CLIENT") node->stuck.erase(&from);
      if (node->stuck.contains(&from)) return "";
      std::string reply = answer(*node, name, command);
      if (reply.empty()) node->stuck.insert(&from);
      return reply;
    };
    return *node;
  }

  std::string answer(FakeNode& node, const std::string& name, const Words& command) const {
    if (command.front() == "CLIENT" || command.front() == "ASKING") return "+OK\r\n";
    if (command.front() == "PING") return "+PONG\r\n";
    if (command.front() != "CLUSTER") return node.reply ? node.reply(command) : "+" + name + "\r\n";
    ++node.maps;
    if (node.silent) return "";
    return node.refusal.empty() ? bytes_of(node.map.value_or(map)) : "-" + node.refusal + "\r\n";
  }

  static std::string bytes_of(const Map& ranges) {
    std::string out = "*" + std::to_string(ranges.size()) + "\r\n";
    for (const SlotRange& range : ranges) {
      out += "*3\r\n" + number(range.first) + number(range.last) + "*2\r\n" + bulk(range.master.name) +
             number(range.master.port);
    }
    return out;
  }
  static Map all_slots_at(const std::string& name) { return {{0, 16383, at(name)}}; }

  [[nodiscard]] StreamFactory network() {
    return [this](Executor& executor, const Options& to, common::Stream::Events& events) {
      return std::make_unique<FakeStream>(node(to.host.name).server, executor, events);
    };
  }
  void make(const std::string& url = "redis-cluster://a:7000,b:7000") {
    cluster.emplace(host,
                    parse_options({.url = Url::parse(url),
                                   .holder = "host:1:test",
                                   .lease = 10s,
                                   .response_timeout = 2s,
                                   .connect_timeout = 5s}),
                    network(), static_cast<Node::User&>(*this));
  }

  // A request, and what became of it.
  struct Asked {
    std::uint64_t id = 0;
    std::optional<Result<Reply>> result;
    std::string from;

    [[nodiscard]] std::string said() const {
      if (!result) return "nothing";
      return result->ok() ? result->value().text : result->failure().code.message() + ": " + result->failure().detail;
    }
    [[nodiscard]] bool failed(errc code) const { return result && !result->ok() && result->failure().code == code; }
  };
  std::shared_ptr<Asked> ask(const std::string& key, Request request) {
    auto asked = std::make_shared<Asked>();
    asked->id = cluster->send(key, std::move(request), saturating_add(engine.now(), 2s),
                              [asked](const Node* node, Result<Reply> reply, TimePoint) {
                                EXPECT_FALSE(asked->result) << "answered twice";
                                asked->result = std::move(reply);
                                asked->from = node != nullptr ? node->options().host.name : "";
                              });
    EXPECT_FALSE(asked->result) << "inside the call";
    engine.run();
    return asked;
  }
  std::shared_ptr<Asked> ask(const std::string& key) { return ask(key, {.words = {"GET", key}}); }
  // Answers subscriptions with yes, and everything else as well.
  void allow_subscriptions(const std::string& name) {
    node(name).reply = [](const Words& command) -> std::string {
      if (command.front() == "SSUBSCRIBE") return about_channel("ssubscribe", command[1]);
      if (command.front() == "SUNSUBSCRIBE") return about_channel("sunsubscribe", command[1]);
      return "+OK\r\n";
    };
  }
  void allow_subscriptions() {
    for (const char* name : {"a", "b"}) allow_subscriptions(name);
  }  // So that the map is known.
  void learn() { EXPECT_EQ(ask(bar)->said(), "a"); }

  [[nodiscard]] int maps() const {
    int count = 0;
    for (const auto& [name, node] : nodes) count += node->maps;
    return count;
  }

  test::ManualEngine engine;
  test::RecordingHost host{engine};
  Map map = {{0, 8191, at("a")}, {8192, 16383, at("b")}};
  std::map<std::string, std::unique_ptr<FakeNode>> nodes;
  std::vector<std::string> events;  // of channels and nodes
  std::optional<Cluster> cluster;

 private:
  void on_state(Node& node, NodeState state) override {
    if (state == NodeState::down) events.push_back("down " + node.options().host.name);
  }
  void on_subscribed(const std::string& channel) override { events.push_back("subscribed " + channel); }
  void on_message(const std::string& channel, const std::string& text) override {
    events.push_back(channel + ": " + text);
  }
  void on_lost(const std::string& channel) override { events.push_back("lost " + channel); }
  void on_forbidden(const Failure& /*why*/) override { events.emplace_back("forbidden"); }
};

using ClusterRequestTest = ClusterTest;

// --- Redirections ----------------------------------------------------------------------------------------------------

// ASKING counts for the next command only: what is sent again needs another.
TEST_F(ClusterRequestTest, AScriptThatIsSentAgainWhereASlotIsOnItsWayIsAskedForAgain) {
  make();
  learn();
  bool asking = false;
  bool has_script = false;
  int times = 0;
  node("a").refuse("ASK 5061 c:7000");
  node("c").server.answer = [&](FakeStream&, const Words& command) -> std::string {
    const bool asked = std::exchange(asking, command.front() == "ASKING");
    if (command.front() == "ASKING") return "+OK\r\n";
    if (command.front() != "EVAL" && command.front() != "EVALSHA") return "";
    if (!asked) return "-MOVED 5061 a:7000\r\n";
    if (++times == 1) return "-TRYAGAIN Multiple keys request during rehashing of slot\r\n";  // so it was not taken in
    has_script = has_script || command.front() == "EVAL";
    return has_script ? "+c\r\n" : "-NOSCRIPT No matching script.\r\n";
  };
  const auto asked = ask(bar, {.script = &renew_script(), .words = {"1", bar}});
  engine.advance(1s);
  EXPECT_EQ(asked->said(), "c");
  EXPECT_TRUE(has_script);
}

TEST_F(ClusterRequestTest, FollowsFiveTimesAtMost) {
  for (const std::string answer : {"MOVED 5061 ", "ASK 5061 "}) {
    make();
    learn();
    node("a").server.commands.clear();
    node("b").server.commands.clear();
    node("a").refuse(answer + "b:7000");
    node("b").refuse(answer + "a:7000");
    const auto asked = ask(bar);
    EXPECT_TRUE(asked->failed(errc::unavailable)) << asked->said();
    const std::size_t times = node("a").requests().size() + node("b").requests().size();
    EXPECT_EQ(times, answer == "MOVED 5061 " ? 6U : 11U) << "with ASKING before five of them";
    node("a").reply = nullptr;
  }
}

TEST_F(ClusterRequestTest, ARedirectionThatMakesNoSenseIsNotFollowed) {
  make();
  learn();
  for (const std::string error : {"MOVED 5062 b:7000", "MOVED 16384 b:7000", "MOVED", "MOVED 5061", "MOVED 5061 b",
                                  "MOVED 5061 b:0", "MOVED x b:7000", "ASK 5062 b:7000", "ASK 5061 b:65536"}) {
    node("a").refuse(error);
    const auto asked = ask(bar);
    EXPECT_TRUE(asked->failed(errc::protocol)) << error << ": " << asked->said();
    EXPECT_NE(asked->said().find("a:7000"), std::string::npos) << asked->said();
  }
  EXPECT_TRUE(node("b").requests().empty());
  node("a").reply = nullptr;
  EXPECT_EQ(ask(bar)->said(), "a");
}

TEST_F(ClusterRequestTest, EndlessNewAddressesAreABoundedNumber) {
  make();
  learn();
  for (const char* name : {"a", "b"})
    node(name).silent = true;  // so that none of them is found to be none of the map's
  int last = 0;
  std::function<std::string(const Words&)> elsewhere = [&](const Words&) {
    const std::string next = "x" + std::to_string(++last);
    node(next).reply = elsewhere;
    return "-MOVED 5061 " + next + ":7000\r\n";
  };
  node("a").reply = elsewhere;
  cluster->refresh();
  std::shared_ptr<Asked> asked;
  for (int i = 0; i < 300; ++i) {
    asked = ask(bar);
    ASSERT_TRUE(asked->result) << i;
  }
  EXPECT_TRUE(asked->failed(errc::protocol)) << asked->said();
  const auto connected = [&] {
    return std::count_if(nodes.begin(), nodes.end(), [](const auto& each) { return each.second->server.dialled > 0; });
  };
  EXPECT_GT(last, 1000);
  EXPECT_LE(connected(), 1000);
  for (const char* name : {"a", "b"}) node(name).silent = false;
  node("a").reply = nullptr;
  engine.advance(3s);
  EXPECT_EQ(ask(bar)->said(), "a");
  for (const auto& [name, node] : nodes) {
    EXPECT_TRUE(!name.starts_with('x') || node->server.connections.empty()) << name;
  }
}

// The lock is free after the first call; the second one is for waiters.
TEST_F(ClusterRequestTest, AReleaseWhoseSecondCallReachesNoNodeIsARelease) {
  make();
  learn();
  int calls = 0;
  for (const char* name : {"a", "b"}) {
    node(name).reply = [&](const Words&) {
      return ++calls == 1 ? std::string("*3\r\n:1\r\n:1\r\n:1\r\n") : std::string("-TRYAGAIN x\r\n");
    };
  }
  const Cleanup::Claim claim{.kind = LockKind::lock, .name = "lock", .owner = {1, 1}};
  std::optional<Result<bool>> answer;
  release_requests(*cluster, "client", [] {})(claim, Cleanup::Reason::release, saturating_add(engine.now(), 2s),
                                              [&](const Result<bool>& was_ours) { answer = was_ours; });
  engine.advance(2s);
  EXPECT_GT(calls, 2);
  ASSERT_TRUE(answer);
  EXPECT_TRUE(answer->ok() && answer->value());
}

// --- Asking again ----------------------------------------------------------------------------------------------------

// TRYAGAIN while a slot moves, CLUSTERDOWN while there is no master.
TEST_F(ClusterRequestTest, IsMadeAgainUntilTheClusterCanAnswerOrItsDeadline) {
  for (const std::string error :
       {"TRYAGAIN Multiple keys request during rehashing of slot", "CLUSTERDOWN Hash slot not served"}) {
    SCOPED_TRACE(error);
    make();
    learn();
    node("a").server.commands.clear();
    node("a").refuse(error);
    const auto asked = ask(bar);
    engine.advance(2s - 1ms);
    EXPECT_FALSE(asked->result);
    engine.advance(1ms);
    EXPECT_TRUE(asked->failed(errc::unavailable)) << asked->said();
    EXPECT_NE(asked->said().find(error), std::string::npos) << asked->said();
    const std::size_t times = node("a").requests().size();
    EXPECT_GE(times, 8U);
    EXPECT_LE(times, 40U);
    const auto next = ask(bar);
    engine.advance(1s);
    node("a").reply = nullptr;
    engine.advance(250ms);
    EXPECT_EQ(next->said(), "a");
  }
}

TEST_F(ClusterRequestTest, ASlotThatNobodyHasMayGetAMaster) {
  for (const bool map_is_known : {true, false}) {
    map = {{8192, 16383, at("b")}};
    make();
    if (map_is_known) {
      EXPECT_EQ(ask(foo)->said(), "b");
    }
    const auto in_vain = ask(bar);
    engine.advance(2s);
    EXPECT_TRUE(in_vain->failed(errc::unavailable)) << in_vain->said();
    EXPECT_NE(in_vain->said().find("5061"), std::string::npos) << in_vain->said();
    const auto waits = ask(bar);
    engine.advance(1s);
    EXPECT_FALSE(waits->result);
    map = all_slots_at("b");
    engine.advance(500ms);
    EXPECT_EQ(waits->said(), "b");
  }
}

// --- The end of a request --------------------------------------------------------------------------------------------

TEST_F(ClusterRequestTest, IsWithdrawnUntilItIsUnderWay) {
  const std::vector<std::pair<const char*, std::function<void()>>> obstacles = {
      {"no map", [this] { node("a").silent = node("b").silent = true; }},
      {"no connection", [this] { node("a").server.dialling = FakeServer::Dialling::silence; }},
      {"its next attempt", [this] { node("a").refuse("TRYAGAIN Multiple keys request during rehashing of slot"); }},
  };
  for (const auto& [name, arrange] : obstacles) {
    SCOPED_TRACE(name);
    cluster.reset();
    nodes.clear();
    make("redis-cluster://b:7000,a:7000");
    arrange();
    const auto asked = ask(bar);
    engine.advance(100ms);
    const std::size_t times = node("a").requests().size();
    EXPECT_TRUE(cluster->withdraw(asked->id, Line::common));
    EXPECT_FALSE(cluster->withdraw(asked->id, Line::common)) << "it is not known any more";
    engine.advance(5s);
    EXPECT_FALSE(asked->result);
    EXPECT_EQ(node("a").requests().size(), times);
  }
  cluster.reset();
  nodes.clear();
  make();
  learn();
  node("a").reply = [](const Words&) { return std::string(); };
  const auto under_way = ask(bar);
  EXPECT_FALSE(cluster->withdraw(under_way->id, Line::common)) << "it may have an effect";
  engine.advance(5s);
  EXPECT_FALSE(under_way->result) << "nobody wants to know";
}

TEST_F(ClusterRequestTest, IsNotAnsweredAnyMoreOnceAllHasStopped) {
  make();
  learn();
  node("b").reply = [](const Words&) { return std::string(); };
  const auto under_way = ask(foo);
  node("a").refuse("TRYAGAIN Multiple keys request during rehashing of slot");
  const auto paused = ask(bar);
  cluster->subscribe(foo);
  cluster->stop();
  const int before = maps();
  engine.advance(10s);
  EXPECT_FALSE(under_way->result || paused->result);
  EXPECT_EQ(maps(), before);
}

// --- The map ---------------------------------------------------------------------------------------------------------

using ClusterMapTest = ClusterTest;
using Dialling = FakeServer::Dialling;

// --- Asking for it ---------------------------------------------------------------------------------------------------

TEST_F(ClusterMapTest, IsAskedForOnceForAllThatWaitForIt) {
  make("redis-cluster://c:7000,a:7000");
  node("c").silent = true;
  const auto first = ask(bar);
  const auto second = ask(bar);
  const auto third = ask(foo);
  EXPECT_EQ(maps(), 1);
  engine.advance(500ms);
  EXPECT_EQ(first->said(), "a");
  EXPECT_EQ(second->said(), "a");
  EXPECT_EQ(third->said(), "b");
  EXPECT_EQ(ask(bar)->said(), "a");
  engine.advance(10s);
  EXPECT_EQ(maps(), 2) << "nobody doubts it";
}

TEST_F(ClusterMapTest, IsAskedOfTheSecondWhereTheFirstIsDead) {
  make();
  map = all_slots_at("b");
  node("a").server.dialling = Dialling::refuse;
  EXPECT_EQ(ask(bar)->said(), "b");
  make();
  node("a").server.dialling = Dialling::silence;
  const auto asked = ask(bar);
  engine.advance(499ms);
  EXPECT_FALSE(asked->result);
  engine.advance(1ms);
  EXPECT_EQ(asked->said(), "b");
}

TEST_F(ClusterMapTest, OneThatMakesNoSenseIsAskedOfTheNext) {
  make();
  for (const Map& nonsense : {Map{{0, 16384, at("a")}}, Map{{2, 1, at("a")}}, Map{}}) {
    node("a").map = nonsense;
    EXPECT_EQ(ask(bar)->said(), "a");
    make();
  }
}

TEST_F(ClusterMapTest, WithoutOne_RequestsFail) {
  // That one is no node says more than that another is silent.
  const std::string no_node = "ERR This instance has cluster support disabled";
  struct Row {
    const char* url;
    std::string refusal;  // of c
    Dialling other;       // of c, too, unless it refuses
    errc code;
    const char* words = "";
  };
  for (const Row& row : {
           Row{"redis-cluster://c:7000,d:7000", "", Dialling::refuse, errc::unavailable},
           Row{"redis-cluster://c:7000,d:7000", "", Dialling::silence, errc::unavailable},
           // The question for the map was sent; the request was not.
           Row{"redis-cluster://c:7000,d:7000", "", Dialling::accept, errc::unavailable},
           Row{"redis-cluster://c:7000,d:7000", no_node, Dialling::accept, errc::unsupported, "redis://"},
           Row{"redis-cluster://d:7000,c:7000", no_node, Dialling::accept, errc::unsupported, "redis://"},
           Row{"redis-cluster://c:7000,d:7000", no_node, Dialling::refuse, errc::unsupported, "redis://"},
           Row{"redis-cluster://d:7000,c:7000", no_node, Dialling::refuse, errc::unsupported, "redis://"},
           Row{"redis-cluster://c:7000,d:7000", no_node, Dialling::silence, errc::unsupported, "redis://"},
           Row{"redis-cluster://d:7000,c:7000", no_node, Dialling::silence, errc::unsupported, "redis://"},
       }) {
    make(row.url);
    for (const char* name : {"c", "d"}) {
      const bool refuses = *name == 'c' && !row.refusal.empty();
      node(name).refusal = refuses ? row.refusal : "";
      node(name).silent = !refuses;
      node(name).server.dialling = refuses ? Dialling::accept : row.other;
    }
    const auto asked = ask(bar);
    engine.advance(2s);
    EXPECT_TRUE(asked->failed(row.code)) << asked->said();
    EXPECT_NE(asked->said().find(row.words), std::string::npos) << asked->said();
  }
}

TEST_F(ClusterMapTest, IsNotAskedForTooOften) {
  make();
  learn();
  const int before = maps();
  for (int i = 0; i < 1000; ++i) {
    cluster->refresh();
    engine.advance(10ms);
  }
  EXPECT_GE(maps() - before, 40);
  EXPECT_LE(maps() - before, 100) << "in ten seconds";
}

TEST_F(ClusterMapTest, IsAskedForAgainWhereADoubtCameWhileItWasAskedFor) {
  make();
  learn();
  engine.advance(1s);
  for (const char* name : {"a", "b"}) node(name).silent = true;
  const int before = maps();
  cluster->refresh();
  engine.run();
  EXPECT_EQ(maps(), before + 1);
  cluster->refresh();
  cluster->refresh();
  for (const char* name : {"a", "b"}) node(name).silent = false;
  engine.advance(1s);
  EXPECT_EQ(maps(), before + 3) << "the one without an answer, that of the other node, and once more";
}

TEST_F(ClusterMapTest, IsReadEverySecondWhileAChannelIsSubscribedTo) {
  allow_subscriptions();
  make();
  (void)ask(bar);
  engine.advance(1s);
  const int before = maps();
  cluster->subscribe(bar);
  cluster->subscribe(foo);
  engine.advance(999ms);
  EXPECT_EQ(maps(), before);
  for (int i = 1; i <= 5; ++i) {
    engine.advance(1s);
    EXPECT_EQ(maps(), before + i);
  }
  cluster->unsubscribe(bar);
  cluster->unsubscribe(foo);
  engine.advance(10s);
  EXPECT_EQ(maps(), before + 5);
}

// --- Whoever has to know ---------------------------------------------------------------------------------------------

TEST_F(ClusterMapTest, TellsWhoTheMastersAre) {
  make();
  std::vector<std::string> names;
  std::optional<Failure> failure;
  const auto read = [&] {
    names.clear();
    cluster->masters(saturating_add(engine.now(), 5s), [&](const Result<std::vector<common::Host>>& masters) {
      if (!masters.ok()) failure = masters.failure();
      for (const auto& each : masters.ok() ? masters.value() : std::vector<common::Host>{}) names.push_back(each.name);
    });
    EXPECT_TRUE(names.empty()) << "inside the call";
    engine.advance(2s);
  };
  read();
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b"}));
  EXPECT_NE(cluster->master_at(at("a")), nullptr);
  map = all_slots_at("c");
  read();
  EXPECT_EQ(names, std::vector<std::string>{"c"});
  EXPECT_EQ(cluster->master_at(at("a")), nullptr);
  ASSERT_EQ(cluster->ranges().size(), 1U);
  EXPECT_EQ(cluster->ranges().front().master.name, "c");
  for (const char* name : {"a", "b", "c"}) {
    node(name).server.dialling = Dialling::refuse;
    node(name).server.cut();
  }
  read();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, errc::unavailable);
}

TEST_F(ClusterMapTest, WhoIsToldOfItMayWithdrawWhatWaitsForIt) {
  make();
  node("a").server.dialling = Dialling::silence;
  const auto asked = ask(foo);
  bool withdrawn = false;
  cluster->masters(saturating_add(engine.now(), 5s), [&](const Result<std::vector<common::Host>>&) {
    withdrawn = cluster->withdraw(asked->id, Line::common);
  });
  engine.advance(1s);
  EXPECT_TRUE(withdrawn);
  EXPECT_FALSE(asked->result);
  EXPECT_TRUE(node("b").requests().empty());
}

// Replicas and strangers are not believed about a slot.
TEST_F(ClusterMapTest, OnlyTheMasterOfASlotGivesItAway) {
  make();
  learn();
  for (const char* name : {"a", "b"}) node(name).silent = true;
  const auto owner = [this] { return cluster->node_of(bar).options().host.name; };
  node("a").refuse("ASK 5061 c:7000");
  EXPECT_EQ(ask(bar)->said(), "c");
  EXPECT_EQ(owner(), "a");
  node("a").refuse("ASK 5061 b:7000");
  node("b").refuse("MOVED 5061 c:7000");
  EXPECT_EQ(ask(bar)->said(), "c");
  EXPECT_EQ(owner(), "a");
  node("a").refuse("MOVED 5061 c:7000");
  EXPECT_EQ(ask(bar)->said(), "c");
  EXPECT_EQ(owner(), "c");
  EXPECT_EQ(cluster->node_of(foo).options().host.name, "b");
}

// --- Nodes that have no slots any more -------------------------------------------------------------------------------

TEST_F(ClusterMapTest, AMasterThatLosesAllItsSlotsIsLeft) {
  make();
  learn();
  node("a").reply = [](const Words&) { return std::string(); };
  const auto asked = ask(bar);
  map = all_slots_at("b");
  cluster->refresh();
  engine.advance(1s);  // a may be the first to be asked, and says nothing
  EXPECT_TRUE(asked->failed(errc::ambiguous)) << asked->said();
  EXPECT_NE(asked->said().find("a:7000"), std::string::npos) << asked->said();
  EXPECT_TRUE(node("a").server.connections.empty());
  EXPECT_EQ(ask(bar)->said(), "b");
  const int dialled = node("a").server.dialled;
  engine.advance(1min);
  EXPECT_EQ(node("a").server.dialled, dialled);
}

// A slot is on its way to it; or it has the slot since a failover, and others do not know that yet.
TEST_F(ClusterMapTest, ANodeThatARequestWasSentOnToIsKeptWhileItIsAsked) {
  for (const char* redirection : {"ASK 5061 c:7000", "MOVED 5061 c:7000"}) {
    SCOPED_TRACE(redirection);
    nodes.clear();
    make();
    learn();
    engine.advance(1s);
    node("a").refuse(redirection);
    node("c").reply = [](const Words&) { return std::string(); };
    const int before = maps();
    const auto asked = ask(bar);
    cluster->refresh();
    engine.advance(500ms);
    EXPECT_GT(maps(), before);
    EXPECT_FALSE(asked->result) << asked->said();
    ASSERT_EQ(node("c").server.connections.size(), 1U);
    node("c").server.connections.front()->reply("+c\r\n");
    engine.run();
    EXPECT_EQ(asked->said(), "c");
    cluster->refresh();
    engine.advance(1s);
    EXPECT_TRUE(node("c").server.connections.empty());
    cluster.reset();
  }
}

TEST_F(ClusterMapTest, AnAnswerMayEndAll) {
  make();
  learn();
  node("a").reply = [](const Words&) { return std::string(); };
  (void)cluster->send(bar, {.words = {"GET", bar}}, saturating_add(engine.now(), 2s),
                      [this](Node*, const Result<Reply>&, TimePoint) { cluster.reset(); });
  const auto other = ask(bar);
  map = all_slots_at("b");
  cluster->refresh();
  engine.advance(5s);
  EXPECT_FALSE(cluster);
}

// --- Channels --------------------------------------------------------------------------------------------------------

class ClusterChannelTest : public ClusterTest {
 protected:
  using Events = std::vector<std::string>;

  ClusterChannelTest() {
    allow_subscriptions();
    make();
    (void)ask(bar);  // so that the map is known
    engine.advance(1s);
  }
  void subscribe(const std::string& channel) {
    cluster->subscribe(channel);
    engine.run();
  }
  [[nodiscard]] std::vector<Words> subscriptions_at(const std::string& name) {
    std::vector<Words> out;
    for (const Words& command : node(name).requests()) {
      if (command.front() == "SSUBSCRIBE" || command.front() == "SUNSUBSCRIBE") out.push_back(command);
    }
    return out;
  }
  // On the newest connection of that node.
  void push(const std::string& name, const std::string& bytes) {
    ASSERT_FALSE(node(name).server.connections.empty());
    node(name).server.connections.back()->reply(bytes);
    engine.run();
  }
};

TEST_F(ClusterChannelTest, IsSubscribedToAtTheMasterOfItsSlot) {
  subscribe(bar);
  subscribe(foo);
  subscribe(foo);
  EXPECT_EQ(subscriptions_at("a"), (std::vector<Words>{{"SSUBSCRIBE", bar}}));
  EXPECT_EQ(subscriptions_at("b"), (std::vector<Words>{{"SSUBSCRIBE", foo}}));
  push("b", "*3\r\n" + bulk("smessage") + bulk(foo) + bulk("text"));
  EXPECT_EQ(events, (Events{"subscribed bar", "subscribed foo", "foo: text"}));
}

// The map says so; or a request was redirected first.
TEST_F(ClusterChannelTest, FollowsItsSlot) {
  subscribe(bar);
  for (const bool redirected : {false, true}) {
    const std::string from = redirected ? "b" : "a";
    const std::string to = redirected ? "a" : "b";
    events.clear();
    map = {{0, 5060, at(from)}, {5061, 5061, at(to)}, {5062, 16383, at(from)}};
    node(from).refuse("MOVED 5061 " + to + ":7000");  // also what is sent to it for its channels
    allow_subscriptions(to);
    if (redirected) {
      EXPECT_EQ(ask(bar)->said(), "OK");
    }
    engine.advance(redirected ? 500ms : 2s);
    EXPECT_EQ(subscriptions_at(from).back(), (Words{"SUNSUBSCRIBE", bar}));
    EXPECT_EQ(subscriptions_at(to).back(), (Words{"SSUBSCRIBE", bar}));
    EXPECT_EQ(events, (Events{"lost bar", "subscribed bar"}));
  }
}

TEST_F(ClusterChannelTest, ThatANodeGivesUpIsSubscribedToWhereTheMapHasIt) {
  for (const char* const next : {"a", "b"}) {
    SCOPED_TRACE(next);
    subscribe(bar);
    events.clear();
    map = all_slots_at(next);
    push("a", about_channel("sunsubscribe", bar));
    engine.advance(500ms);
    EXPECT_EQ(events.front(), "lost bar");
    EXPECT_EQ(events.back(), "subscribed bar");
    EXPECT_EQ(subscriptions_at(next).back(), (Words{"SSUBSCRIBE", bar}));
  }
}

TEST_F(ClusterChannelTest, OfASlotThatNoNodeHasIsSubscribedToOnceOneHas) {
  map = {{8192, 16383, at("b")}};
  cluster->refresh();
  engine.advance(1s);
  subscribe(bar);
  engine.advance(2s);
  EXPECT_EQ(events, Events{});
  map = all_slots_at("b");
  engine.advance(1s);
  EXPECT_EQ(events, Events{"subscribed bar"});
}

TEST_F(ClusterChannelTest, ThatIsNotWantedAnyMoreFollowsNothing) {
  subscribe(bar);
  cluster->unsubscribe(bar);
  engine.run();
  EXPECT_EQ(subscriptions_at("a").back(), (Words{"SUNSUBSCRIBE", bar}));
  map = all_slots_at("b");
  cluster->refresh();
  engine.advance(1s);
  EXPECT_TRUE(subscriptions_at("b").empty());
  EXPECT_EQ(events, Events{"subscribed bar"});
}

// The old map and the redirection are in one packet.
TEST_F(ClusterChannelTest, KeepsItsNodeUntilItHasMoved) {
  map = {{0, 5060, at("b")}, {5061, 5061, at("a")}, {5062, 16383, at("b")}};
  cluster->refresh();
  engine.advance(1s);
  subscribe(bar);
  events.clear();
  node("a").silent = true;
  node("b").refusal = "LOADING Redis is loading the dataset in memory";
  cluster->refresh();
  engine.advance(300ms);
  const auto asked = ask(bar);
  node("a").server.connections.front()->reply(bytes_of(map) + "-MOVED 5061 b:7000\r\n");
  engine.run();
  EXPECT_EQ(asked->said(), "OK");
  EXPECT_EQ(node("a").server.connections.size(), 2U) << "it has no slot, but the channel is subscribed to there";
  node("a").silent = false;
  node("b").refusal.clear();
  map = all_slots_at("b");
  engine.advance(1s);
  EXPECT_EQ(events, (Events{"lost bar", "subscribed bar"}));
  EXPECT_TRUE(node("a").server.connections.empty());
}

TEST_F(ClusterChannelTest, OfABrokenNodeIsSubscribedToAgainOnceTheNodeIsUsable) {
  subscribe(bar);
  subscribe(foo);
  events.clear();
  node("a").server.connections.front()->close({errc::unavailable, "closed"});  // the one for commands
  engine.advance(5s);
  EXPECT_EQ(events, Events{"down a"});
  cluster->node_of(bar).outage().answered(true);
  engine.run();
  EXPECT_EQ(events, (Events{"down a", "subscribed bar"}));
}

TEST_F(ClusterChannelTest, IsForbiddenOnceForAllNodes) {
  for (const char* name : {"a", "b"}) node(name).refuse("ERR unknown command 'SSUBSCRIBE'");
  subscribe(bar);
  subscribe(foo);
  engine.advance(10s);
  EXPECT_EQ(events, Events{"forbidden"});
  EXPECT_TRUE(cluster->is_forbidden());
}

}  // namespace

}  // namespace dlock::redis
