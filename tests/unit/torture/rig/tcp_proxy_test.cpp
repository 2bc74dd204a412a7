#include "torture/rig/tcp_proxy.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "tests/support/scripted_server.hpp"
#include "tests/support/stream_client.hpp"

namespace dlock::rig {
namespace {

using namespace std::chrono_literals;
using Mode = Traffic::Mode;
using End = test::StreamClient::End;

// In front of a server that sends back whatever it gets.
class TcpProxyTest : public ::testing::Test {
 protected:
  [[nodiscard]] test::StreamClient client() const { return test::StreamClient(proxy.port()); }
  // A client whose connection stands on both sides.
  [[nodiscard]] test::StreamClient connected() const {
    test::StreamClient result = client();
    expect_echo(result, "hello");
    return result;
  }
  static void expect_echo(test::StreamClient& client, const std::string& text) {
    client.send(text);
    EXPECT_EQ(client.receive(text.size()), text);
  }
  static void expect_end(test::StreamClient& client, End end, const std::string& last_words = {}) {
    EXPECT_EQ(client.receive_rest(), last_words);
    EXPECT_EQ(client.end(), end);
  }
  [[nodiscard]] bool server_received(std::uint64_t count) const {
    return server.wait_until([&](const auto& counters) { return counters.received >= count; });
  }
  [[nodiscard]] bool server_lost(std::size_t connections) const {
    return server.wait_until([&](const auto& counters) { return counters.ended == connections; });
  }
  [[nodiscard]] bool taken_from_clients(std::uint64_t count) const {
    return proxy.wait_until([&](const auto& counters) { return counters.to_server.taken == count; });
  }

  test::ScriptedServer server{
      [](const std::string& received) { return test::ScriptedServer::Answer{.bytes = received}; }};
  TcpProxy proxy{Endpoint::loopback(server.port())};
};

TEST_F(TcpProxyTest, Traffic_IsForwardedBothWaysWithItsEnd) {
  test::StreamClient client = connected();
  const std::string large(3'000'000, 'x');
  {
    const std::jthread sender([&] { client.send(large); });
    EXPECT_EQ(client.receive(large.size()), large);
  }
  client.send("last words");
  client.finish_sending();
  expect_end(client, End::close, "last words");
  EXPECT_TRUE(proxy.wait_until([&](const auto& c) {
    return c.accepted == 1 && c.open == 0 && c.to_server.passed == large.size() + 15 &&
           c.to_client.passed == large.size() + 15;
  }));
}

TEST_F(TcpProxyTest, DroppedConnection_EndsOnBothSidesASeveredOneForTheClient) {
  for (const auto& [ending, seen] : {std::pair(Ending::reset, End::reset), std::pair(Ending::close, End::close)}) {
    const std::size_t before = server.counters().ended;
    test::StreamClient client = connected();
    proxy.drop(ending);
    expect_end(client, seen);
    EXPECT_TRUE(server_lost(before + 1));
  }
  test::StreamClient client = connected();
  proxy.sever();
  expect_end(client, End::reset);
  test::StreamClient next = connected();
  EXPECT_EQ(server.counters().ended, 2U);
  proxy.end_severed();
  EXPECT_TRUE(server_lost(3));
  EXPECT_FALSE(next.has_input());
}

TEST_F(TcpProxyTest, CutRequest_EndsOneConnectionAfterSoManyBytes) {
  test::StreamClient client = connected();
  test::StreamClient other = connected();
  proxy.cut_after(Direction::to_server, 4);
  client.send("0123456789");
  (void)client.receive_rest();  // the server answers the bytes that came, if it is quick
  EXPECT_EQ(client.end(), End::reset);
  EXPECT_TRUE(server_lost(1));
  EXPECT_EQ(server.counters().received, 5U + 5U + 4U);
  EXPECT_TRUE(proxy.wait_until([](const auto& c) { return c.cuts == 1; }));
  expect_echo(other, "0123456789");
}

TEST_F(TcpProxyTest, CutReply_IsTruncated) {
  for (const std::uint64_t length : {0U, 7U}) {
    test::StreamClient client = connected();
    const std::uint64_t before = server.counters().received;
    proxy.cut_after(Direction::to_client, length, Ending::close);
    client.send("0123456789");
    expect_end(client, End::close, std::string("0123456789").substr(0, length));
    EXPECT_TRUE(server_received(before + 10)) << "the request";
  }
}

TEST_F(TcpProxyTest, LostReply_IsThatToTheRequestWithAText) {
  test::StreamClient client = connected();
  test::StreamClient other = connected();
  proxy.lose_reply_to("needle");
  expect_echo(client, "some hay and a nee");
  expect_echo(other, "dle");
  client.send("dle and more hay");
  expect_end(client, End::reset);
  EXPECT_TRUE(server_received(5 + 5 + 18 + 3 + 16));
  expect_echo(other, "needle");
}

TEST_F(TcpProxyTest, HeldTraffic_PassesLaterThoughItsClientHasEnded) {
  test::StreamClient client = connected();
  test::StreamClient other = connected();
  proxy.set(0, Direction::to_client, {.mode = Mode::hold});
  client.send("kept");
  expect_echo(other, "b");  // of another connection
  EXPECT_TRUE(proxy.wait_until([](const auto& c) { return c.to_client.taken == 5 + 5 + 4 + 1; }));
  EXPECT_FALSE(client.has_input());
  proxy.set(Direction::to_server, {.mode = Mode::hold});
  this->client().send("posthumous");
  EXPECT_TRUE(taken_from_clients(15 + 10));
  EXPECT_TRUE(server_received(15));
  EXPECT_EQ(server.counters().received, 15U);
  proxy.pass();
  EXPECT_EQ(client.receive(4), "kept");
  EXPECT_TRUE(server_received(15 + 10));
}

TEST_F(TcpProxyTest, StoppedDirection_IsNotRead) {
  test::StreamClient client = connected();
  proxy.set(Direction::to_server, {.mode = Mode::stop});
  client.send("unread");
  test::StreamClient witness = this->client();  // accepted after the proxy has handled earlier events
  EXPECT_TRUE(proxy.wait_until([](const auto& c) { return c.accepted == 2; }));
  EXPECT_EQ(proxy.counters().to_server.taken, 5U);
  proxy.pass();
  EXPECT_EQ(client.receive(6), "unread");
}

TEST_F(TcpProxyTest, SwallowedTraffic_NeverArrives) {
  test::StreamClient client = connected();
  proxy.set({.mode = Mode::swallow});
  client.send("gone");
  EXPECT_TRUE(taken_from_clients(5 + 4));
  EXPECT_EQ(proxy.counters().to_server.passed, 5U);
  proxy.pass();
  expect_echo(client, "here");
}

TEST_F(TcpProxyTest, DelayedOrDrippedTraffic_TakesItsTime) {
  test::StreamClient client = connected();
  proxy.set({.delay = 30ms});
  auto start = std::chrono::steady_clock::now();
  expect_echo(client, "late");
  EXPECT_GE(std::chrono::steady_clock::now() - start, 60ms);
  proxy.pass();
  proxy.set(Direction::to_client, {.drip_bytes = 1, .drip_interval = 5ms});
  start = std::chrono::steady_clock::now();
  expect_echo(client, "drop");
  EXPECT_GE(std::chrono::steady_clock::now() - start, 15ms);
}

}  // namespace
}  // namespace dlock::rig
