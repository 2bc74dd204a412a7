#include "tests/support/scripted_server.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/stream_client.hpp"

namespace dlock::test {

namespace {

using Answer = ScriptedServer::Answer;

TEST(ScriptedServer, Answer_IsSentBeforeTheConnectionCloses) {
  ScriptedServer server([](const std::string& received) {
    return received.empty() ? Answer{.bytes = "banner "} : Answer{.bytes = "no " + received, .close = true};
  });
  StreamClient client(server.port());
  EXPECT_EQ(client.receive(7), "banner ");
  client.send("way");
  EXPECT_EQ(client.receive_rest(), "no way");
  EXPECT_EQ(client.end(), StreamClient::End::close);
  EXPECT_TRUE(server.wait_until([](const auto& counters) { return counters.ended == 1; }));
}

TEST(ScriptedServer, Repetition_LastsUntilTheClientGoesAndAnswersNothingElse) {
  ScriptedServer server(
      [](const std::string& received) { return received.empty() ? Answer{} : Answer{.bytes = "x", .repeat = "ab"}; });
  {
    StreamClient client(server.port());
    client.send("request");
    EXPECT_EQ(client.receive(5), "xabab");
    client.send("more");
    EXPECT_TRUE(server.wait_until([](const auto& counters) { return counters.received == 11; }));
    const std::string text = client.receive(16'000'000);  // more than was on its way before
    EXPECT_EQ(text.size(), 16'000'000U);
    EXPECT_EQ(text.find('x'), std::string::npos);
  }
  EXPECT_TRUE(server.wait_until([](const auto& counters) { return counters.ended == 1; }));
  EXPECT_GE(server.counters().sent, 16'000'005U);
}

TEST(ScriptedServer, LimitedRepetition_EndsAndIsCounted) {
  ScriptedServer server([](const std::string&) { return Answer{.repeat = "ab", .repeat_for = 1'000'000}; });
  StreamClient client(server.port());
  std::size_t received = client.receive(950'000).size();
  EXPECT_EQ(received, 950'000U);
  client.finish_sending();
  received += client.receive_rest().size();
  EXPECT_LE(received, 1'000'000U);
  EXPECT_TRUE(server.wait_until([](const auto& counters) { return counters.ended == 1; }));
  EXPECT_EQ(server.counters().sent, received);
}

}  // namespace

}  // namespace dlock::test
