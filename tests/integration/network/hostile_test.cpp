// Servers that are not what they should be, are broken, or mean harm. Whatever they say: no crash, an error by the
// deadline, bounded memory where that is up to us.
#include "network/room.hpp"

namespace dlock::test {

namespace {

class HostileServerTest : public ::testing::TestWithParam<Hostility> {
 protected:
  static void expect_errors_in_time(const ScriptedServer& server, const std::string& strategy) {
    const auto start = std::chrono::steady_clock::now();
    {
      const Client client =
          connect_patiently(service_kind().hostile_url(server.port()) + service_kind().parameters(strategy),
                            {.response_timeout = 300ms, .connect_timeout = 300ms, .close_timeout = 300ms});
      DistributedLock lock = client.make_lock("hostile");
      std::error_code error;
      EXPECT_FALSE(lock.try_acquire({}, error).has_value());
      EXPECT_TRUE(is_error_of_hostile_server(error)) << "try: " << error.message();
      (void)lock.acquire({.wait = 400ms}, error);
      EXPECT_TRUE(is_error_of_hostile_server(error)) << "wait: " << error.message();
      EXPECT_THROW((void)client.inspect("hostile"), Error);
      EXPECT_THROW((void)client.list(), Error);
      EXPECT_THROW((void)client.break_lock("hostile"), Error);
      EXPECT_TRUE(mentions(client.diagnose(), Finding::Severity::note, ""));
    }
    EXPECT_LT(std::chrono::steady_clock::now() - start, 3 * far_too_long);
    const auto counters = server.counters();
    EXPECT_GE(counters.accepted, 1U);
    EXPECT_LT(counters.sent, service_kind().most_accepted * counters.accepted);
  }
};

// Shows: deadlines
TEST_P(HostileServerTest, FirstAnswer_EndsAsAnErrorByTheDeadline) {
  const ScriptedServer server(service_kind().greets ? blunt(GetParam().answer) : rude(GetParam().answer));
  expect_errors_in_time(server, service_kind().strategies.front());
}

TEST_P(HostileServerTest, AnswerAfterLogin_EndsAsAnErrorByTheDeadline) {
  for (const std::string& strategy : tested_strategies()) {
    const ScriptedServer server(service_kind().polite_until_asked(GetParam().answer));
    expect_errors_in_time(server, strategy);
  }
}

std::vector<Hostility> hostilities() {
  std::vector<Hostility> all = {
      {"http", {.bytes = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", .close = true}},
      {"garbage", {.bytes = std::string("\x00\xff\x15\x03\x01\x00\x02\x02\x28 what?\r\n", 18)}},
      {"silence", {}},
      {"end", {.close = true}},
  };
  all.insert(all.end(), service_kind().hostilities.begin(), service_kind().hostilities.end());
  return all;
}

INSTANTIATE_TEST_SUITE_P(, HostileServerTest, ::testing::ValuesIn(hostilities()),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace

}  // namespace dlock::test
