// Servers that are not Redis, are broken, or mean harm. Whatever they say: no crash, an error by the deadline, bounded
// memory.
#include <algorithm>
#include <vector>

#include "redis/redis_test.hpp"
#include "redis/scripted_redis.hpp"
#include "tests/support/hostile_server.hpp"

namespace dlock::test {

namespace {

using Answer = ScriptedServer::Answer;

// The most that a client may take in from a connection before it gives up; the buffers of the kernel are part of it.
constexpr std::uint64_t most_accepted = 64U << 20U;

std::string repeated(const std::string& text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

std::string bulk(const std::string& text) {
  return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
}

// Says yes to everything until a script is to be run, and then what it was told to say.
ScriptedServer::Script polite_until_asked(Answer answer) {
  return answer_commands([answer = std::move(answer)](const RedisCommand& command) {
    return command.front().starts_with("EVAL") ? answer : Answer{.bytes = "+OK\r\n"};
  });
}

std::string url_of(const ScriptedServer& server, const std::string& parameters = {}) {
  return "redis://127.0.0.1:" + std::to_string(server.port()) + (parameters.empty() ? "" : "?" + parameters);
}

void expect_errors_in_time(const ScriptedServer& server, const std::string& strategy) {
  const Client client = connect(url_of(server, "strategy=" + strategy), impatient());
  DistributedLock lock = client.lock("hostile");
  const auto start = std::chrono::steady_clock::now();
  std::error_code error;
  EXPECT_FALSE(lock.try_acquire({}, error).has_value());
  EXPECT_TRUE(is_error_of_hostile_server(error)) << "try: " << error.message();
  (void)lock.acquire({.wait = 400ms}, error);
  EXPECT_TRUE(is_error_of_hostile_server(error)) << "wait: " << error.message();
  EXPECT_THROW((void)client.inspect("hostile"), Error);
  EXPECT_THROW((void)client.list(), Error);
  EXPECT_THROW((void)client.break_lock("hostile"), Error);
  const auto findings = client.diagnose();
  EXPECT_TRUE(std::any_of(findings.begin(), findings.end(),
                          [](const Finding& each) { return each.severity != Finding::Severity::ok; }));
  EXPECT_LT(std::chrono::steady_clock::now() - start, 3 * far_too_long);
  const auto counters = server.counters();
  EXPECT_LT(counters.sent, most_accepted * std::max<std::size_t>(counters.accepted, 1));
}

class HostileServerTest : public ::testing::TestWithParam<Hostility> {};

TEST_P(HostileServerTest, EndsAsAnErrorByTheDeadline) {
  const ScriptedServer server(rude(GetParam().answer));
  expect_errors_in_time(server, "queue");
}

TEST_P(HostileServerTest, EndsAsAnErrorByTheDeadlineAfterAnOrderlyStart) {
  const ScriptedServer server(polite_until_asked(GetParam().answer));
  for (const char* strategy : {"queue", "broadcast", "poll"}) {
    const Client client = connect(url_of(server, std::string("strategy=") + strategy), impatient());
    DistributedLock lock = client.lock("hostile");
    const auto start = std::chrono::steady_clock::now();
    std::error_code error;
    EXPECT_FALSE(lock.try_acquire({}, error).has_value());
    EXPECT_TRUE(error) << "whatever this is, it is not \"busy\"";
    (void)lock.acquire({.wait = 400ms}, error);
    EXPECT_TRUE(error);
    EXPECT_LT(std::chrono::steady_clock::now() - start, far_too_long);
  }
  const auto counters = server.counters();
  EXPECT_LT(counters.sent, most_accepted * std::max<std::size_t>(counters.accepted, 1));
}

const Hostility hostilities[] = {
    {"http", {.bytes = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", .close = true}},
    {"http_open", {.bytes = "HTTP/1.1 400 Bad Request\r\nContent-Length: 1000000\r\n\r\n"}},
    {"garbage", {.bytes = std::string("\x00\xff\x15\x03\x01\x00\x02\x02\x28 what?\r\n", 18)}},
    {"endless_garbage", {.repeat = std::string("\x7f\x00\xfe", 3)}},
    {"endless_inline", {.bytes = "+", .repeat = "never ends "}},
    {"endless_error", {.bytes = "-", .repeat = "ERR never ends "}},
    {"endless_number", {.bytes = ":", .repeat = "1"}},
    {"endless_replies", {.repeat = "+OK\r\n"}},
    {"endless_arrays", {.repeat = "*2\r\n:7\r\n$1\r\n1\r\n"}},
    {"giant_bulk", {.bytes = "$536870912\r\n", .repeat = "x"}},
    {"giant_bulk_header", {.bytes = "$9223372036854775807\r\n", .repeat = "x"}},
    {"overflowing_bulk", {.bytes = "$99999999999999999999999999\r\n", .repeat = "x"}},
    {"negative_bulk", {.bytes = "$-7\r\nabc\r\n"}},
    {"bulk_without_end", {.bytes = "$5\r\nhello, no line end here\r\n"}},
    {"giant_array", {.bytes = "*4294967295\r\n", .repeat = ":1\r\n"}},
    {"overflowing_array", {.bytes = "*99999999999999999999\r\n"}},
    {"negative_array", {.bytes = "*-5\r\n"}},
    {"nested_arrays", {.bytes = repeated("*1\r\n", 100'000)}},
    {"endless_nesting", {.repeat = "*1\r\n"}},
    {"wide_nesting", {.repeat = "*1024\r\n"}},
    {"unknown_type", {.bytes = "%1\r\n+key\r\n+value\r\n"}},
    {"half_a_reply", {.bytes = "*2\r\n:1\r\n$16\r\n17"}},
    {"half_a_reply_and_end", {.bytes = "*2\r\n:1\r\n$16\r\n17", .close = true}},
    {"silence", {}},
    {"end", {.close = true}},
};

INSTANTIATE_TEST_SUITE_P(, HostileServerTest, ::testing::ValuesIn(hostilities),
                         [](const auto& test) { return std::string(test.param.name); });

// Well-formed replies that make no sense as an answer to an acquire.
class SenselessAnswerTest : public ::testing::TestWithParam<Hostility> {};

TEST_P(SenselessAnswerTest, IsAProtocolErrorAndNeverAGrant) {
  for (const char* strategy : {"queue", "broadcast", "poll"}) {
    const ScriptedServer server(polite_until_asked(GetParam().answer));
    const Client client = connect(url_of(server, std::string("strategy=") + strategy), impatient());
    DistributedLock lock = client.lock("hostile");
    std::error_code error;
    EXPECT_FALSE(lock.try_acquire({}, error).has_value());
    EXPECT_EQ(error, errc::protocol) << error.message();
    (void)lock.acquire({.wait = 5s}, error);
    EXPECT_EQ(error, errc::protocol) << error.message();
  }
}

const Hostility senseless[] = {
    {"status", {.bytes = "+OK\r\n"}},
    {"integer", {.bytes = ":1\r\n"}},
    {"text", {.bytes = bulk("granted")}},
    {"nil", {.bytes = "$-1\r\n"}},
    {"nil_array", {.bytes = "*-1\r\n"}},
    {"empty_array", {.bytes = "*0\r\n"}},
    {"grant_without_token", {.bytes = "*1\r\n:1\r\n"}},
    {"token_of_zero", {.bytes = "*2\r\n:1\r\n" + bulk("0")}},
    {"negative_token", {.bytes = "*2\r\n:1\r\n" + bulk("-5")}},
    {"token_beyond_63_bits", {.bytes = "*2\r\n:1\r\n" + bulk("9223372036854775808")}},
    {"token_beyond_64_bits", {.bytes = "*2\r\n:1\r\n" + bulk("184467440737095516160")}},
    {"token_in_words", {.bytes = "*2\r\n:1\r\n" + bulk("seventeen")}},
    {"token_and_more", {.bytes = "*2\r\n:1\r\n" + bulk("17x")}},
    {"empty_token", {.bytes = "*2\r\n:1\r\n" + bulk("")}},
    {"nil_token", {.bytes = "*2\r\n:1\r\n$-1\r\n"}},
    {"nested_token", {.bytes = "*2\r\n:1\r\n*1\r\n" + bulk("17")}},
    {"unknown_verdict", {.bytes = "*2\r\n:7\r\n" + bulk("17")}},
    {"verdict_in_words", {.bytes = "*2\r\n" + bulk("yes") + bulk("17")}},
    {"busy_in_words", {.bytes = "*3\r\n:0\r\n" + bulk("soon") + ":0\r\n"}},
    {"busy_and_nothing_else", {.bytes = "*1\r\n:0\r\n"}},
};

INSTANTIATE_TEST_SUITE_P(, SenselessAnswerTest, ::testing::ValuesIn(senseless),
                         [](const auto& test) { return std::string(test.param.name); });

// Errors as Redis words them, and what dlock makes of them.
struct ErrorCase {
  const char* name;
  const char* reply;
  errc expected;
};

void PrintTo(const ErrorCase& each, std::ostream* out) {
  *out << each.name;
}

class ServerErrorTest : public ::testing::TestWithParam<ErrorCase> {};

TEST_P(ServerErrorTest, IsClassified) {
  const ScriptedServer server(polite_until_asked({.bytes = std::string(GetParam().reply) + "\r\n"}));
  const Client client = connect(url_of(server), impatient());
  DistributedLock lock = client.lock("erroneous");
  try {
    (void)lock.try_acquire();
    ADD_FAILURE() << "an error reply is an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), GetParam().expected) << error.what();
    EXPECT_FALSE(error.detail().empty());
  }
}

const ErrorCase error_cases[] = {
    {"loading", "-LOADING Redis is loading the dataset in memory", errc::unavailable},
    {"busy", "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
     errc::unavailable},
    {"read_only", "-READONLY You can't write against a read only replica. script: 1, on @user_script:1.",
     errc::unavailable},
    {"read_only_wrapped",
     "-ERR Error running script (call to f_1): @user_script:1: -READONLY You can't write against a read only replica.",
     errc::unavailable},
    {"no_replicas", "-NOREPLICAS Not enough good replicas to write.", errc::unavailable},
    {"out_of_memory", "-OOM command not allowed when used memory > 'maxmemory'.", errc::unavailable},
    {"misconfigured",
     "-MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
     errc::unavailable},
    {"no_auth", "-NOAUTH Authentication required.", errc::access_denied},
    {"no_permission", "-NOPERM this user has no permissions to run the 'evalsha' command", errc::access_denied},
    {"no_permission_in_script",
     "-ERR The user executing the script can't run this command or subcommand script: 1, on @user_script:1.",
     errc::access_denied},
    {"wrong_type", "-WRONGTYPE Operation against a key holding the wrong kind of value", errc::protocol},
    {"moved", "-MOVED 3999 127.0.0.1:6381", errc::unsupported},
    {"cluster_down", "-CLUSTERDOWN Hash slot not served", errc::unsupported},
    {"noscript_forever", "-NOSCRIPT No matching script. Please use EVAL.", errc::unavailable},
};

INSTANTIATE_TEST_SUITE_P(, ServerErrorTest, ::testing::ValuesIn(error_cases),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace

}  // namespace dlock::test
