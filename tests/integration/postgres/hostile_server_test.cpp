// Servers that send and never end. Whatever they send: no crash, an error, bounded memory.
#include <cstdint>
#include <string>

#include "postgres/postgres_test.hpp"
#include "postgres/scripted_postgres.hpp"
#include "tests/support/hostile_server.hpp"

namespace dlock::test {

namespace {

// The most that a client may take in from a connection before it gives up; the buffers of the kernel are part of it.
constexpr std::uint64_t most_accepted = std::uint64_t{256} << 20U;
// The same from a server that does not let it in.
constexpr std::uint64_t most_accepted_in_front = std::uint64_t{64} << 20U;

// What an acquire ends with, which is an error although its own deadline may be far.
std::string error_of(const ScriptedServer& server, const ClientOptions& options, std::uint64_t most) {
  const auto start = std::chrono::steady_clock::now();
  std::string said;
  try {
    const Client client =
        connect("postgresql://u@127.0.0.1:" + std::to_string(server.port()) + "/db?sslmode=disable", options);
    (void)client.make_lock("hostile").try_acquire();
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

// What libpq would take in for as long as it comes.
class EndlessPostgresTest : public ::testing::TestWithParam<Hostility> {};

TEST_P(EndlessPostgresTest, IsCutOffLongBeforeTheDeadline) {
  const ScriptedServer server(polite_until_asked(GetParam().answer));
  const std::string said =
      error_of(server, {.lease = 10min, .response_timeout = 1min, .connect_timeout = 1min, .close_timeout = 300ms},
               most_accepted);
  EXPECT_NE(said.find("sends data without end"), std::string::npos) << said;
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
  EXPECT_NE(said.find("sends data without end"), std::string::npos) << said;
}

}  // namespace

}  // namespace dlock::test
