// Servers that are not ZooKeeper, are broken, or mean harm: no crash, and an error by the deadline. How much memory is
// taken is up to the client library, which believes the lengths that a server names: docs/security.md.
#include <string>

#include "tests/support/hostile_server.hpp"
#include "zookeeper/zookeeper_test.hpp"

namespace dlock::test {

namespace {

using Answer = ScriptedServer::Answer;

std::string number(std::uint64_t value, int bytes) {
  std::string text;
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) text += static_cast<char>(value >> shift & 0xffU);
  return text;
}

std::string frame(const std::string& content) {
  return number(content.size(), 4) + content;
}

// The answer to a request: its number, a transaction, an error, and what follows.
std::string reply(std::uint32_t xid, std::uint32_t error, const std::string& content = {}) {
  return frame(number(xid, 4) + number(1, 8) + number(error, 4) + content);
}

// A session of 10 s.
std::string welcome() {
  return frame(number(0, 4) + number(10'000, 4) + number(4711, 8) + number(16, 4) + std::string(16, 'p') + '\0');
}

// A client asks for a session first: protocol 0, transaction 0.
bool asks_for_session(const std::string& received) {
  return received.size() >= 44 && received.substr(4, 12) == std::string(12, '\0');
}

ScriptedServer::Script polite_until_asked(Answer answer) {
  return [answer = std::move(answer)](const std::string& received) {
    if (received.empty()) return Answer{};
    return asks_for_session(received) ? Answer{.bytes = welcome()} : answer;
  };
}

void expect_errors_in_time(const ScriptedServer& server) {
  const auto start = std::chrono::steady_clock::now();
  {
    const Client client = connect("zookeeper://127.0.0.1:" + std::to_string(server.port()), impatient());
    DistributedLock lock = client.lock("hostile");
    std::error_code error;
    EXPECT_FALSE(lock.try_acquire({}, error).has_value());
    EXPECT_TRUE(is_error_of_hostile_server(error)) << "try: " << error.message();
    EXPECT_THROW((void)client.inspect("hostile"), Error);
    EXPECT_THROW((void)client.list(), Error);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, 2 * far_too_long);
  EXPECT_GE(server.counters().accepted, 1U);
}

class HostileZooKeeperTest : public ::testing::TestWithParam<Hostility> {};

TEST_P(HostileZooKeeperTest, EndsAsAnErrorByTheDeadline) {
  const ScriptedServer server(rude(GetParam().answer));
  expect_errors_in_time(server);
}

TEST_P(HostileZooKeeperTest, EndsAsAnErrorByTheDeadlineAfterAnOrderlyStart) {
  const ScriptedServer server(polite_until_asked(GetParam().answer));
  expect_errors_in_time(server);
}

const Hostility hostilities[] = {
    {"http", {.bytes = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", .close = true}},
    {"garbage", {.bytes = std::string("\x00\xff\x15\x03\x01\x00\x02\x02\x28 what?\r\n", 18)}},
    {"giant_length", {.bytes = number(0x7fffffff, 4) + std::string(65536, 'x')}},
    {"half_a_reply", {.bytes = number(100, 4) + "x"}},
    {"half_a_reply_and_end", {.bytes = number(100, 4) + "x", .close = true}},
    {"number_that_nobody_asked_by", {.bytes = reply(0x7ffffff0, 0, "x")}},
    {"silence", {}},
    {"end", {.close = true}},
};

INSTANTIATE_TEST_SUITE_P(, HostileZooKeeperTest, ::testing::ValuesIn(hostilities),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace

}  // namespace dlock::test
