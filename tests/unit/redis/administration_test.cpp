// Listing, forgetting and breaking locks among many other keys, and what endangers locks, as the settings of servers,
// sentinels and clusters tell.
#include <gtest/gtest.h>

#include <chrono>

#include "backend_fixture.hpp"
#include "backends/redis/administration/inspection.hpp"
#include "backends/redis/cluster/cluster_findings.hpp"
#include "backends/redis/requests/keys.hpp"
#include "backends/redis/sentinel/sentinel_findings.hpp"

namespace dlock::redis {
namespace {

using Names = std::vector<std::string>;
using enum Finding::Severity;
using Severity = Finding::Severity;

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

TEST_F(RedisListTest, List_ReadsTheKeysOnce) {
  put({"{dlock:b}:dlf", "dlock:a", "a dlock:x", "{dlock:c}:dlq", "{other:dlock:}:dlf", "dlock.rw:c", "data",
       "dlock:{t}\x1f"
       "dlf"});
  const auto held = contend({.name = "d", .wait = false, .kind = LockKind::read_write});
  EXPECT_EQ(list().value(), (Names{"a", "b", "{t}"}));
  EXPECT_EQ(list(LockKind::read_write).value(), (Names{"d"})) << "c is of another type";
  EXPECT_EQ(server.calls("inspect").size(), 5U);
}

TEST_F(RedisListTest, NoPrefix_ListHasNamesWithARecord) {
  backend = make("redis://localhost?prefix=");
  put({"{b}:dlf", "data-dlf",
       "{t}\x1f"
       "dlf"});
  EXPECT_EQ(list().value(), (Names{"b", "{t}"}));
}

// A question that is left unanswered at the deadline would cost the connection, on which locks are renewed.
TEST_F(RedisListTest, TooManyKeys_FailAndKeepTheConnection) {
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

TEST_F(RedisListTest, ForgetOutOfTime_ReportsTheNamesSoFar) {
  put({"{dlock:a}:dlf"});
  scan_slowly(100ms, "{dlock:a}:dlf");
  EXPECT_EQ(forget_idle(2s).value(), (Names{"a"}));
  const auto none = forget_idle(2s);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.failure().code, errc::unavailable) << "not the same as none";
  EXPECT_EQ(server.dialled, 1);
}

TEST_F(RedisListTest, KeyOfAnotherType_IsNotBroken) {
  EXPECT_TRUE(contend({.wait = false, .kind = LockKind::semaphore, .permits = 2})->grant);
  (void)model.run({"ZADD", "dlock.sem:lock", "1", "another's data"});
  const auto refused = answer_to<bool>([&](auto done) { backend->break_lock(LockKind::semaphore, "lock", done); });
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.failure().code, errc::protocol);
  EXPECT_EQ(model.run({"ZCARD", "dlock.sem:lock"}).integer, 2);
}

// The worst of the findings of that check.
Finding worst_of(const std::vector<Finding>& findings, const std::string& check) {
  Finding worst{.severity = ok, .check = "none", .message = ""};
  for (const Finding& each : findings) {
    if (each.check == check && each.severity >= worst.severity) worst = each;
  }
  EXPECT_EQ(worst.check, check);
  return worst;
}

// Two masters, with two replicas and one.
TEST(RedisClusterFindings, Settings_AreJudged) {
  const auto range = [](std::uint16_t first, std::uint16_t last, const std::string& master) {
    return SlotRange{first, last, {.name = master, .port = 7000}};
  };
  struct Row {
    std::function<void(ClusterState&, Options&)> arrange;
    std::string check;
    Severity severity;
    std::string words;  // a part of the message
  };
  const std::vector<Row> rows = {
      {[](auto&, Options& o) { o.replicas_ack = 1; }, "cluster", ok, "2 masters"},
      {[](auto&, Options& o) { o.replicas_ack = 1; }, "failover", ok, ""},
      {[](auto&, auto&) {}, "node-timeout", ok, ""},
      {[&](ClusterState& s, auto&) { s.ranges.back() = range(8192, 16382, "b"); }, "cluster", error,
       "16383 of 16384 slots"},
      {[](ClusterState& s, auto&) { s.ranges.pop_back(); }, "cluster", error, "8192 of 16384 slots"},
      {[&](ClusterState& s, auto&) {
         s.ranges = {range(0, 99, "a"), range(100, 199, "b"), range(200, 16383, "a")};
       },
       "cluster", ok, "2 masters"},
      {[](ClusterState& s, Options& o) { s.replicas["a:7000"] = 0, o.replicas_ack = 1; }, "failover", warning,
       "a:7000"},
      {[](auto&, auto&) {}, "failover", note, "replicas_ack=1 "},  // as many as every master has
      {[](ClusterState& s, Options& o) { s.replicas["b:7000"] = 2, o.replicas_ack = 1; }, "failover", note,
       "replicas_ack=2 "},
      {[](ClusterState& s, Options& o) { s.replicas["b:7000"] = 2, o.replicas_ack = 2; }, "failover", ok, ""},
      {[](ClusterState& s, auto&) { s.replicas.clear(); }, "failover", note, "INFO"},
      {[](ClusterState& s, auto&) { s.node_timeout = 30s; }, "node-timeout", ok, ""},
      {[](ClusterState& s, auto&) { s.node_timeout = 30'001ms; }, "node-timeout", note, "30s"},
      {[](ClusterState& s, auto&) { s.node_timeout = 30'001ms; }, "node-timeout", note, "cluster-node-timeout"},
      {[](ClusterState& s, auto&) { s.node_timeout.reset(); }, "node-timeout", note, "CONFIG GET"},
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Options options;
    options.lease = 30s;
    ClusterState state = {.ranges = {range(0, 8191, "a"), range(8192, 16383, "b")},
                          .replicas = {{"a:7000", 2}, {"b:7000", 1}},
                          .node_timeout = 15s};
    rows[i].arrange(state, options);
    const Finding finding = worst_of(judge_cluster(state, options), rows[i].check);
    EXPECT_EQ(finding.severity, rows[i].severity) << i << ": " << finding.message;
    EXPECT_NE(finding.message.find(rows[i].words), std::string::npos) << i << ": " << finding.message;
  }
}

TEST(RedisSentinelFindings, SentinelsAndFailovers_AreJudged) {
  struct Row {
    std::string masters;  // as each sentinel names it; '-': no answer
    std::uint32_t replicas;
    std::optional<std::uint32_t> min_replicas;
    std::string check;
    Severity severity;
    std::string words;  // a part of the message
    std::string parameters{};
    std::chrono::milliseconds down_after = 1s;
  };
  for (const Row& row : {
           Row{"mmm", 2, 2, "sentinels", ok, "3 of 3 sentinels answer; the master of ours is m:6379, quorum 2"},
           Row{"mm-", 2, 2, "sentinels", warning, "2 of 3 sentinels answer; s2:26379: no connection; the master"},
           Row{"-m-", 2, 2, "sentinels", error, "s0:26379: no connection, s2:26379: no connection: no failover can"},
           Row{"---", 2, 2, "sentinels", error, "0 of 3 sentinels answer"},
           Row{"mm--", 2, 2, "sentinels", error, "no failover can happen"},
           Row{"mmm---", 2, 2, "sentinels", error, "no failover can happen"},
           Row{"-mnm", 2, 2, "sentinels", warning, "they disagree"},
           Row{"mnm", 2, 2, "sentinels", warning, "they disagree"},
           Row{"m", 2, 2, "sentinels", warning, "fewer than three"},
           Row{"mmm", 0, 0, "failover", error, "no replica"},
           Row{"mmm", 2, 1, "failover", warning, "min-replicas-to-write is 1, with 2 replicas"},
           Row{"mmm", 2, std::nullopt, "failover", note, "CONFIG GET"},
           Row{"mmm", 2, 2, "failover", ok, "have not answered for 3 seconds"},
           Row{"mmm", 2, 0, "failover", ok, "all replicas (2)", "&replicas_ack=all"},
           Row{"mmm", 2, 2, "down-after", note, "30s", "", 30s},
           Row{"mmm", 2, 2, "down-after", ok, "10s", "", 10s},
       }) {
    std::vector<SentinelReply> replies;
    for (const char master : row.masters) {
      const common::Host sentinel{.name = "s" + std::to_string(replies.size()), .port = 26379};
      if (master == '-') {
        replies.push_back({.sentinel = sentinel, .problem = Failure{errc::unavailable, "no connection"}});
        continue;
      }
      replies.push_back({.sentinel = sentinel,
                         .master = common::Host{.name = std::string(1, master), .port = 6379},
                         .epoch = 0,
                         .replicas = row.replicas,
                         .quorum = static_cast<std::uint32_t>(row.masters.size() / 2 + 1),
                         .down_after = row.down_after});
    }
    Reply config;
    if (row.min_replicas) {
      config = parsed("*4|" + bulk("min-replicas-to-write") + bulk(std::to_string(*row.min_replicas)) +
                      bulk("min-replicas-max-lag") + bulk("3"));
    }
    const Options options = options_for("redis-sentinel://a?service_name=ours" + row.parameters);
    const Finding finding = worst_of(judge_sentinels(replies, options, std::nullopt, config), row.check);
    EXPECT_EQ(finding.severity, row.severity) << row.masters << ": " << finding.message;
    EXPECT_NE(finding.message.find(row.words), std::string::npos) << row.masters << ": " << finding.message;
  }
}

TEST(RedisSentinelFindings, Encryption_IsJudged) {
  const common::Host local{.name = "localhost", .port = 6379};
  const common::Host remote{.name = "db1", .port = 6379};
  struct Row {
    std::string url;
    std::optional<common::Host> master;
    std::vector<Severity> severities;
    std::string last;  // how the last message begins
  };
  for (const Row& row : {
           Row{"rediss-sentinel://s1", remote, {ok}, "TLS"},
           Row{"rediss-sentinel://s1", std::nullopt, {}, ""},
           Row{"redis-sentinel://localhost,s1,127.0.0.1", remote, {warning, warning}, "to the sentinels: "},
           Row{"redis-sentinel://localhost", local, {ok, ok}, "to the sentinels: "},
           Row{"redis-sentinel://localhost", remote, {warning, ok}, "to the sentinels: "},
           Row{"redis-sentinel://s1", local, {ok, warning}, "to the sentinels: "},
           Row{"rediss-sentinel://s1?sentinel_tls=off", remote, {ok, warning}, "to the sentinels: "},
           Row{"redis-sentinel://s1?sentinel_tls=on", remote, {warning, ok}, "to the sentinels: TLS"},
       }) {
    const std::string separator = row.url.find('?') == std::string::npos ? "?" : "&";
    const Options options = options_for(row.url + separator + "service_name=ours");
    std::vector<Severity> severities;
    std::string last;
    for (const Finding& each : judge_sentinels({}, options, row.master, {})) {
      if (each.check != "encryption") continue;
      severities.push_back(each.severity);
      last = each.message;
    }
    EXPECT_EQ(severities, row.severities) << row.url;
    EXPECT_TRUE(last.starts_with(row.last)) << row.url << ": " << last;
  }
}

TEST_F(RedisListTest, Forget_RemovesIdleNamesPageByPage) {
  put({"{dlock:b}:dlf", "dlock:dlf", "{dlock:a}:dlf", "{other:dlock:}:dlf", "data"});
  const std::string now = std::to_string(model.now_ms() * 1000);
  (void)model.run({"SET", "{dlock:young}:dlf", now + " c:1 host:1:x"});
  EXPECT_EQ(forget_idle().value(), (Names{"a", "b"}));
  EXPECT_EQ(model.run({"EXISTS", "{dlock:young}:dlf", "dlock:dlf", "{other:dlock:}:dlf", "data"}).integer, 4);
}

}  // namespace
}  // namespace dlock::redis
