// What a server says that speaks the protocol: answers that make no sense, and errors.
#include "redis/redis_test.hpp"
#include "redis/scripted_redis.hpp"
#include "tests/support/hostile_server.hpp"

namespace dlock::test {

namespace {

std::string bulk(const std::string& text) {
  return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
}

std::string url_of(const ScriptedServer& server, const std::string& parameters = {}) {
  return "redis://127.0.0.1:" + std::to_string(server.port()) + (parameters.empty() ? "" : "?" + parameters);
}

// Well-formed replies that make no sense as an answer to an acquire.
class SenselessAnswerTest : public ::testing::TestWithParam<Hostility> {};

TEST_P(SenselessAnswerTest, IsAProtocolErrorAndNeverAGrant) {
  for (const char* strategy : {"queue", "broadcast", "poll"}) {
    const ScriptedServer server(polite_until_asked(GetParam().answer));
    const Client client = connect_patiently(url_of(server, std::string("strategy=") + strategy), unwaiting());
    DistributedLock lock = client.make_lock("hostile");
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
    {"token_of_zero", {.bytes = bulk("0")}},
    {"negative_token", {.bytes = bulk("-5")}},
    {"token_beyond_63_bits", {.bytes = bulk("9223372036854775808")}},
    {"token_beyond_64_bits", {.bytes = bulk("184467440737095516160")}},
    {"token_in_words", {.bytes = bulk("seventeen")}},
    {"token_and_more", {.bytes = bulk("17x")}},
    {"empty_token", {.bytes = bulk("")}},
    {"nested_token", {.bytes = "*1\r\n" + bulk("17")}},
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
  const Client client = connect_patiently(url_of(server), impatient());
  DistributedLock lock = client.make_lock("erroneous");
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
