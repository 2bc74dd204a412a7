#include "tests/support/scripted_server.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tests/unit/support/stream_client.hpp"

namespace dlock::test {

namespace {

using Answer = ScriptedServer::Answer;

TEST(ScriptedServer, SpeaksFirst) {
  ScriptedServer server([](const std::string& received) { return Answer{.bytes = received.empty() ? "banner" : ""}; });
  StreamClient client(server.port());
  EXPECT_EQ(client.receive(6), "banner");
}

TEST(ScriptedServer, AnswersAndCloses) {
  ScriptedServer server([](const std::string& received) {
    return received.empty() ? Answer{} : Answer{.bytes = "no " + received, .close = true};
  });
  StreamClient client(server.port());
  client.send("way");
  EXPECT_EQ(client.receive_rest(), "no way");
  EXPECT_EQ(client.end(), StreamClient::End::close);
  EXPECT_TRUE(server.wait_until([](const auto& counters) { return counters.ended == 1; }));
}

TEST(ScriptedServer, RepeatsItselfUntilTheClientGoes) {
  ScriptedServer server([](const std::string&) { return Answer{.bytes = "x", .repeat = "ab"}; });
  {
    StreamClient client(server.port());
    EXPECT_EQ(client.receive(5), "xabab");
    EXPECT_EQ(client.receive(1'000'000).size(), 1'000'000U);
  }
  EXPECT_TRUE(server.wait_until([](const auto& counters) { return counters.ended == 1; }));
  EXPECT_GE(server.counters().sent, 1'000'005U);
}

}  // namespace

}  // namespace dlock::test
