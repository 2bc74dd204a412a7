// Which sentinels a client believes about the master: some answer, some do not, know nothing, or are behind.
#include "backends/redis/sentinel/sentinels.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "backends/redis/connection/handshake.hpp"
#include "fake_server.hpp"
#include "tests/support/manual_engine.hpp"

namespace dlock::redis {

namespace {

using namespace std::chrono_literals;

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
  [[nodiscard]] static Options options(const std::string& parameters = {}) {
    return sentinel_options("redis-sentinel://a,b,c?service_name=ours" + parameters);
  }
  [[nodiscard]] StreamFactory network() {
    return [this](Executor& executor, const Options& to, common::Stream::Events& events) {
      FakeServer& server = to.host.port == 26379 ? all[to.host.name].server : servers[to.host.name];
      return std::make_unique<FakeStream>(server, executor, events);
    };
  }
  void make(const Options& options) {
    sentinels = std::make_unique<Sentinels>(engine, options, network());
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
  std::map<std::string, FakeServer> servers;
  std::map<std::string, FakeSentinel> all;
  std::string moves;
  std::unique_ptr<Sentinels> sentinels;
};

// Steps, separated by ';' or on lines of their own, of a client of the sentinels a, b and c. NAMES: "a", "a,b", "all".
//
//   NAMES=MASTER[/EPOCH]     they name this master of this epoch (0); "-": they do not know the service
//   accept, refuse or ignore NAMES: connections
//   cut NAMES, deny NAMES (all commands), address-only NAMES (no other command), busy NAMES (the same, with an error
//   that is temporary)
//   replicas NAMES N
//   locate [TIME] => MASTER, or a part of the failure's text; "-": nothing is known by then
//   wait TIME; use TIME: has a lock for so long; done: has none any more
//   moves => the masters that a follower was notified of; unfollow
//   count: the numbers below begin anew, for all
//   asked NAMES => N, dialled NAMES => N or M..N or N.., wanted => N replicas
struct Belief {
  const char* name;
  std::string parameters;
  std::string steps;

  friend void PrintTo(const Belief& belief, std::ostream* out) { *out << belief.name; }
};

class SentinelBeliefs : public SentinelsTest, public testing::WithParamInterface<Belief> {
 protected:
  static std::chrono::nanoseconds time_in(const std::string& text) {
    const auto number = std::stoll(text);
    if (text.ends_with("ms")) return std::chrono::milliseconds(number);
    return text.ends_with("min") ? std::chrono::nanoseconds(std::chrono::minutes(number))
                                 : std::chrono::seconds(number);
  }
  static bool matches(const std::string& expected, std::int64_t number) {
    const std::size_t dots = expected.find("..");
    const std::string most = dots == std::string::npos ? expected : expected.substr(dots + 2);
    return number >= std::stoll(expected) && (most.empty() || number <= std::stoll(most));
  }
  void for_each(const std::string& names, const std::function<void(FakeSentinel&)>& f) {
    std::istringstream each(names == "all" ? "a,b,c" : names);
    for (std::string name; std::getline(each, name, ',');) f(all[name]);
  }
  std::int64_t sum(const std::string& names, const std::function<std::int64_t(FakeSentinel&)>& f) {
    std::int64_t sum = 0;
    for_each(names, [&](FakeSentinel& sentinel) { sum += f(sentinel); });
    return sum;
  }
  static std::int64_t asked(FakeSentinel& sentinel) { return sentinel.questions(); }
  static std::int64_t dialled(FakeSentinel& sentinel) { return sentinel.server.dialled; }

  // Whether it was a step that says what the sentinels do.
  bool arrange(const std::string& verb, const std::string& names, const std::string& value) {
    using Dialling = FakeServer::Dialling;
    const std::map<std::string, std::function<void(FakeSentinel&)>> verbs = {
        {"accept", [](FakeSentinel& each) { each.server.dialling = Dialling::accept; }},
        {"refuse", [](FakeSentinel& each) { each.server.dialling = Dialling::refuse; }},
        {"ignore", [](FakeSentinel& each) { each.server.dialling = Dialling::silence; }},
        {"cut", [](FakeSentinel& each) { each.server.cut(); }},
        {"deny", [](FakeSentinel& each) { each.refusal = "NOAUTH Authentication required."; }},
        {"address-only", [](FakeSentinel& each) { each.address_only = "NOPERM this user has no permissions"; }},
        {"busy", [](FakeSentinel& each) { each.address_only = "BUSY Redis is busy"; }},
        {"replicas", [&](FakeSentinel& each) { each.replicas = std::stoi(value); }},
    };
    const auto found = verbs.find(verb);
    if (found != verbs.end()) for_each(names, found->second);
    const std::size_t equals = verb.find('=');
    if (equals == std::string::npos) return found != verbs.end();
    const std::string master = verb.substr(equals + 1);
    const std::size_t slash = master.find('/');
    for_each(verb.substr(0, equals), [&](FakeSentinel& each) {
      each.master = master == "-" ? std::nullopt : std::optional(master.substr(0, slash));
      each.epoch = slash == std::string::npos ? 0 : std::stoi(master.substr(slash + 1));
    });
    return true;
  }
  void step(const std::string& text) {
    SCOPED_TRACE(text);
    std::istringstream words(text);
    std::string verb, first, second;
    words >> verb >> first >> second;
    if (verb.empty() || arrange(verb, first, second)) return;
    const std::size_t arrow = text.find("=> ");
    const std::string expected = arrow == std::string::npos ? "" : text.substr(arrow + 3);
    const auto expect_count = [&](std::int64_t count) { EXPECT_TRUE(matches(expected, count)) << count; };
    const std::map<std::string, std::function<void()>> verbs = {
        {"locate",
         [&] {
           const std::string answer = located(first == "=>" ? 0s : time_in(first));
           EXPECT_TRUE(expected == "-" ? answer.empty() : answer.find(expected) != std::string::npos) << answer;
         }},
        {"wait", [&] { engine.advance(time_in(first)); }},
        {"use", [&] { sentinels->in_use(owner, time_in(first)), engine.run(); }},
        {"done", [&] { sentinels->done_with(owner); }},
        {"unfollow", [&] { sentinels->unfollow(this); }},
        {"moves", [&] { EXPECT_EQ(moves, expected); }},
        {"count", [&] { asked_before_ = sum("all", asked), dialled_before_ = sum("all", dialled); }},
        {"asked", [&] { expect_count(sum(first, asked) - asked_before_); }},
        {"dialled", [&] { expect_count(sum(first, dialled) - dialled_before_); }},
        {"wanted", [&] { expect_count(sentinels->replicas_wanted()); }},
    };
    verbs.at(verb)();
  }

 private:
  std::int64_t asked_before_ = 0, dialled_before_ = 0;  // of all
};

TEST_P(SentinelBeliefs, LeadToTheMaster) {
  make(options(GetParam().parameters));
  std::string text;
  for (const char c : GetParam().steps + ";") {
    if (c != ';' && c != '\n') {
      text += c;
    } else {
      step(std::exchange(text, {}));
    }
  }
}

const Belief beliefs[] = {
    // --- Which sentinel is asked ---
    {"OneAnswerIsEnough", "", "locate => one; asked b,c => 0"},
    {"OneThatRefusesIsPassedOverAtOnceAndOneThatIsSilentSoon", "", R"(
        refuse a; ignore b; locate 499ms => -; locate 1ms => one; asked c => 1..)"},
    {"EachQueryBeginsWithTheNextSentinel", "", R"(
        locate => one; locate => one; asked a => 1; asked b => 1; locate => one; asked c => 1; locate => one
        asked a => 2)"},
    {"AQueryBeginsBehindTheSentinelThatAnswered", "", "refuse a; locate => one; count; locate => one; asked c => 0"},
    {"ACallerDoesNotWaitForOneThatDidNotAnswerBefore", "", R"(
        ignore a; locate 500ms => one; locate => one; locate => one; locate => one; dialled a => 1)"},
    {"ButOneThatDidNotAnswerIsAskedAgainWhileALockIsInUse", "", R"(
        ignore a; locate 500ms => one; accept a; use 1min; wait 10s; asked a => 2..)"},
    {"OneThatCannotBeReachedIsLeftAloneUntilItIsAskedAgain", "", R"(
        refuse a; locate => one; count; wait 1min; dialled all => 0)"},
    {"OneWhoseConnectionBreaksIsLeftAloneUntilItIsAskedAgain", "", R"(
        locate => one; count; cut a; wait 1min; dialled all => 0)"},
    {"NoAnswerAtAllIsUnavailable", "", "ignore all; locate 2s => unavailable"},
    {"NoAnswerAtAllNamesEach", "", R"(
        ignore all; locate 2s => master: a:26379: no; wait 10s; locate 2s => b:26379; wait 10s; locate 2s => c:26379)"},
    {"AServiceThatNoneKnowsIsAWrongName", "", "all=-; locate => invalid argument; wait 10s; locate => service_name"},
    {"OneThatIsSilentMightKnowIt", "", "a=-; b=-; refuse c; locate => unavailable"},
    {"TheFirstThatIsSilentMightKnowIt", "", "refuse a; b=-; c=-; locate => unavailable"},
    {"AWrongPasswordIsDenied", "", "deny all; locate => access denied; wait 10s; locate => master: b:26379: Redis"},

    // --- Which reply is believed ---
    {"OneThatDoesNotKnowTheLastFailoverCountsForNothing", "", R"(
        all=two/5; b=one/4; locate => two; locate => two; asked b => 1; moves => two)"},
    {"AServiceThatWasSetUpAnewIsBelievedWhereMostSaySoForLong", "", R"(
        all=two/5; locate => two; all=three/0; refuse c; wait 59s
        locate => does not know of the latest failover; wait 1s; locate => three; locate => three; moves => two,three)"},
    {"AFewThatAreBehindAreNeverBelieved", "", R"(
        all=two/5; locate => two; all=one/4; refuse b,c; wait 1min; locate => does not know of the latest failover)"},
    {"OneThatMayOnlyBeAskedForTheAddressIsBelieved", "", R"(
        address-only all; locate => one; all=two; locate => two; moves => one,two)"},
    {"OneThatKeepsSilentAboutTheEpochIsNotBelieved", "", R"(
        all=two/5; locate => two; b=one; busy b; locate => two; moves => two)"},
    {"AnotherNameOfTheSameMasterMovesNothing", "", R"(
        locate => one; b=one.example.net; use 1min; wait 10s; moves => one)"},

    // --- The number of replicas ---
    {"WhereAllReplicasCountTheirNumberHasToBeKnown", "&replicas_ack=all", R"(
        wanted => 1; address-only a; replicas b 4; locate => one; asked b => 1..; wanted => 4)"},
    {"AllAreAskedForItAtTheBeginning", "&replicas_ack=all", "replicas a 0; locate 10s => one; wanted => 2"},
    {"OfSeveralRepliesThatOfTheLatestEpochCounts", "&replicas_ack=all", R"(
        b=two/5; locate => two; a=two/5; c=two/5; locate => two; moves => two)"},
    {"OfSeveralRepliesOfOneEpochTheFirstCountsAndTheNextQueryBeginsElsewhere", "&replicas_ack=all", R"(
        b=two; locate => one; locate => two)"},
    {"FewerReplicasCountOnceAllHaveSaidSoForAWhile", "&replicas_ack=all", R"(
        locate => one; use 5min; replicas all 1; wait 14s; wanted => 2; wait 8s; wanted => 1)"},
    {"ASentinelThatWasResetMakesThemFewerOnlyForNewClients", "&replicas_ack=all", R"(
        locate => one; use 5min; replicas all 0; wait 10s; wanted => 2; replicas all 2; wait 3s
        replicas all 0; wait 10s; wanted => 2)"},
    {"OneThatIsGoneCountsOnlyForAWhile", "&replicas_ack=all", R"(
        replicas a 3; locate => one; use 5min; refuse a; cut a; wait 14s; wanted => 3; wait 8s; wanted => 2)"},
    {"WhereNoneAnswersTheNumberStays", "&replicas_ack=all", R"(
        locate => one; use 5min; refuse all; cut all; wait 4min; wanted => 2)"},
    {"FewerThanTheFloorAreNotEnough", "&replicas_ack=all&replicas_min=2", "replicas all 0; locate => one; wanted => 2"},
    {"ANumberInTheUrlCounts", "&replicas_ack=3", "replicas all 5; locate => one; wanted => 3"},

    // --- Moves ---
    {"AMasterThatWasForgottenWithoutAWordIsFoundOut", "", R"(
        locate => one; use 1min; all=two/1; wait 2s; moves => one,two)"},
    // It does not know it yet.
    {"ASentinelThatIsBehindDoesNotMoveItBack", "", R"(
        locate => one; use 1min; b=two/1; wait 9s; moves => one,two)"},
    // One sentinel is cut off together with the old master.
    {"TheOthersAreBelievedThoughOneKnowsNothing", "", R"(
        locate => one; wait 10s; use 1min; b=two/6; c=two/6; wait 3s; moves => one,two)"},
    {"WhoComesBackToALockAsksAtOnce", "", "locate => one; wait 10s; all=two/1; use 1min; moves => one,two"},
    {"WhoHasALockAsksEverySecondAndNotLonger", "", R"(
        locate => one; wait 10s; count; use 10s; wait 1min; asked all => 9..11; count; use 1440min; wait 5s; done
        wait 1min; asked all => 3..7)"},
    {"BeforeAMasterIsKnownNothingIsAskedForALock", "", "use 1min; wait 10s; asked all => 0"},
    {"WhoNoLongerFollowsIsNotNotified", "", R"(
        locate => one; unfollow; all=two/1; locate => two; moves => one)"},
};
INSTANTIATE_TEST_SUITE_P(Sentinels, SentinelBeliefs, testing::ValuesIn(beliefs),
                         [](const auto& row) { return row.param.name; });

TEST_F(SentinelsTest, WhoAsksMeanwhileSharesTheAnswer) {
  make(options());
  int answers = 0;
  for (int i = 0; i < 5; ++i) sentinels->locate([&](const Result<Host>& result) { answers += result.ok() ? 1 : 0; });
  engine.run();
  EXPECT_EQ(answers, 5);
  EXPECT_EQ(all["a"].questions(), 1);
}

TEST_F(SentinelsTest, OthersAreLearntUpToABound) {
  for (int i = 0; i < 100; ++i) all["a"].others.push_back("x" + std::to_string(i));
  make(options());
  EXPECT_EQ(located(), "one");
  for (const char* name : {"a", "b", "c"}) all[name].server.dialling = FakeServer::Dialling::refuse;
  for (int i = 0; i < 100; ++i) all["x" + std::to_string(i)].server.dialling = FakeServer::Dialling::refuse;
  all["a"].server.cut();
  EXPECT_NE(located(10s), "one");
  EXPECT_EQ(all["x12"].server.dialled, 1) << "a, b, c and thirteen others";
  EXPECT_EQ(all["x13"].server.dialled, 0);
}

TEST_F(SentinelsTest, OneThatHasTwoNamesIsOne) {
  make(options());
  all["a"].others = {"x", "y"};
  all["x"].id = all["b"].id = "the id of b";
  all["y"].id = "the id of y";
  EXPECT_EQ(located(), "one");
  const auto expect_four = [&] {
    std::multiset<std::string> names;
    sentinels->survey([&](const std::vector<SentinelReply>& replies) {
      for (const SentinelReply& each : replies) names.insert(each.sentinel.name);
    });
    engine.run();
    EXPECT_EQ(names, (std::multiset<std::string>{"a", "b", "c", "y"}));
  };
  expect_four();
  EXPECT_EQ(all["x"].server.connections.size(), 1U);
  EXPECT_EQ(located(), "one");  // by b, whose id is that of x
  EXPECT_EQ(located(), "one");
  EXPECT_TRUE(all["x"].server.connections.empty());
  expect_four();
}

TEST_F(SentinelsTest, OneThatTheUrlNamesIsNotLearnt) {
  make(options());
  all["a"].others = {"a", "b", "c"};
  EXPECT_EQ(located(), "one");
  sentinels->survey([](const std::vector<SentinelReply>& replies) { EXPECT_EQ(replies.size(), 3U); });
  engine.run();
}

TEST_F(SentinelsTest, ASentinelGetsItsOwnLogin) {
  Options seen;
  const Options given = sentinel_options(
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

TEST_F(SentinelsTest, OfThoseThatWereLearntOnlyTheOnesThatAnswerCount) {
  make(sentinel_options("redis-sentinel://a?service_name=ours"));
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

TEST_F(SentinelsTest, OfThoseThatWereLearntTheOnesThatRefuseCount) {
  make(sentinel_options("redis-sentinel://a?service_name=ours"));
  all["a"].others = {"p", "q"};
  all["a"].epoch = 5;
  EXPECT_EQ(located(), "one");
  all["a"].master = "two";
  all["a"].epoch = 0;
  for (const char* name : {"p", "q"}) all[name].refusal = "NOAUTH Authentication required.";
  engine.advance(1min);
  (void)located();
  EXPECT_NE(located(), "two");
}

// --- Replies ---------------------------------------------------------------------------------------------------------

Reply array_of(const std::vector<std::string>& words) {
  Reply reply{.type = Reply::Type::array};
  for (const std::string& word : words) reply.elements.push_back({.type = Reply::Type::string, .text = word});
  return reply;
}

TEST(SentinelReply, SaysWhatTheSentinelKnows) {
  const SentinelReply reply = read_sentinel(
      {.name = "a", .port = 1},
      {array_of({"config-epoch", "1", "num-slaves", "2", "quorum", "3", "down-after-milliseconds", "1000"}),
       array_of({"b", "2"}), Reply{.type = Reply::Type::nil}, Reply{.type = Reply::Type::nil}});
  EXPECT_EQ(reply.master, (Host{.name = "b", .port = 2}));
  EXPECT_EQ(reply.epoch, 1U);
  EXPECT_EQ(reply.replicas, 2U);
  EXPECT_EQ(reply.quorum, 3U);
  EXPECT_EQ(reply.down_after, 1s);
}

TEST(SentinelReply, NonsenseIsRefused) {
  const Reply nil{.type = Reply::Type::nil};
  const Reply good_state = array_of({"config-epoch", "1", "num-slaves", "2"});
  const Reply good_address = array_of({"10.0.0.1", "6379"});
  struct Row {
    Reply state, address;
    std::error_code code;
  };
  std::vector<Row> rows = {{good_state, good_address, {}},
                           {good_state, array_of({"::1", "1"}), {}},
                           {good_state, nil, errc::invalid_argument}};
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
    rows.push_back({good_state, array_of(words), errc::protocol});
  }
  for (const Reply& state : {array_of({"config-epoch", "1"}), array_of({"config-epoch", "-1", "num-slaves", "1"}),
                             array_of({"config-epoch", "1", "num-slaves", "x"}), array_of({"config-epoch"}), nil}) {
    rows.push_back({state, good_address, errc::protocol});
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const SentinelReply reply =
        read_sentinel({.name = "a", .port = 1}, {rows[i].state, rows[i].address, array_of({"ip", "10.0.0.1"}), nil});
    EXPECT_EQ(reply.problem ? reply.problem->code : std::error_code(), rows[i].code) << i;
    EXPECT_EQ(reply.master.has_value() && reply.epoch.has_value(), !rows[i].code) << i;
    EXPECT_TRUE(reply.others.empty() && reply.id.empty()) << i;
  }
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

}  // namespace

}  // namespace dlock::redis
