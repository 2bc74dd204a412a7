// Servers that are not PostgreSQL, are broken, or mean harm. Whatever they send: no crash, an error, bounded memory.
#include <cstdint>
#include <string>

#include "postgres/postgres_test.hpp"
#include "tests/support/hostile_server.hpp"

namespace dlock::test {

namespace {

using Answer = ScriptedServer::Answer;

// The most that a client may take in from a connection before it gives up; the buffers of the kernel are part of it.
constexpr std::uint64_t most_accepted = std::uint64_t{256} << 20U;
// The same from a server that does not let it in.
constexpr std::uint64_t most_accepted_in_front = std::uint64_t{64} << 20U;

std::string number(std::uint32_t value, int bytes) {
  std::string text;
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) text += static_cast<char>(value >> shift & 0xffU);
  return text;
}

// A message of the protocol: a letter, the length, which counts itself, and what is in it.
std::string message(char type, const std::string& content) {
  return type + number(static_cast<std::uint32_t>(content.size()) + 4, 4) + content;
}

// One of which only the beginning comes.
std::string beginning(char type, std::uint32_t length) {
  return type + number(length, 4);
}

std::string text_field(const std::string& text) {
  return text + '\0';
}

std::string notice(char type, const std::string& text) {
  return message(type, "S" + text_field("NOTICE") + "V" + text_field("NOTICE") + "C" + text_field("00000") + "M" +
                           text_field(text) + '\0');
}

// What a server says that lets us in.
std::string welcome() {
  return message('R', number(0, 4)) + message('S', text_field("server_version") + text_field("15.0")) +
         message('S', text_field("client_encoding") + text_field("UTF8")) +
         message('K', number(4711, 4) + number(17, 4)) + message('Z', "I");
}

std::string one_column() {
  return message('T', number(1, 2) + text_field("c") + number(0, 4) + number(0, 2) + number(25, 4) + number(0xffff, 2) +
                          number(0, 4) + number(0, 2));
}

std::string row(const std::string& value) {
  return message('D', number(1, 2) + number(static_cast<std::uint32_t>(value.size()), 4) + value);
}

bool is_startup(const std::string& received) {
  return received.size() >= 8 && received.substr(4, 4) == number(196608, 4);
}

ScriptedServer::Script polite_until_asked(Answer answer) {
  return [answer = std::move(answer)](const std::string& received) {
    if (received.empty()) return Answer{};
    return is_startup(received) ? Answer{.bytes = welcome()} : answer;
  };
}

// What an acquire ends with, which is an error although its own deadline may be far.
std::string error_of(const ScriptedServer& server, const ClientOptions& options, std::uint64_t most) {
  const auto start = std::chrono::steady_clock::now();
  std::string said;
  try {
    const Client client =
        connect("postgresql://u@127.0.0.1:" + std::to_string(server.port()) + "/db?sslmode=disable", options);
    (void)client.lock("hostile").try_acquire();
    ADD_FAILURE() << "an answer that makes no sense is no answer";
  } catch (const Error& error) {
    EXPECT_TRUE(is_error_of_hostile_server(error.code())) << error.what();
    said = error.what();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, far_too_long);
  const auto counters = server.counters();
  EXPECT_GE(counters.accepted, 1U);
  EXPECT_LT(counters.sent, most * counters.accepted);
  return said;
}

class HostilePostgresTest : public ::testing::TestWithParam<Hostility> {};

TEST_P(HostilePostgresTest, EndsAsAnErrorByTheDeadline) {
  const ScriptedServer server(rude(GetParam().answer));
  EXPECT_NE(error_of(server, impatient(), most_accepted_in_front), "");
}

TEST_P(HostilePostgresTest, EndsAsAnErrorByTheDeadlineAfterAnOrderlyStart) {
  const ScriptedServer server(polite_until_asked(GetParam().answer));
  EXPECT_NE(error_of(server, impatient(), most_accepted), "");
}

const Hostility hostilities[] = {
    {"http", {.bytes = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", .close = true}},
    {"garbage", {.bytes = std::string("\x00\xff\x15\x03\x01\x00\x02\x02\x28 what?\r\n", 18)}},
    {"endless_garbage", {.repeat = std::string("\x7f\x00\xfe", 3)}},
    {"negative_length", {.bytes = beginning('D', 0xffffffff)}},
    {"length_of_zero", {.bytes = beginning('D', 0)}},
    {"giant_error", {.bytes = beginning('E', 0x7fffffff), .repeat = "x"}},
    {"giant_parameter", {.bytes = beginning('S', 0x7fffffff), .repeat = "x"}},
    {"giant_notification", {.bytes = beginning('A', 0x7ffffff0), .repeat = "xxxxxxxxxxxxxxxx"}},
    {"rows_too_wide", {.bytes = one_column() + message('D', number(9, 2))}},
    {"row_longer_than_its_message", {.bytes = one_column() + message('D', number(1, 2) + number(1000, 4) + "x")}},
    {"negative_field", {.bytes = one_column() + message('D', number(1, 2) + number(0x80000000, 4))}},
    {"columns_without_end", {.bytes = message('T', number(0xffff, 2))}},
    {"copy", {.bytes = message('G', std::string("\0\0\0", 3))}},
    {"half_a_row", {.bytes = one_column() + beginning('D', 100) + "x"}},
    {"half_a_row_and_end", {.bytes = one_column() + beginning('D', 100) + "x", .close = true}},
    {"silence", {}},
    {"end", {.close = true}},
};

INSTANTIATE_TEST_SUITE_P(, HostilePostgresTest, ::testing::ValuesIn(hostilities),
                         [](const auto& test) { return std::string(test.param.name); });

// What libpq would take in for as long as it comes.
class EndlessPostgresTest : public ::testing::TestWithParam<Hostility> {};

TEST_P(EndlessPostgresTest, IsCutOffLongBeforeTheDeadline) {
  const ScriptedServer server(polite_until_asked(GetParam().answer));
  const std::string said =
      error_of(server, {.lease = 10min, .response_timeout = 1min, .connect_timeout = 1min, .close_timeout = 300ms},
               most_accepted);
  EXPECT_NE(said.find("sends and sends"), std::string::npos) << said;
}

const Hostility endless[] = {
    {"rows", {.bytes = message('2', "") + one_column(), .repeat = row(std::string(1000, 'x'))}},
    // No longer than that, as libpq looks up from a message only when no more of it is there.
    {"giant_row",
     {.bytes = message('2', "") + one_column() + beginning('D', 0x20000000),
      .repeat = std::string(4096, 'x'),
      .repeat_for = most_accepted / 2}},
    {"notices", {.repeat = notice('N', std::string(1000, 'x'))}},
    {"notifications", {.repeat = message('A', number(1, 4) + text_field("c") + text_field(std::string(1000, 'x')))}},
    {"parameters", {.repeat = message('S', text_field("client_encoding") + text_field(std::string(4000, 'x')))}},
};

INSTANTIATE_TEST_SUITE_P(, EndlessPostgresTest, ::testing::ValuesIn(endless),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(EndlessGreetingTest, IsCutOffLongBeforeTheDeadline) {
  const ScriptedServer server(
      rude({.bytes = message('R', number(0, 4)), .repeat = notice('N', std::string(1000, 'x'))}));
  const std::string said = error_of(server, {.response_timeout = 1min, .connect_timeout = 1min, .close_timeout = 300ms},
                                    most_accepted_in_front);
  EXPECT_NE(said.find("sends and sends"), std::string::npos) << said;
}

}  // namespace

}  // namespace dlock::test
