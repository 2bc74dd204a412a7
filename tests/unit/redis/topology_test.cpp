// A server's connections, which are made again together, the replicas that acknowledge what was written on one, and the
// subscriber.
#include <gtest/gtest.h>

#include "backends/redis/connection/subscriber.hpp"
#include "backends/redis/topology/node.hpp"
#include "backends/redis/topology/replica_acks.hpp"
#include "steps.hpp"
#include "tests/support/recording_host.hpp"

namespace dlock::redis {
namespace {

using namespace std::chrono_literals;

// Steps of what has connections to one server, which answers to PING and confirms subscriptions. Bytes that it sends
// are a text with '|' for the ends of lines.
//
//   wait TIME; accept, refuse or cut [N]: connections, or the Nth; dialled => N; subscribers => N
//   sent => the requests since the last look, separated by ", "; events => the same of the events; sorted => in order
//   count NAME WANTED PATIENCE TIME [undo]: the replicas that have what was written; and an UNDO if they are too few
//   push BYTES on the oldest connection; confirm KIND CHANNEL, message CHANNEL TEXT: the bytes of that
//   cluster: channels are in slots: foo, {foo}1 and {foo}2 in 12182, bar in 5061
//   subscribe or unsubscribe CHANNEL; mute, well: without confirmations, and as before; forbidden => yes or no
//   node: one with its three connections, a channel subscribed to on the last; answered: its server has answered
//   asks => yes: it may ask; rest: it needs no connections; last => connected or reconnecting, as the program is told
class TopologyTest : public testing::TestWithParam<StepScript>, protected StepRunner, protected Node::User {
 protected:
  TopologyTest() {
    server.answer = [this](FakeStream&, const Words& command) -> std::string {
      if (command.front() == "PING") return "+PONG\r\n";
      if (command.front() == "GET") return "$-1\r\n";
      std::string kind = command.front();
      std::ranges::transform(kind, kind.begin(), [](char c) { return static_cast<char>(c | 0x20); });
      return kind.ends_with("subscribe") && answers ? about_channel(kind, command[1]) : "";
    };
    add_server();
    add_clients();
  }
  ~TopologyTest() override { server.answer = nullptr; }

  void add_server() {
    using Dialling = FakeServer::Dialling;
    verbs.insert({
        {"wait", [this](const Step& step) { engine.advance(time_in(step.first)); }},
        {"accept", [this](const Step&) { server.dialling = Dialling::accept; }},
        {"refuse", [this](const Step&) { server.dialling = Dialling::refuse; }},
        {"cut",
         [this](const Step& step) {
           if (step.first.empty()) return server.cut();
           server.connections.at(std::stoul(step.first))->close({errc::unavailable, "cut"});
         }},
        {"dialled", number_of([this] { return server.dialled; })},
        {"subscribers", number_of([this] { return server.subscribers(); })},
        {"sent", text_of([this] {
           Words sent;
           for (const Words& each : std::exchange(server.commands, {})) sent.push_back(joined(each, " "));
           return joined(sent, ", ");
         })},
        {"push", [this](const Step& step) { push(lines(step.text.substr(step.text.find("push ") + 5))); }},
        {"confirm", [this](const Step& step) { push(about_channel(step.first, step.rest)); }},
        {"message", [this](const Step& step) { push(published(step.first, step.rest)); }},
        {"mute", [this](const Step&) { answers = false; }},
        {"well", [this](const Step&) { answers = true; }},
    });
  }
  void add_clients() {
    verbs.insert({
        {"events", text_of([this] { return joined(std::exchange(events, {}), ", "); })},
        {"sorted", text_of([this] {
           std::ranges::sort(events);
           return joined(std::exchange(events, {}), ", ");
         })},
        {"count", [this](const Step& step) { count(step.first, split(step.rest, ' ')); }},
        {"cluster",
         [this](const Step&) {
           options.cluster.emplace();
           subscriber.emplace(engine, options, server.streams(), static_cast<Node::User&>(*this));
         }},
        {"subscribe", [this](const Step& step) { subscribe(step.first); }},
        {"unsubscribe", [this](const Step& step) { subscriber->unsubscribe(step.first), engine.run(); }},
        {"forbidden", whether([this] { return subscriber->is_forbidden(); })},
        {"node", [this](const Step&) { make_node(); }},
        {"answered", [this](const Step&) { node->outage().answered(true), engine.run(); }},
        {"asks", whether([this] { return node->outage().may_ask(); })},
        {"rest",
         [this](const Step&) {
           node->rest({errc::unavailable, "not needed"});
         }},
        {"last", text_of([this] {
           return host.connections.back() == ConnectionEvent::State::connected ? "connected" : "reconnecting";
         })},
    });
  }

  void push(const std::string& bytes) {
    server.connections.front()->reply(bytes);
    engine.run();
  }
  void subscribe(const std::string& channel) {
    subscriber->subscribe(channel);
    engine.run();
  }
  void count(const std::string& name, const Words& words) {
    const bool undoes = words.size() > 3;
    acks.count(std::stoull(words.at(0)), time_in(words.at(1)), engine.now() + time_in(words.at(2)),
               [this, name, undoes](const Result<std::uint64_t>& replicas) {
                 const std::error_code code = replicas.ok() ? std::error_code() : replicas.failure().code;
                 events.push_back(name + ": " +
                                  (replicas.ok()             ? std::to_string(replicas.value())
                                   : code == errc::ambiguous ? "ambiguous"
                                                             : code.message()));
                 if (undoes) (void)client.request({"UNDO"}, engine.now() + 2s, [](const Result<Reply>&, TimePoint) {});
               });
    engine.run();
  }
  void make_node() {
    node.emplace(engine, options, server.streams(), news, static_cast<Node::User&>(*this));
    // In this order, so the connections are, too.
    for (const Line line : {Line::common, Line::acknowledged}) {
      (void)node->line(line).request(
          {"GET", "key"}, TimePoint::max(), [](const Result<Reply>&, TimePoint) {}, About::locks);
      engine.run();
    }
    node->subscriber().subscribe("channel");
    engine.run();
  }

  test::ManualEngine engine;
  FakeServer server;
  Options options = options_for("redis://localhost?replicas_ack=1");
  bool answers = true;
  Words events;
  test::RecordingHost host{engine};
  common::ConnectionNews news{host};
  CommandClient client{engine, options, server.streams(), nullptr};
  ReplicaAcks acks{client};
  std::optional<Subscriber> subscriber{std::in_place, engine, options, server.streams(),
                                       static_cast<Node::User&>(*this)};
  std::optional<Node> node;

 private:
  void on_state(Node& /*of*/, NodeState state) override {
    events.emplace_back(state == NodeState::connected ? "connected" : state == NodeState::down ? "down" : "usable");
  }
  void on_subscribed(const std::string& channel) override { events.push_back("subscribed " + channel); }
  void on_message(const std::string& channel, const std::string& text) override {
    events.push_back(channel + ": " + text);
  }
  void on_lost(const std::string& channel) override { events.push_back("lost " + channel); }
  void on_forbidden(const Failure& /*why*/) override { events.emplace_back("forbidden"); }
};

TEST_P(TopologyTest, Steps_HaveTheirResults) {
  carry_out(GetParam().steps);
}

const StepScript topology_scripts[] = {
    // --- Acknowledgements ---
    // Hazard: H18 head-of-line blocking: a connection for `WAIT`
    {"SeveralWrites_ShareTheNextWait", R"(
        count a 1 500ms 2s; count b 2 300ms 2s; count c 1 200ms 2s; sent => WAIT 1 500
        push :1|; events => a: 1; sent => WAIT 2 200; push :0|; events => c: 0; sent => WAIT 2 300
        push :2|; events => b: 2; sent => ; wait 0s)"},
    // It holds up all other requests of the connection.
    {"Wait_TakesAThirdOfTheResponseTimeout", "count a 1 60min 2s; sent => WAIT 1 667"},
    {"Undo_GoesBeforeTheNextWait", R"(
        count a 1 500ms 2s undo; count b 1 500ms 2s; sent => WAIT 1 500; push :0|; sent => UNDO, WAIT 1 500)"},
    {"Write_EndsAtItsDeadline", R"(
        count a 1 500ms 2s; count b 1 500ms 1s; wait 999ms; events => ; wait 1ms; events => b: ambiguous
        push :1|; events => a: 1; sent => WAIT 1 500)"},
    // A WAIT on a new connection counts all replicas, because the server knows of no write there.
    {"WaitFails_FailsTheWritesBehindIt", R"(
        count a 1 500ms 2s; count b 1 500ms 2s; cut; wait 1s; events => a: ambiguous, b: ambiguous; sent => WAIT 1 500
        count c 1 500ms 2s; push :1|; events => c: 1
        count d 1 500ms 2s; push +OK|; events => d: unexpected data from the lock service)"},

    // --- A node ---
    // The line of acknowledged requests is not for acquires without acknowledgements.
    // Hazard: H22 Sentinel: an old master grants locks; the client asks the sentinels every second
    {"Node_HasThreeConnections", "node; dialled => 3; events => connected, subscribed channel"},
    // The name may lead to another server now. The subscriber waits for an answer; a new connection may be better.
    {"CommonConnectionBroken_AllAreReplaced", R"(
        node; events => connected, subscribed channel; cut 0; wait 1s; dialled => 5; subscribers => 0
        events => down, down, connected; asks => yes; answered; events => usable, subscribed channel
        subscribers => 1)"},
    {"AcknowledgedConnectionBroken_AllAreReplaced", R"(
        node; events => connected, subscribed channel; cut 1; wait 1s; dialled => 5; subscribers => 0
        events => down, down, connected; asks => yes; answered; events => usable, subscribed channel
        subscribers => 1)"},
    {"AtRest_BrokenConnectionsAreNotReported",
     "node; last => connected; refuse; cut; wait 1s; last => reconnecting; rest; last => connected"},

    // --- Channels ---
    // The reply to a PING changes nothing.
    {"ChannelConfirmed_IsReportedOnce", R"(
        subscribe other; push *2|$4|pong|$0||; push +PONG|; subscribe other; sent => SUBSCRIBE other
        mute; subscribe a; events => subscribed other; confirm subscribe a; events => subscribed a; dialled => 1)"},
    // The first confirmation is of the first of two requests.
    {"SeveralRequests_LastCounts", R"(
        subscribe other; mute; subscribe a; unsubscribe a; message a text; subscribe a; confirm subscribe a
        confirm unsubscribe a; events => subscribed other; confirm subscribe a; events => subscribed a)"},
    // It may be asked for again; and no channel that is not wanted is lost.
    // Hazard: H33 a cluster's redirections, moving slots, pushes
    {"SlotMoved_ItsChannelsAreLost", R"(
        cluster; subscribe bar; subscribe foo; mute; subscribe {foo}1; events => subscribed bar, subscribed foo
        push -MOVED 12182 b:7000|; sorted => lost foo, lost {foo}1; well; subscribe foo; events => subscribed foo
        mute; unsubscribe foo; push -MOVED 12182 b:7000|; events => ; dialled => 1)"},
    {"ShardedChannelsUnknown_AreForbidden", R"(
        cluster; mute; subscribe foo; push -ERR unknown command 'SSUBSCRIBE', with args beginning with: 'foo'|
        events => forbidden; forbidden => yes; wait 1min; dialled => 1)"},
    {"ShardedChannelsDenied_AreForbidden", R"(
        cluster; mute; subscribe foo; push -NOPERM No permissions|; events => forbidden; forbidden => yes; wait 1min
        dialled => 1)"},
};
INSTANTIATE_TEST_SUITE_P(Topology, TopologyTest, testing::ValuesIn(topology_scripts), name_of_script);

class SubscriberTest : public TopologyTest {};

// Everything that the server sends without a request or a subscription.
TEST_P(SubscriberTest, UnexpectedReply_EndsTheConnection) {
  subscribe("a");
  carry_out("push " + GetParam().steps +
            "; events => subscribed a, lost a; wait 10s; events => subscribed a; dialled => 2");
}

const StepScript unexpected[] = {
    {"Subscribed", "*3|$9|subscribe|$1|a|:1|"},
    {"Unsubscribed", "*3|$11|unsubscribe|$1|a|:1|"},
    {"Pattern", "*3|$10|psubscribe|$1|a|:1|"},
    {"Sharded", "*3|$10|ssubscribe|$1|a|:1|"},
    {"ShardedEnded", "*3|$12|sunsubscribe|$1|a|:1|"},
    {"Moved", "-MOVED 15495 b:7000|"},
    {"Number", ":1|"},
    {"NumberInPlaceOfTheKind", "*3|:1|$1|a|:1|"},
    {"WithoutANumber", "*2|$9|subscribe|$1|a|"},
};
INSTANTIATE_TEST_SUITE_P(Replies, SubscriberTest, testing::ValuesIn(unexpected), name_of_script);

}  // namespace
}  // namespace dlock::redis
