// Which sentinels a client believes about the master: some answer, some do not, know nothing, or are behind.
#include "backends/redis/sentinel/sentinels.hpp"

#include <tuple>

#include "backends/redis/connection/handshake.hpp"
#include "steps.hpp"

namespace dlock::redis {
namespace {

using namespace std::chrono_literals;

using common::Host;

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
  std::string refusal;       // the error for all commands
  std::string address_only;  // the error for all commands but that for the master's address

  FakeSentinel() {
    server.answer = [this](FakeStream&, const Words& command) -> std::string {
      if (command == Words{"PING"}) return "+PONG\r\n";
      if (command.front() != "SENTINEL") return "";
      if (!refusal.empty()) return "-" + refusal + "\r\n";
      if (command == Words{"SENTINEL", "GET-MASTER-ADDR-BY-NAME", "ours"}) {
        return master ? list_of({*master, "6379"}) : "*-1\r\n";
      }
      if (!address_only.empty()) return "-" + address_only + "\r\n";
      if (command == Words{"SENTINEL", "MYID"}) return id.empty() ? "-ERR unknown subcommand\r\n" : bulk(id);
      if (!master) return "-ERR No such master with that name\r\n";
      if (command == Words{"SENTINEL", "MASTER", "ours"}) {
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
  [[nodiscard]] std::int64_t questions() const {
    return std::count(server.commands.begin(), server.commands.end(), Words{"SENTINEL", "MASTER", "ours"});
  }
};

class SentinelsTest : public testing::Test {
 protected:
  [[nodiscard]] StreamFactory network() {
    return [this](Executor& executor, const Options& to, common::Stream::Events& events) {
      return std::make_unique<FakeStream>(all[to.host.name].server, executor, events);
    };
  }
  void make(const std::string& parameters = {}) {
    sentinels = std::make_unique<Sentinels>(
        engine, options_for("redis-sentinel://a,b,c?service_name=ours" + parameters), network());
    sentinels->follow(this, [this](const Host& to) { moves += (moves.empty() ? "" : ",") + to.name; });
  }
  // The master's name, or the code and the text of the failure; nothing, if none is known within that time.
  std::string located(std::chrono::nanoseconds within = 0s) {
    const auto answer = std::make_shared<std::string>();
    sentinels->locate([answer](const Result<Host>& found) {
      *answer = found.ok() ? found.value().name : found.failure().code.message() + ": " + found.failure().detail;
    });
    EXPECT_EQ(*answer, "") << "inside the call";
    engine.advance(within);
    return *answer;
  }
  const OwnerId owner{1, 2};
  test::ManualEngine engine;
  std::map<std::string, FakeSentinel> all;
  std::string moves;
  std::unique_ptr<Sentinels> sentinels;
};

// Steps of a client of the sentinels a, b and c, besides those of NodeScript.
//
//   NAMES=MASTER[/EPOCH]     they name this master of this epoch (0); "-": they do not know the service
//   deny NAMES (all commands), address-only NAMES (no other command), busy NAMES (the same, with an error that is
//   temporary)
//   replicas NAMES N, others NAMES NAMES (sentinels that they name), id NAMES ID
//   locate [TIME] => MASTER, or a part of the failure's text; "-": nothing is known by then
//   url PARAMETERS: another client; use TIME: it has a lock for so long; done: it has none any more
//   moves => the masters that a follower was notified of; unfollow
//   asked NAMES => N: for the master, since "count"; wanted => N replicas
//   survey => NAMES of those that answered, sorted
class SentinelBeliefs : public SentinelsTest,
                        protected NodeScript<FakeSentinel>,
                        public testing::WithParamInterface<StepScript> {
 protected:
  SentinelBeliefs() : NodeScript(engine, {"a", "b", "c"}) {
    using Text = const std::string&;
    verbs.insert({
        {"=",
         [this](const Step& step) {
           const auto parts = split(step.verb, '=');
           const auto said = split(parts[1], '/');
           for (const std::string& name : names_in(parts[0])) {
             named(name).master = said[0] == "-" ? std::nullopt : std::optional(said[0]);
             named(name).epoch = said.size() == 1 ? 0 : std::stoi(said[1]);
           }
         }},
        {"deny", each([](FakeSentinel& it, Text) { it.refusal = "NOAUTH Authentication required."; })},
        {"address-only", each([](FakeSentinel& it, Text) { it.address_only = "NOPERM no permissions"; })},
        {"busy", each([](FakeSentinel& it, Text) { it.address_only = "BUSY Redis is busy"; })},
        {"replicas", each([](FakeSentinel& it, Text text) { it.replicas = std::stoi(text); })},
        {"others", each([](FakeSentinel& it, Text text) { it.others = split(text); })},
        {"id", each([](FakeSentinel& it, Text text) { it.id = text; })},
        {"locate",
         [this](const Step& step) {
           const std::string answer = located(step.first == "=>" ? 0s : time_in(step.first));
           EXPECT_TRUE(step.expected == "-" ? answer.empty() : answer.find(step.expected) != std::string::npos)
               << answer;
         }},
        {"url", [this](const Step& step) { make(step.first); }},
        {"use", [this](const Step& step) { sentinels->in_use(owner, time_in(step.first)), engine.run(); }},
        {"done", [this](const Step&) { sentinels->done_with(owner); }},
        {"unfollow", [this](const Step&) { sentinels->unfollow(this); }},
        {"moves", text_of([this] { return moves; })},
        {"wanted", number_of([this] { return sentinels->replicas_wanted(); })},
        {"survey", text_of([this] { return surveyed(); })},
    });
    count("asked", [](FakeSentinel& it) { return it.questions(); });
  }
  FakeSentinel& named(const std::string& name) override { return all[name]; }
  std::string surveyed() {
    Words names;
    sentinels->survey([&](const std::vector<SentinelReply>& replies) {
      for (const SentinelReply& each : replies) names.push_back(each.sentinel.name);
    });
    engine.run();
    std::ranges::sort(names);
    return joined(names, ",");
  }
};

// Hazard: H22 Sentinel: an old master grants locks; the client asks the sentinels every second
TEST_P(SentinelBeliefs, Steps_LeadToTheMaster) {
  make();
  carry_out(GetParam().steps);
}

const StepScript beliefs[] = {
    // --- Which sentinel is asked ---
    {"RefusingOrSilent_IsPassedOverAtOnceOrSoon", R"(
        refuse a; ignore b; locate 499ms => -; locate 1ms => one; asked c => 1..)"},
    {"OneAnswer_IsEnoughAndTheNextQueryBeginsWithTheNext", R"(
        locate => one; asked b,c => 0; locate => one; asked a => 1; asked b => 1; locate => one; asked c => 1
        locate => one; asked a => 2)"},
    {"NextQuery_BeginsBehindTheOneThatAnswered", "refuse a; locate => one; count; locate => one; asked c => 1"},
    {"SilentBefore_IsNotWaitedForButAskedWhileALockIsInUse", R"(
        ignore a; locate 500ms => one; locate => one; locate => one; locate => one; dialled a => 1
        accept a; use 1min; wait 10s; asked a => 2..)"},
    {"Unreachable_IsNotDialledUntilTheNextQuery", R"(
        refuse a; locate => one; count; wait 1min; dialled all => 0)"},
    {"ConnectionBroken_IsNotReplacedUntilTheNextQuery", R"(
        locate => one; count; cut a; wait 1min; dialled all => 0)"},
    {"NoAnswer_IsUnavailable", "ignore all; locate 2s => unavailable"},
    {"NoAnswer_NamesEachInTurn", R"(
        ignore all; locate 2s => master: a:26379: no; wait 10s; locate 2s => b:26379; wait 10s; locate 2s => c:26379)"},
    {"ServiceUnknownToAll_IsAWrongName", "all=-; locate => invalid argument; wait 10s; locate => service_name"},
    {"ServiceUnknownToSome_IsUnavailable", "a=-; b=-; refuse c; locate => unavailable"},
    {"ServiceUnknownBehindASilentOne_IsUnavailable", "refuse a; b=-; c=-; locate => unavailable"},
    {"WrongPassword_IsDenied", "deny all; locate => access denied; wait 10s; locate => master: b:26379: Redis"},

    // --- Which reply is believed ---
    {"BehindTheLatestFailover_CountsForNothing", R"(
        all=two/5; b=one/4; locate => two; locate => two; asked b => 1; moves => two)"},
    {"ServiceSetUpAnew_IsBelievedWhereMostSaySoForLong", R"(
        all=two/5; locate => two; all=three/0; refuse c; wait 59s
        locate => not know of the latest failover; wait 1s; locate => three; locate => three; moves => two,three)"},
    {"FewAreBehind_AreNeverBelieved", R"(
        all=two/5; locate => two; all=one/4; refuse b,c; wait 1min; locate => does not know of the latest failover)"},
    {"AddressOnly_IsBelieved", R"(
        address-only all; locate => one; all=two; locate => two; moves => one,two)"},
    {"EpochRefused_IsNotBelieved", R"(
        all=two/5; locate => two; b=one; busy b; locate => two; moves => two)"},
    {"OtherNameOfTheMaster_MovesNothing", R"(
        locate => one; b=one.example.net; use 1min; wait 10s; moves => one)"},

    // --- The number of replicas ---
    {"AllReplicas_NumberHasToBeKnown", R"(
        url &replicas_ack=all; wanted => 1; address-only a; replicas b 4; locate => one; asked b => 1..; wanted => 4)"},
    {"AllReplicas_AllAreAskedAtTheBeginning", "url &replicas_ack=all; replicas a 0; locate 10s => one; wanted => 2"},
    {"SeveralReplies_LatestEpochCounts", R"(
        url &replicas_ack=all; b=two/5; locate => two; a=two/5; c=two/5; locate => two; moves => two)"},
    {"SeveralRepliesOfOneEpoch_FirstCounts", R"(
        url &replicas_ack=all; b=two; locate => one; locate => two)"},
    {"FewerReplicas_CountOnceAllSayItForAWhile", R"(
        url &replicas_ack=all; locate => one; use 5min; replicas all 1; wait 14s; wanted => 2; wait 8s; wanted => 1)"},
    {"SentinelsReset_FewerOnlyForNewClients", R"(
        url &replicas_ack=all; locate => one; use 5min; replicas all 0; wait 10s; wanted => 2; replicas all 2; wait 3s
        replicas all 0; wait 10s; wanted => 2)"},
    {"SentinelGone_CountsForAWhile", R"(
        url &replicas_ack=all; replicas a 3; locate => one; use 5min; refuse a; cut a; wait 14s; wanted => 3
        wait 8s; wanted => 2)"},
    {"NoAnswer_NumberStays", R"(
        url &replicas_ack=all; locate => one; use 5min; refuse all; cut all; wait 4min; wanted => 2)"},
    {"FewerThanTheFloor_AreNotEnough",
     "url &replicas_ack=all&replicas_min=2; replicas all 0; locate => one; wanted => 2"},
    {"NumberInTheUrl_Counts", "url &replicas_ack=3; replicas all 5; locate => one; wanted => 3"},

    // --- Moves ---
    {"MasterReplacedUnannounced_IsFoundOut", R"(
        locate => one; use 1min; all=two/1; wait 2s; moves => one,two)"},
    {"OthersBehind_DoNotMoveItBack", R"(
        locate => one; use 1min; b=two/1; wait 9s; moves => one,two)"},
    // One sentinel is cut off together with the old master.
    {"OneKnowsNothing_OthersAreBelieved", R"(
        locate => one; wait 10s; use 1min; b=two/6; c=two/6; wait 3s; moves => one,two)"},
    {"LockUsedAgain_AsksAtOnce", "locate => one; wait 10s; all=two/1; use 1min; moves => one,two"},
    {"LockInUse_AsksEverySecondAndNotLonger", R"(
        locate => one; wait 10s; count; use 10s; wait 1min; asked all => 9..11; count; use 1440min; wait 5s; done
        wait 1min; asked all => 3..7)"},
    {"NoMasterKnown_LockAsksNothing", "use 1min; wait 10s; asked all => 0"},
    {"FollowerGone_IsNotNotified", R"(
        locate => one; unfollow; all=two/1; locate => two; moves => one)"},

    // --- Sentinels that others name ---
    {"NamedInTheUrl_IsNotLearnt", "others a a,b,c; locate => one; survey => a,b,c"},
    // By b, whose id is that of x, in the end.
    {"TwoNames_AreOneSentinel", R"(
        others a x,y; id x,b b; id y y; locate => one; survey => a,b,c,y; connected x => 1
        locate => one; locate => one; connected x => 0; survey => a,b,c,y)"},
    // All are new, behind the same name.
    {"Learnt_CountOnceTheyAnswer", R"(
        refuse b,c; a=one/5; others a x,y,z; locate => one; others a p,q; a,p,q=two/0; refuse x,y,z; wait 1min
        locate => two; locate => two)"},
    {"Learnt_CountThoughTheyRefuse", R"(
        refuse b,c; a=one/5; others a p,q; locate => one; a=two/0; deny p,q; wait 1min
        locate => the latest failover; locate => the latest failover)"},
};
INSTANTIATE_TEST_SUITE_P(Sentinels, SentinelBeliefs, testing::ValuesIn(beliefs), name_of_script);

// Hazard: H22 Sentinel: an old master grants locks; the client asks the sentinels every second
TEST_F(SentinelsTest, SimultaneousQueries_ShareOneAnswer) {
  make();
  int answers = 0;
  for (int i = 0; i < 5; ++i) sentinels->locate([&](const Result<Host>& result) { answers += result.ok() ? 1 : 0; });
  engine.run();
  EXPECT_EQ(answers, 5);
  EXPECT_EQ(all["a"].questions(), 1);
}

TEST_F(SentinelsTest, SentinelsNamedByOthers_AreLearntUpToALimit) {
  for (int i = 0; i < 100; ++i) all["a"].others.push_back("x" + std::to_string(i));
  make();
  EXPECT_EQ(located(), "one");
  for (const char* name : {"a", "b", "c"}) all[name].server.dialling = FakeServer::Dialling::refuse;
  for (int i = 0; i < 100; ++i) all["x" + std::to_string(i)].server.dialling = FakeServer::Dialling::refuse;
  all["a"].server.cut();
  EXPECT_NE(located(10s), "one");
  EXPECT_EQ(all["x12"].server.dialled, 1) << "a, b, c and thirteen others";
  EXPECT_EQ(all["x13"].server.dialled, 0);
}

TEST_F(SentinelsTest, Login_IsThatOfTheSentinels) {
  Options seen;
  const Options given = options_for(
      "redis-sentinel://me:mine@a/3?service_name=ours&sentinel_user=watcher&sentinel_password=theirs&sentinel_tls=on");
  sentinels =
      std::make_unique<Sentinels>(engine, given, [&](Executor&, const Options& to, common::Stream::Events& events) {
        seen = to;
        return std::make_unique<FakeStream>(all["a"].server, engine, events);
      });
  EXPECT_EQ(located(), "one");
  EXPECT_EQ(seen.connect_timeout, 500ms);
  EXPECT_TRUE(seen.tls && !seen.sentinel && !seen.needs_master());
  const auto& sent = all["a"].server.handshakes;
  EXPECT_EQ(std::count(sent.begin(), sent.end(), Words{"AUTH", "watcher", "theirs"}), 1);
  EXPECT_EQ(std::count(sent.begin(), sent.end(), Words{"SELECT", "3"}), 0);
}

Reply array_of(const std::vector<std::string>& words) {
  return parsed(list_of(words));
}

TEST(SentinelReply, Fields_AreReadAndNonsenseIsRefused) {
  const Reply nil{.type = Reply::Type::nil};
  const auto read = [&](const Reply& state, const Reply& address) {
    return read_sentinel({.name = "a", .port = 1}, {state, address, array_of({"ip", "10.0.0.1"}), nil});
  };
  const Reply good_state =
      array_of({"config-epoch", "1", "num-slaves", "2", "quorum", "3", "down-after-milliseconds", "1000"});
  const Reply good_address = array_of({"b", "2"});
  const SentinelReply good = read(good_state, good_address);
  EXPECT_EQ(good.master, (Host{.name = "b", .port = 2}));
  EXPECT_EQ(std::tuple(good.epoch, good.replicas, good.quorum, good.down_after), std::tuple(1U, 2U, 3U, 1s));
  const auto expect = [&](const Reply& state, const Reply& address, std::error_code code) {
    const SentinelReply reply = read(state, address);
    EXPECT_EQ(reply.problem ? reply.problem->code : std::error_code(), code);
    EXPECT_EQ(reply.master.has_value() && reply.epoch.has_value(), !code);
    EXPECT_TRUE(reply.others.empty() && reply.id.empty());
  };
  expect(good_state, array_of({"::1", "1"}), {});
  expect(array_of({"config-epoch", "1", "num-slaves", "2"}), good_address, {});
  expect(good_state, nil, errc::invalid_argument);
  const std::vector<std::vector<std::string>> addresses = {
      {},           {"10.0.0.1"}, {"10.0.0.1", "0"}, {"10.0.0.1", "65536"}, {"10.0.0.1", "-1"}, {"", "1"},
      {"a b", "1"}, {"a,b", "1"}, {"/tmp", "1"},     {"a", "1", "x"},       {"a", ""}};
  for (const auto& words : addresses) {
    SCOPED_TRACE(testing::PrintToString(words));
    expect(good_state, array_of(words), errc::protocol);
  }
  for (const Reply& state : {array_of({"config-epoch", "1"}), array_of({"config-epoch", "-1", "num-slaves", "1"}),
                             array_of({"config-epoch", "1", "num-slaves", "x"}), array_of({"config-epoch"}), nil}) {
    expect(state, good_address, errc::protocol);
  }
}

TEST(SentinelHandshake, RoleUnknown_IsNoMaster) {
  const std::string denied = "-NOPERM this user has no permissions|";
  const std::string master = bulk("# Replication\r\nrole:master\r\n");
  for (const auto& [role, info, code] : {std::tuple(std::string("*0|"), std::string("*0|"), errc::unavailable),
                                         {denied, denied, errc::access_denied},
                                         {"-DENIED Redis is running in protected mode|", master, errc::access_denied},
                                         {"-LOADING Redis is loading|", master, errc::unavailable}}) {
    const Options options = options_for("redis-sentinel://a?service_name=ours");
    Handshake handshake(options);
    std::optional<Failure> verdict;
    for (const std::string& reply : {role, info, std::string("+OK|")}) {
      if (!verdict) verdict = handshake.replied(parsed(reply));
    }
    EXPECT_EQ(verdict->code, code) << role << info;
  }
}

}  // namespace
}  // namespace dlock::redis
