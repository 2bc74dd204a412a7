// Redis's protocol: commands and replies in bytes, errors, redirections, the fields of INFO, and the replies of the
// scripts. In bytes of replies '|' is the end of a line.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <tuple>

#include "backends/redis/connection/command.hpp"
#include "backends/redis/connection/redirection.hpp"
#include "backends/redis/connection/server_error.hpp"
#include "backends/redis/connection/server_info.hpp"
#include "backends/redis/requests/answers.hpp"
#include "fake_server.hpp"
#include "tests/simulation/redis/redis_model.hpp"

namespace dlock::redis {
namespace {

using namespace std::chrono_literals;
using Was = ReleaseAnswer::Was;

TEST(RedisCommand, Words_AreSentByteForByte) {
  Command command{"SET", "key"};
  command.add("");
  EXPECT_EQ(command.bytes(), "*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$0\r\n\r\n");
  const std::string word("a\r\n\0$", 5);
  EXPECT_EQ(Command{word}.bytes(), "*1\r\n$5\r\n" + word + "\r\n");
  const std::string long_word(70'000, 'x');
  EXPECT_EQ(Command{long_word}.bytes(), "*1\r\n$70000\r\n" + long_word + "\r\n");
  std::string out = "+";
  Command{"1", "key"}.append_to(out, {"EVALSHA", "0123"});
  EXPECT_EQ(out, "+*4\r\n$7\r\nEVALSHA\r\n$4\r\n0123\r\n$1\r\n1\r\n$3\r\nkey\r\n");
}

std::string repeated(std::string_view text, std::size_t times) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) out += text;
  return out;
}

// Feeds in pieces of that size and returns the replies, up to a problem.
std::vector<Reply> read_all(ReplyReader& reader, std::string_view bytes, std::size_t piece) {
  std::vector<Reply> out;
  while (!bytes.empty()) {
    reader.feed(bytes.substr(0, piece));
    bytes.remove_prefix(std::min(piece, bytes.size()));
    while (auto reply = reader.next()) out.push_back(*std::move(reply));
  }
  return out;
}

TEST(ReplyReader, EachType_IsReadFromPieces) {
  const std::string bytes =
      "+OK\r\n-ERR no\r\n:-42\r\n$5\r\na\r\nbc\r\n$-1\r\n$0\r\n\r\n*3\r\n:1\r\n*2\r\n+x\r\n$1\r\ny\r\n$-1\r\n*0\r\n";
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    ReplyReader reader;
    std::string read;
    for (const Reply& reply : read_all(reader, bytes, piece)) read += bytes_of(reply);
    EXPECT_EQ(read, bytes) << "in pieces of " << piece << ": " << reader.problem();
  }
  EXPECT_TRUE(parsed("*-1|").is(Reply::Type::nil));
}

TEST(ReplyReader, HostileBytes_AreRefused) {
  for (const auto& [name, bytes] : std::vector<std::pair<std::string, std::string>>{
           {"http", "HTTP/1.1 400 Bad Request\r\n\r\n"},
           {"a type of a later protocol", "%1\r\n+a\r\n+b\r\n"},
           {"bulk beyond the limit", "$4194305\r\n"},
           {"bulk beyond 64 bits", "$99999999999999999999999\r\n"},
           {"bulk of the largest number", "$9223372036854775807\r\n"},
           {"negative bulk", "$-7\r\nabc\r\n"},
           {"bulk in words", "$five\r\nhello\r\n"},
           {"array beyond the limit", "*65537\r\n"},
           {"array beyond 32 bits", "*4294967296\r\n"},
           {"negative array", "*-5\r\n"},
           {"number in words", ":seven\r\n"},
           {"nesting", repeated("*1\r\n", 100)},
           {"wide nesting", repeated("*1024\r\n", 1000)},
           {"inline without end", "+" + std::string(10'000, 'x')},
           {"number without end", ":" + std::string(10'000, '1')},
           {"length without end", "$" + std::string(10'000, '1')},
           {"error without end", "-" + std::string(10'000, 'x')},
       }) {
    for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{16384}}) {
      ReplyReader reader({.line = 4096});
      EXPECT_TRUE(read_all(reader, bytes, piece).empty()) << name;
      EXPECT_FALSE(reader.problem().empty()) << name << " in pieces of " << piece;
      EXPECT_TRUE(read_all(reader, "+OK\r\n", 16).empty()) << "it is of no further use";
    }
  }
}

TEST(ReplyReader, Limits_AreOfOneReply) {
  const ReplyLimits limits{.bytes = 1000, .elements = 10, .line = 100};
  const std::string half = "$500\r\n" + std::string(500, 'x') + "\r\n";
  ReplyReader reader(limits);
  EXPECT_EQ(read_all(reader, repeated(half, 50), 64).size(), 50U);
  EXPECT_EQ(read_all(reader, "*2\r\n" + half + half, 64).size(), 1U);
  EXPECT_EQ(read_all(reader, repeated("*10\r\n" + repeated(":1\r\n", 10), 5), 64).size(), 5U);
  for (const std::string& too_much : {"*3\r\n" + half + half + "$1\r\nx\r\n", std::string("*5\r\n*6\r\n")}) {
    ReplyReader other(limits);
    EXPECT_TRUE(read_all(other, too_much, 64).empty());
    EXPECT_FALSE(other.problem().empty());
  }
}

// As Redis 7.0 words them, or their beginnings, unless noted.
TEST(ServerError, Text_IsClassifiedByItsCode) {
  using enum ServerError;
  struct Row {
    const char* text;
    ServerError error;
    errc code;
  };
  for (const Row& row : {
           Row{"NOSCRIPT No matching script. Please use EVAL.", no_script, errc::unavailable},
           Row{"LOADING Redis is loading the dataset in memory", loading, errc::unavailable},
           Row{"BUSY Redis is busy running a script. You can only call SCRIPT KILL", busy, errc::unavailable},
           Row{"READONLY You can't write against a read only replica.", read_only, errc::unavailable},
           Row{"READONLY You can't write. script: 5a1c, on @user_script:4.", read_only, errc::unavailable},
           // 6.2
           Row{"ERR Error running script (call to f_5a1c): @user_script:4: -READONLY You", read_only,
               errc::unavailable},
           Row{"MASTERDOWN Link with MASTER is down and replica-serve-stale", master_down, errc::unavailable},
           Row{"NOREPLICAS Not enough good replicas to write.", no_replicas, errc::unavailable},
           Row{"OOM command not allowed when used memory > 'maxmemory'.", out_of_memory, errc::unavailable},
           // 6.2
           Row{"ERR Error running script: 1: -OOM command not allowed when used memory", out_of_memory,
               errc::unavailable},
           Row{"MISCONF Redis is configured to save RDB snapshots, but it's", misconfigured, errc::unavailable},
           Row{"ERR max number of clients reached", too_many_clients, errc::unavailable},
           Row{"ERR max number of clients + cluster connections reached", too_many_clients, errc::unavailable},
           Row{"UNBLOCKED force unblock from blocking operation, instance", interrupted, errc::unavailable},
           Row{"ERR WAIT cannot be used with replica instances. Please also", read_only, errc::unavailable},
           Row{"REDIRECT 127.0.0.1:6380", read_only, errc::unavailable},  // Valkey
           Row{"NOAUTH Authentication required.", no_auth, errc::access_denied},
           Row{"WRONGPASS invalid username-password pair or user is disabled.", wrong_password, errc::access_denied},
           Row{"ERR AUTH <password> called without any password configured", wrong_password, errc::access_denied},
           Row{"ERR invalid password", wrong_password, errc::access_denied},  // 5.0
           Row{"NOPERM this user has no permissions to run the 'evalsha' command", no_permission, errc::access_denied},
           Row{"ERR The user executing the script can't run this command or", no_permission, errc::access_denied},
           Row{"ERR ACL failure in script: User locker has no permissions", no_permission, errc::access_denied},  // 7.2
           Row{"DENIED Redis is running in protected mode because protected", no_permission, errc::access_denied},
           Row{"WRONGTYPE Operation against a key holding the wrong kind of value", wrong_type, errc::protocol},
           Row{"MOVED 3999 127.0.0.1:6381", moved, errc::unsupported},
           Row{"ASK 3999 127.0.0.1:6381", ask, errc::unsupported},
           Row{"CLUSTERDOWN Hash slot not served", cluster_down, errc::unsupported},
           Row{"CROSSSLOT Keys in request don't hash to the same slot", cluster, errc::unsupported},
           Row{"TRYAGAIN Multiple keys request during rehashing of slot", try_again, errc::unsupported},
           Row{"ERR SELECT is not allowed in cluster mode", cluster, errc::unsupported},
           Row{"ERR This instance has cluster support disabled", no_cluster, errc::unsupported},
           Row{"ERR DB index is out of range", no_such_db, errc::invalid_argument},
           Row{"ERR unknown command 'EVALSHA', with args beginning with: 'x' ", unknown_command, errc::unsupported},
           Row{"ERR something new", other, errc::ambiguous},
           Row{"BUSYGROUP Consumer Group name already exists", other, errc::ambiguous},
           Row{"", other, errc::ambiguous},
       }) {
    SCOPED_TRACE(row.text);
    EXPECT_EQ(classify(row.text), row.error);
    EXPECT_EQ(to_failure(row.text).code, row.code);
    EXPECT_EQ(suggests_other_server(row.error), row.error == read_only || row.error == master_down);
  }
}

TEST(ServerError, Failure_SaysWhatToDo) {
  const std::string unknown = "ERR unknown command";
  std::map<std::string, std::string> beginnings = {
      {unknown + " 'SENTINEL'", "this server is not a sentinel: ERR unknown"},
      {unknown + " 'SSUBSCRIBE'", "Redis: ERR unknown command 'SSUBSCRIBE'"},
      {unknown, "Redis: ERR unknown command"},
      {unknown + " '", "Redis: ERR unknown command '"}};
  for (const char* of_every_redis :
       {" 'EVAL', with", " 'EVALSHA', with", " 'SCAN', with", " 'CLUSTER', with", " `EVAL`"}) {
    beginnings[unknown + of_every_redis] = "perhaps this is a sentinel; use redis-sentinel://: ERR unknown";
  }
  for (const auto& [text, begins] : beginnings) {
    EXPECT_TRUE(to_failure(text).detail.starts_with(begins)) << to_failure(text).detail;
  }
  EXPECT_NE(to_failure("MOVED 3999 127.0.0.1:6381").detail.find("redis-cluster://"), std::string::npos);
}

TEST(ServerError, LongText_IsShortenedAndPrintable) {
  const std::string detail = to_failure("ERR \x1b[2J" + std::string(10'000, 'x')).detail;
  EXPECT_EQ(detail.find('\x1b'), std::string::npos);
  EXPECT_LT(detail.size(), 500U);
}

const common::Host asked{.name = "asked", .port = 6379};

TEST(RedisRedirection, Error_NamesTheSlotAndTheNode) {
  for (const auto& [error, expected] : {std::pair("MOVED 3999 127.0.0.1:6381", "MOVED 3999 127.0.0.1:6381"),
                                        {"ASK 16383 a-host.example:65535", "ASK 16383 a-host.example:65535"},
                                        {"MOVED 0 ::1:7000", "MOVED 0 [::1]:7000"},  // there are no brackets
                                        {"MOVED 1 :7000", "MOVED 1 asked:7000"},
                                        {"MOVED 1 ?:7000", "MOVED 1 asked:7000"}}) {
    const auto to = read_redirection(error, asked);
    ASSERT_TRUE(to) << error;
    EXPECT_EQ((to->asks ? "ASK " : "MOVED ") + std::to_string(to->slot) + " " + to->to.to_string(), expected);
  }
}

TEST(RedisRedirection, SenselessError_IsNone) {
  std::istringstream errors(
      ";MOVED;MOVED ;MOVED 1;MOVED 1 ;MOVED 1 one;MOVED 1 one:;MOVED 1 :;MOVED one:7000;MOVED one:7000 1;"
      "MOVED  1 one:7000;MOVED 1  one:7000;MOVED 16384 one:7000;MOVED 65536 one:7000;MOVED -1 one:7000;"
      "MOVED +1 one:7000;MOVED 1x one:7000;MOVED 99999999999999999999 one:7000;MOVED 1 one:0;"
      "MOVED 1 one:65536;MOVED 1 one:-1;MOVED 1 one:7000x;MOVED 1 [::1]:7000;MOVED 1 o\tne:7000;"
      "MOVED 1 one\r\n:7000;MOVED 1 \x1b[2J:7000;MOVED 1 one,two:7000;MOVED 1 /tmp/socket:7000;"
      "MOVEDX 1 one:7000;moved 1 one:7000;-MOVED 1 one:7000;ASKING 1 one:7000;ASK;"
      "TRYAGAIN Multiple keys request during rehashing of slot;CLUSTERDOWN Hash slot not served;"
      "ERR MOVED 1 one:7000");
  for (std::string error; std::getline(errors, error, ';');) {
    EXPECT_FALSE(read_redirection(error, asked)) << error;
  }
}

TEST(ServerInfo, Fields_AreRead) {
  const std::string info = "# Memory\r\nmaxmemory:100\r\nmaxmemory_policy:allkeys-lru\r\nbad\r\nempty:\r\n";
  EXPECT_EQ(info_field(info, "maxmemory_policy"), "allkeys-lru");
  EXPECT_EQ(info_number(info, "maxmemory"), 100U);
  EXPECT_EQ(info_field(info, "max"), std::nullopt);
  EXPECT_EQ(info_field(info, "bad"), std::nullopt);
  EXPECT_EQ(info_field(info, "empty"), "");
  EXPECT_EQ(info_number(info, "maxmemory_policy"), std::nullopt);
}

TEST(ServerInfo, LimitAndPolicy_MeanEviction) {
  EXPECT_TRUE(eviction_danger("maxmemory:100\r\nmaxmemory_policy:volatile-lru\r\n"));
  EXPECT_FALSE(eviction_danger("maxmemory:0\r\nmaxmemory_policy:volatile-lru\r\n"));
  EXPECT_FALSE(eviction_danger("maxmemory:100\r\nmaxmemory_policy:noeviction\r\n"));
  EXPECT_FALSE(eviction_danger(""));
}

auto fields_of(const AcquireAnswer& it) {
  return std::tuple(it.granted, it.token, it.free_in, it.rank, it.joined, it.ticket, it.more, it.other_permits);
}

TEST(AcquireAnswer, Reply_IsRead) {
  constexpr auto longest_in_ms = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::nanoseconds::max());
  struct Row {
    const char* bytes;
    AcquireAnswer answer;
  };
  for (const Row& row : {
           Row{"$16|1795243190100435|", {.granted = true, .token = FencingToken(1795243190100435)}},
           Row{"$19|9223372036854775807|", {.granted = true, .token = FencingToken(9223372036854775807U)}},
           Row{"*5|:0|:250|:3|:0|:8|", {.free_in = 250ms, .rank = 3, .ticket = 8}},
           Row{"*5|:0|:0|:0|:1|:0|", {.free_in = 0ms, .rank = 0, .joined = true}},
           Row{"*5|:0|:-1|:-1|:0|:8|", {.ticket = 8}},  // no end, no place
           Row{"*5|:0|:-2|:9|:1|:8|", {.free_in = 0ms, .rank = 9, .joined = true, .ticket = 8, .more = true}},
           Row{"*5|:0|:9223372036854775807|:9223372036854775807|:0|:8|",
               {.free_in = longest_in_ms, .rank = 9223372036854775807U, .ticket = 8}},
           Row{"*2|:2|:2147483647|", {.other_permits = 2147483647U}},
           Row{"*2|:2|:1|", {.other_permits = 1}},
       }) {
    const auto answer = read_acquire(parsed(row.bytes));
    ASSERT_TRUE(answer.ok()) << row.bytes;
    EXPECT_EQ(fields_of(answer.value()), fields_of(row.answer)) << row.bytes;
  }
}

TEST(ReleaseAnswer, Reply_IsRead) {
  for (const auto& [bytes, was, may_publish, more] : {std::tuple(":1|", Was::ours, true, false),
                                                      {"*3|:1|:0|:0|", Was::ours, false, false},
                                                      {"*3|:0|:1|:1|", Was::somebody_elses, true, true},
                                                      {"*3|:-1|:1|:0|", Was::free, true, false}}) {
    const auto answer = read_release(parsed(bytes));
    ASSERT_TRUE(answer.ok()) << bytes;
    EXPECT_EQ(answer.value().was, was) << bytes;
    EXPECT_EQ(answer.value().may_publish, may_publish) << bytes;
    EXPECT_EQ(answer.value().more, more) << bytes;
  }
}

TEST(InspectAnswer, OneHolder_IsRead) {
  using enum LockKind;
  struct Row {
    const char* bytes;
    LockKind kind;
    bool held;
    std::string holder;
    decltype(LockInfo::token) token;
    decltype(LockInfo::remaining) remaining = {};
    std::uint64_t waiters = 0;
    decltype(LockInfo::value) value = {};
  };
  const FencingToken seven(7);
  const FencingToken seventeen(17);
  for (const Row& row : {
           Row{"*4|$3|c:1|:1500|$24|17 c:1 host:7:my program|:2|", lock, true, "host:7:my program", seventeen, 1500ms,
               2},
           // Free, and held by a program that is not dlock: the last holder is not named.
           Row{"*4|$-1|:-2|$12|17 c:1 host:|:0|", lock, false, "", seventeen},
           Row{"*4|$7|foreign|:-1|$12|17 c:1 host:|:0|", lock, true, "", seventeen},
           Row{"*4|$1|v|:100|$16|7 v h:1:x\n10.0.0|:0|", election, true, "h:1:x", seven, 100ms, 0, "10.0.0"},
           Row{"*4|$1|v|:0|$-1|:0|", lock, true, "", {}, 0ms},
           // Its leader has not confirmed yet.
           Row{"*4|$1|w|:100|$16|7 v h:1:x\n10.0.0|:0|", election, false, "", seven},
       }) {
    SCOPED_TRACE(row.bytes);
    const auto info = read_inspect(parsed(row.bytes), "x", row.kind);
    ASSERT_TRUE(info.ok()) << info.failure().detail;
    const LockInfo& it = info.value();
    EXPECT_EQ(std::tie(it.kind, it.held, it.holder, it.token, it.remaining, it.value),
              std::tie(row.kind, row.held, row.holder, row.token, row.remaining, row.value));
    EXPECT_EQ(it.name, "x");
    EXPECT_EQ(it.waiters, row.waiters);
  }
}

TEST(InspectAnswer, SeveralHolders_AreReadWithTheLongestLease) {
  const auto reply = parsed("*4|:0|$2|12|:3|*6|:100|:1|$8|11 a b:c|:300|:1|$0||");
  const auto info = read_inspect(reply, "name", LockKind::read_write);
  ASSERT_TRUE(info.ok());
  EXPECT_TRUE(info.value().held);
  EXPECT_EQ(info.value().token, FencingToken(12));
  EXPECT_EQ(info.value().waiters, 3U);
  EXPECT_EQ(info.value().remaining, 300ms);
  EXPECT_EQ(info.value().holder, "") << "it has not confirmed its grant yet";
  ASSERT_EQ(info.value().holders.size(), 2U);
  const HolderInfo& first = info.value().holders[0];
  EXPECT_EQ(std::tuple(first.holder, first.token, first.mode, first.remaining),
            std::tuple("a b:c", FencingToken(11), Mode::shared, std::optional<std::chrono::nanoseconds>(100ms)));
  EXPECT_EQ(read_inspect(reply, "name", LockKind::semaphore).failure().code, errc::protocol) << "another kind";

  const auto turned =
      read_inspect(parsed("*4|:0|$2|12|:3|*6|:300|:1|$3|9 x|:100|:1|$0||"), "name", LockKind::read_write);
  EXPECT_EQ(turned.value().holder, "x") << "the lease that ends last, wherever it stands";
}

// Shows: nothing-guessed
TEST(Answers, OtherShapes_AreRefused) {
  const auto refuses = [](const auto& read, const std::string& shapes) {
    std::istringstream lines(shapes);
    for (std::string bytes; std::getline(lines >> std::ws, bytes, ';');) {
      const auto answer = read(parsed(bytes));
      ASSERT_FALSE(answer.ok()) << bytes;
      EXPECT_EQ(answer.failure().code, errc::protocol) << bytes;
    }
  };
  refuses(read_acquire, R"(
      +OK|;:1|;$-1|;*-1|;*0|;*1|:1|;*2|:1|$1|7|;*2|:1|:7|;$1|0|;$2|-5|;$0||;$2|7x|;$19|9223372036854775808|;
      *3|:1|$1|7|:0|;*2|:2|$1|7|;*5|:0|:-3|:0|:0|:8|;*5|:0|:1|:-2|:0|:8|;*5|:0|$1|1|:0|:0|:8|;
      *5|:0|:1|$1|0|:0|:8|;*5|:0|:1|:0|:2|:8|;*5|:0|:1|:0|$1|0|:8|;*5|:0|:1|:0|:0|:-8|;*5|:0|:1|:0|:0|$1|8|;
      *5|:1|:1|:0|:0|:8|;*5|$1|0|:1|:0|:0|:8|;*4|:0|:1|:0|:0|;*3|:0|:1|:0|;*2|:0|:1|;*2|:2|:0|;*2|:2|:-1|;
      *2|:2|:2147483648|;*2|:2|$1|1|;)");
  refuses(read_renew, "+OK|;:2|;:-1|;$1|1|;*0|;");
  refuses(read_forget, "+OK|;:2|;:-1|;$1|1|;*0|;");
  refuses(
      read_release,
      ":0|;:2|;*1|:1|;*2|:1|:1|;*3|:2|:1|:0|;*3|:1|:2|:0|;*3|:1|:1|:2|;*3|:1|$1|1|:0|;*3|$1|1|:1|:0|;*3|:1|:1|$1|0|;");
  refuses([](const Reply& reply) { return read_inspect(reply, "x"); },
          "*3|$-1|:-2|$-1|;*4|:1|:-2|$-1|:0|;*4|$-1|:-3|$-1|:0|;*4|$-1|:-2|$3|7 x|:0|;*4|$-1|:-2|$-1|:-1|;"
          "*4|$-1|:-2|$-1|$1|0|;*4|$-1|$2|-2|$-1|:0|;*4|$-1|:-2|:7|:0|;");
  refuses([](const Reply& reply) { return read_inspect(reply, "x", LockKind::read_write); },
          "*3|:0|$-1|:0|;*4|:-1|$-1|:0|*0|;*4|$1|0|$-1|:0|*0|;*4|:0|:7|:0|*0|;*4|:0|$1|x|:0|*0|;*4|:0|$-1|:-1|*0|;"
          "*4|:0|$-1|$1|0|*0|;*4|:0|$-1|:0|:0|;*4|:0|$-1|:0|*1|:1|;*4|:0|$-1|:0|*3|:0|:1|$0||;"
          "*4|:0|$-1|:0|*3|:1|:2|$0||;*4|:0|$-1|:0|*3|:1|:1|:0|;");
  EXPECT_EQ(read_acquire(parsed("-LOADING later|")).failure().code, errc::unavailable);
  EXPECT_EQ(read_renew(parsed("-NOPERM no|")).failure().code, errc::access_denied);
}

}  // namespace
}  // namespace dlock::redis
