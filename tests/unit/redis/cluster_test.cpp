// A cluster whose nodes the test plays: the limits of a request that follows redirections and is made again, which the
// simulation does not reach, the map, which a client asks for and keeps, and channels.
#include "backends/redis/cluster/cluster.hpp"

#include <set>

#include "backends/redis/requests/scripts.hpp"
#include "fake_server.hpp"
#include "steps.hpp"
#include "tests/support/recording_host.hpp"

namespace dlock::redis {
namespace {

using namespace std::chrono_literals;

// Keys in slots of a (5061) and of b (12182).
const std::string bar = "bar";
const std::string foo = "foo";

using Map = std::vector<SlotRange>;

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
    std::ranges::copy_if(server.commands, std::back_inserter(out),
                         [](const Words& command) { return command.front() != "CLUSTER"; });
    return out;
  }
  void refuse(const std::string& error) {
    reply = [error](const Words&) { return "-" + error + "\r\n"; };
  }
};

// By default, "a" and "b" have half of the slots each, all nodes know that, and each answers to requests
// with its name.
class ClusterTest : public testing::Test, protected Node::User {
 protected:
  static common::Host at(const std::string& name) { return {.name = name, .port = 7000}; }

  ClusterTest() { make(); }

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
  [[nodiscard]] StreamFactory network() {
    return [this](Executor& executor, const Options& to, common::Stream::Events& sink) {
      return std::make_unique<FakeStream>(node(to.host.name).server, executor, sink);
    };
  }
  void make(const std::string& names = "a:7000,b:7000") {
    cluster.emplace(host, options_for("redis-cluster://" + names), network(), static_cast<Node::User&>(*this));
  }

  // A request, and what became of it.
  struct Asked {
    std::uint64_t id = 0;
    std::optional<Result<Reply>> result;

    [[nodiscard]] std::string said() const {
      if (!result) return "nothing";
      return result->ok() ? result->value().text : result->failure().code.message() + ": " + result->failure().detail;
    }
  };
  std::shared_ptr<Asked> ask(const std::string& key, Request request) {
    auto asked = std::make_shared<Asked>();
    asked->id = cluster->send(key, std::move(request), saturating_add(engine.now(), 2s),
                              [asked](const Node*, Result<Reply> reply, TimePoint) {
                                EXPECT_FALSE(asked->result) << "answered twice";
                                asked->result = std::move(reply);
                              });
    EXPECT_FALSE(asked->result) << "inside the call";
    engine.run();
    return asked;
  }
  std::shared_ptr<Asked> ask(const std::string& key) { return ask(key, {.words = {"GET", key}}); }
  // So that the map is known.
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

 protected:
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

// Steps of a client that knows the map, besides those of NodeScript. NODES are its NAMES.
//
//   map RANGES, map-of NODE RANGES: what all nodes, or that one, say: "a" has all slots; "a:0-99,b:100-16383"; "none"
//   map-error NODES TEXT, map-silent NODES, map-well NODES: instead of the map; and as before
//   error NODES TEXT, mute NODES, well NODES: answers to requests; yes NODES: they take subscriptions and all else
//   push NODE BYTES: on its first connection, a text with '|' for the ends of lines; push-last: on its last one
//   anew [NODES]: another client, whose URL names these nodes; forget: the nodes, too, with all that was said of them
//   ask KEY [=> TEXT]; said KEY => TEXT: a part of the answer to the last request for that key, "-" is none
//   withdraw KEY => yes or no; refresh: the map; subscribe or unsubscribe KEY; stop
//   masters => NAMES; owner KEY => NODE
//   events => those since the last look, separated by ", "; forbidden => yes; last NODE => the last request that it got
//   maps => N: how often a node was asked for the map, and requests NODES => N, since "count"
class ClusterScripts : public ClusterTest,
                       protected NodeScript<FakeNode>,
                       public testing::WithParamInterface<StepScript> {
 protected:
  ClusterScripts() : NodeScript(engine, {"a", "b", "c", "d"}) {
    add_nodes();
    add_clients();
    count("maps", [](FakeNode& it) -> std::int64_t { return it.maps; });
    count("requests", [](FakeNode& it) { return static_cast<std::int64_t>(it.requests().size()); });
  }
  FakeNode& named(const std::string& name) override { return node(name); }

  static Map map_in(const std::string& text) {
    Map out;
    for (const std::string& range : split(text == "none" ? "" : text)) {
      const auto parts = split(range, ':');
      const auto bounds = split(parts.size() == 1 ? "0-16383" : parts[1], '-');
      out.push_back({static_cast<std::uint16_t>(std::stoi(bounds[0])), static_cast<std::uint16_t>(std::stoi(bounds[1])),
                     at(parts[0])});
    }
    return out;
  }
  void add_nodes() {
    using Text = const std::string&;
    verbs.insert({
        {"map-of", each([](FakeNode& it, Text text) { it.map = map_in(text); })},
        {"map-error", each([](FakeNode& it, Text text) { it.refusal = text; })},
        {"map-silent", each([](FakeNode& it, Text) { it.silent = true; })},
        {"map-well", each([](FakeNode& it, Text) { it.silent = false, it.refusal.clear(), it.map.reset(); })},
        {"error", each([](FakeNode& it, Text text) { it.refuse(text); })},
        {"mute", each([](FakeNode& it, Text) { it.reply = [](const Words&) { return std::string(); }; })},
        {"well", each([](FakeNode& it, Text) { it.reply = nullptr; })},
        {"yes", each([](FakeNode& it, Text) { it.reply = &yes; })},
        {"push",
         each([this](FakeNode& it, Text text) { it.server.connections.at(0)->reply(lines(text)), engine.run(); })},
        {"push-last",
         each([this](FakeNode& it, Text text) { it.server.connections.back()->reply(lines(text)), engine.run(); })},
    });
  }
  static std::string yes(const Words& command) {
    if (command.front() == "SSUBSCRIBE") return about_channel("ssubscribe", command[1]);
    if (command.front() == "SUNSUBSCRIBE") return about_channel("sunsubscribe", command[1]);
    return "+OK\r\n";
  }
  void add_clients() {
    verbs.insert({
        {"map", [this](const Step& step) { map = map_in(step.first); }},
        {"anew",
         [this](const Step& step) {
           std::string names;
           for (const std::string& name : split(step.first.empty() ? "a,b" : step.first)) {
             names += (names.empty() ? "" : ",") + name + ":7000";
           }
           make(names);
         }},
        {"forget", [this](const Step&) { cluster.reset(), nodes.clear(); }},
        {"ask",
         [this](const Step& step) {
           asked_[step.first] = ask(step.first);
           if (!step.expected.empty()) expect_said(step);
         }},
        {"said", [this](const Step& step) { expect_said(step); }},
        {"withdraw",
         [this](const Step& step) {
           EXPECT_EQ(cluster->withdraw(asked_[step.first]->id, Line::common), step.expected == "yes");
         }},
        {"refresh", [this](const Step&) { cluster->refresh(), engine.run(); }},
        {"subscribe", [this](const Step& step) { cluster->subscribe(step.first), engine.run(); }},
        {"unsubscribe", [this](const Step& step) { cluster->unsubscribe(step.first), engine.run(); }},
        {"stop", [this](const Step&) { cluster->stop(); }},
        {"masters", text_of([this] { return masters(); })},
        {"owner",
         [this](const Step& step) { EXPECT_EQ(cluster->node_of(step.first).options().host.name, step.expected); }},
        {"events", text_of([this] { return joined(std::exchange(events, {}), ", "); })},
        {"forbidden", whether([this] { return cluster->is_forbidden(); })},
        {"last",
         [this](const Step& step) {
           const auto requests = node(step.first).requests();
           EXPECT_EQ(joined(requests.empty() ? Words{} : requests.back(), " "), step.expected);
         }},
    });
  }
  void expect_said(const Step& step) {
    const std::string said = asked_[step.first]->result ? asked_[step.first]->said() : "-";
    EXPECT_NE(said.find(step.expected), std::string::npos) << said;
  }
  std::string masters() {
    std::optional<Result<std::vector<common::Host>>> found;
    cluster->masters(saturating_add(engine.now(), 5s),
                     [&found](const Result<std::vector<common::Host>>& masters) { found = masters; });
    EXPECT_FALSE(found) << "inside the call";
    engine.advance(2s);
    if (!found->ok()) return found->failure().code.message();
    Words names;
    for (const common::Host& each : found->value()) names.push_back(each.name);
    for (const std::string name : {"a", "b", "c"}) {
      EXPECT_EQ(cluster->master_at(at(name)) != nullptr, std::ranges::count(names, name) > 0) << name;
    }
    EXPECT_EQ(cluster->ranges().size(), map.size());
    return joined(names, ",");
  }

 private:
  std::map<std::string, std::shared_ptr<Asked>> asked_;  // the last for each key
};

// Hazard: H33 a cluster's redirections, moving slots, pushes
TEST_P(ClusterScripts, Steps_HaveTheirResults) {
  learn();
  carry_out(GetParam().steps);
}

const StepScript scripts[] = {
    // --- Redirections ---
    {"RoundAndRound_IsFollowedFiveTimes", R"(
        count; error a ASK 5061 b:7000; error b ASK 5061 a:7000; ask bar => unavailable; requests a,b => 11
        count; error a MOVED 5061 b:7000; error b MOVED 5061 a:7000; ask bar => unavailable; requests a,b => 6)"},
    {"SenselessRedirection_IsNotFollowed", R"(
        error a MOVED 5062 b:7000; ask bar => a:7000: "MOVED 5062 b:7000" is not a valid redirection
        error a ASK 5062 b:7000; ask bar => not a valid; error a MOVED 5061 b:0; ask bar => not a valid
        requests b => 0; well a; ask bar => a)"},
    // Replicas and strangers are not believed about a slot.
    {"Slot_IsGivenAwayByItsMasterOnly", R"(
        map-silent a,b; error a ASK 5061 c:7000; ask bar => c; owner bar => a
        error a ASK 5061 b:7000; error b MOVED 5061 c:7000; ask bar => c; owner bar => a
        error a MOVED 5061 c:7000; ask bar => c; owner bar => c; owner foo => b)"},

    // --- Requests that are made again ---
    {"ClusterDown_RequestIsRepeatedUntilItsDeadline", R"(
        error a CLUSTERDOWN Hash slot; count; ask bar; wait 1999ms; said bar => -; wait 1ms; said bar => unavailable
        said bar => CLUSTERDOWN Hash slot; requests a => 8..40; ask bar; wait 1s; well a; wait 250ms; said bar => a)"},
    {"SlotWithoutAMasterInTheFirstMap_IsAwaited", R"(
        map b:8192-16383; anew; ask bar; wait 2s; said bar => unavailable; said bar => 5061
        ask bar; wait 1s; said bar => -; map b; wait 500ms; said bar => b)"},

    // --- The end of a request ---
    // It waits for its next attempt, for a connection, and for the map.
    {"NotInFlight_IsWithdrawn", R"(
        error a TRYAGAIN Multiple keys; ask bar; wait 100ms; withdraw bar => yes; withdraw bar => no; count; wait 5s
        said bar => -; requests a => 0
        forget; anew b,a; ignore a; ask bar; wait 100ms; withdraw bar => yes; withdraw bar => no; wait 5s
        said bar => -; connected a => 0
        forget; anew b,a; map-silent a,b; ask bar; wait 100ms; withdraw bar => yes; withdraw bar => no; count; wait 5s
        said bar => -; requests a => 0)"},
    {"InFlight_IsNotWithdrawnButNotAnswered", "mute a; ask bar; withdraw bar => no; wait 5s; said bar => -"},
    {"Stopped_NothingIsAnsweredOrRead", R"(
        mute b; ask foo; error a TRYAGAIN Multiple keys; ask bar; subscribe foo; stop; count; wait 10s; said foo => -
        said bar => -; maps => 0)"},

    // --- The map ---
    {"Map_IsReadOnceForAllThatWaitForIt", R"(
        forget; anew c,a; map-silent c; count; ask bar; ask foo; maps => 1; wait 500ms; said bar => a; said foo => b
        ask bar => a; wait 10s; maps => 2)"},
    {"FirstNodeRefuses_SecondIsAskedAtOnce", "map b; refuse a; cut a; anew; ask bar => b"},
    {"FirstNodeSilent_SecondIsAskedSoon",
     "map b; ignore a; anew; ask bar; wait 499ms; said bar => -; wait 1ms; said bar => b"},
    {"SenselessMap_IsReadFromTheNextNode", R"(
        map-of a a:0-16384; anew; ask bar => a; map-of a a:2-1; anew; ask bar => a
        map-of a none; anew; ask bar => a)"},
    // The question for the map was sent in the last case, but not the request.
    {"NoMap_RequestsAreUnavailable", R"(
        map-silent c,d; refuse c,d; anew c,d; ask bar; wait 2s; said bar => unavailable
        ignore c,d; anew c,d; ask bar; wait 2s; said bar => unavailable
        accept c,d; anew c,d; ask bar; wait 2s; said bar => unavailable)"},
    // That one is no node says more than that another is silent.
    {"NoClusterNode_IsUnsupportedWhateverTheOthersDo", R"(
        map-error c ERR This instance has cluster support disabled; map-silent d
        anew c,d; ask bar; wait 2s; said bar => not supported by this backend; said bar => redis://
        anew d,c; ask bar; wait 2s; said bar => redis://
        refuse d; anew c,d; ask bar; wait 2s; said bar => redis://; anew d,c; ask bar; wait 2s; said bar => redis://
        ignore d; anew c,d; ask bar; wait 2s; said bar => redis://; anew d,c; ask bar; wait 2s; said bar => redis://)"},
    // The one without an answer, that of the other node, and once more.
    {"DoubtedWhileItIsRead_IsReadOnceMore", R"(
        wait 1s; map-silent a,b; count; refresh; maps => 1; refresh; refresh; map-well a,b; wait 1s; maps => 3)"},
    {"ChannelSubscribed_MapIsReadEverySecond", R"(
        yes a,b; wait 1s; count; subscribe bar; subscribe foo; wait 999ms; maps => 0; wait 1ms; maps => 1
        wait 3999ms; maps => 4; wait 1ms; maps => 5; unsubscribe bar; unsubscribe foo; wait 10s; maps => 5)"},
    {"Masters_AreThoseOfTheMap", R"(
        masters => a,b; map c; masters => c; owner foo => c; refuse a,b,c; cut a,b,c
        masters => the lock service is unavailable)"},

    // --- Nodes without slots ---
    {"MasterLosesItsSlots_IsLeft", R"(
        mute a; ask bar; map b; refresh; wait 1s; said bar => the outcome is unknown; said bar => a:7000
        connected a => 0; ask bar => b; count; wait 1min; dialled a => 0)"},
    // A slot is on its way to it.
    {"NodeOfAnAsk_IsKeptWhileItIsAsked", R"(
        wait 1s; error a ASK 5061 c:7000; mute c; count; ask bar; refresh; wait 500ms; maps => 1..; said bar => -
        connected c => 1; push c +c|; said bar => c; refresh; wait 1s; connected c => 0)"},

    // --- Channels ---
    {"Channel_IsSubscribedToAtTheMasterOfItsSlot", R"(
        yes a,b; count; subscribe bar; subscribe foo; subscribe foo; last a => SSUBSCRIBE bar; last b => SSUBSCRIBE foo
        requests a => 1; requests b => 1; push-last b *3|$8|smessage|$3|foo|$4|text|
        events => subscribed bar, subscribed foo, foo: text)"},
    // Also what is sent to the old node for its channels is redirected.
    {"SlotMovesInTheMap_ChannelFollows", R"(
        yes a,b; wait 1s; subscribe bar; events => subscribed bar; map a:0-5060,b:5061-5061,a:5062-16383
        error a MOVED 5061 b:7000; wait 2s; last a => SUNSUBSCRIBE bar; last b => SSUBSCRIBE bar
        events => lost bar, subscribed bar)"},
    {"ChannelGivenUpByItsNode_IsSubscribedToAgain", R"(
        yes a,b; wait 1s; subscribe bar; events => subscribed bar; map a; push-last a *3|$12|sunsubscribe|$3|bar|:0|
        wait 500ms; events => lost bar, subscribed bar; last a => SSUBSCRIBE bar)"},
    {"ChannelOfASlotWithoutAMaster_IsSubscribedToOnceItHasOne", R"(
        yes a,b; wait 1s; map b:8192-16383; refresh; wait 1s; subscribe bar; wait 2s; events => ; map b; wait 1s
        events => subscribed bar)"},
    {"ChannelUnsubscribed_FollowsNothing", R"(
        yes a,b; wait 1s; subscribe bar; unsubscribe bar; last a => SUNSUBSCRIBE bar; map b; count; refresh; wait 1s
        requests b => 0; events => subscribed bar)"},
    // The old map and the redirection are in one packet: then the node has no slot, but the channel is subscribed to
    // there.
    {"ChannelSubscribedAtANodeWithoutSlots_KeepsTheNodeUntilItMoves", R"(
        yes a,b; wait 1s; map b:0-5060,a:5061-5061,b:5062-16383; refresh; wait 1s; subscribe bar
        events => subscribed bar; map-silent a; map-error b LOADING Redis is loading; refresh; wait 300ms; ask bar
        push a *1|*3|:5061|:5061|*2|$1|a|:7000|-MOVED 5061 b:7000|
        said bar => OK; connected a => 2; map-well a,b; map b; wait 1s; events => lost bar, subscribed bar
        connected a => 0)"},
    {"ChannelsUnknown_AreForbiddenOnceForAllNodes", R"(
        error a,b ERR unknown command 'SSUBSCRIBE'; subscribe bar; subscribe foo; wait 10s; events => forbidden
        forbidden => yes)"},
};
INSTANTIATE_TEST_SUITE_P(Cluster, ClusterScripts, testing::ValuesIn(scripts), name_of_script);

// ASKING counts for the next command only: what is sent again needs another.
TEST_F(ClusterTest, ScriptSentAgainToAMovingSlot_HasAnotherAsking) {
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

TEST_F(ClusterTest, EndlessNewAddresses_AreLimited) {
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
  EXPECT_NE(asked->said().find("is not a valid redirection"), std::string::npos) << asked->said();
  const auto connected = [&] {
    return std::count_if(nodes.begin(), nodes.end(), [](const auto& each) { return each.second->server.dialled > 0; });
  };
  EXPECT_GT(last, 1000);
  EXPECT_LE(connected(), 1000);
}

TEST_F(ClusterTest, MapDoubtedOften_IsReadRarely) {
  learn();
  const int before = maps();
  for (int i = 0; i < 1000; ++i) {
    cluster->refresh();
    engine.advance(10ms);
  }
  EXPECT_GE(maps() - before, 40);
  EXPECT_LE(maps() - before, 100) << "in ten seconds";
}

TEST_F(ClusterTest, HandlerOfTheMap_MayWithdrawRequests) {
  node("a").server.dialling = FakeServer::Dialling::silence;
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

}  // namespace
}  // namespace dlock::redis
