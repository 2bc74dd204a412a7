#include "torture/rig/tcp_proxy.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

#include "tests/support/scripted_server.hpp"
#include "torture/rig/hang_guard.hpp"
#include "torture/rig/socket.hpp"

namespace dlock::rig {
namespace {

using namespace std::chrono_literals;
using Mode = Traffic::Mode;

// The client's side of a connection, blocking.
class StreamClient {
 public:
  enum class End { none, close, reset };

  explicit StreamClient(std::uint16_t port) : fd_(connect_to(Endpoint::loopback(port))) {
    const timeval limit{.tv_sec = hang_guard.count(), .tv_usec = 0};
    require(::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), "SO_RCVTIMEO");
  }

  void send(std::string_view text) const {
    const auto n = require(::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL), "send");
    if (static_cast<std::size_t>(n) != text.size()) throw std::runtime_error("sent only a part");
  }
  void finish_sending() const { require(::shutdown(fd_.get(), SHUT_WR), "shutdown"); }

  // So many bytes, or fewer if the connection ends before; end() tells which.
  [[nodiscard]] std::string receive(std::size_t count) {
    std::string text;
    std::array<char, 65536> bytes;
    while (text.size() < count && end_ == End::none) {
      const ssize_t n = ::recv(fd_.get(), bytes.data(), std::min(bytes.size(), count - text.size()), 0);
      if (n < 0 && errno == ECONNRESET) {
        end_ = End::reset;
      } else if (require(n, "hang: nothing comes") == 0) {
        end_ = End::close;
      } else {
        text.append(bytes.data(), static_cast<std::size_t>(n));
      }
    }
    return text;
  }
  // Everything until the connection ends.
  [[nodiscard]] std::string receive_rest() { return receive(std::string::npos); }
  [[nodiscard]] End end() const noexcept { return end_; }
  // Whether there is unread data, or the end.
  [[nodiscard]] bool has_input() const {
    char byte = 0;
    return ::recv(fd_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
  }

 private:
  UniqueFd fd_;
  End end_ = End::none;
};
using End = StreamClient::End;

// In front of a server that sends back whatever it gets.
class TcpProxyTest : public ::testing::Test {
 protected:
  [[nodiscard]] StreamClient client() const { return StreamClient(proxy.port()); }
  // A client whose connection stands on both sides.
  [[nodiscard]] StreamClient connected() const {
    StreamClient result = client();
    expect_echo(result, "hello");
    return result;
  }
  static void expect_echo(StreamClient& client, const std::string& text) {
    client.send(text);
    EXPECT_EQ(client.receive(text.size()), text);
  }
  static void expect_end(StreamClient& client, End end, const std::string& last_words = {}) {
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
  StreamClient client = connected();
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
    StreamClient client = connected();
    proxy.drop(ending);
    expect_end(client, seen);
    EXPECT_TRUE(server_lost(before + 1));
  }
  StreamClient client = connected();
  proxy.sever();
  expect_end(client, End::reset);
  StreamClient next = connected();
  EXPECT_EQ(server.counters().ended, 2U);
  proxy.end_severed();
  EXPECT_TRUE(server_lost(3));
  EXPECT_FALSE(next.has_input());
}

TEST_F(TcpProxyTest, CutRequest_EndsOneConnectionAfterSoManyBytes) {
  StreamClient client = connected();
  StreamClient other = connected();
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
    StreamClient client = connected();
    const std::uint64_t before = server.counters().received;
    proxy.cut_after(Direction::to_client, length, Ending::close);
    client.send("0123456789");
    expect_end(client, End::close, std::string("0123456789").substr(0, length));
    EXPECT_TRUE(server_received(before + 10)) << "the request";
  }
}

TEST_F(TcpProxyTest, LostReply_IsThatToTheRequestWithAText) {
  StreamClient client = connected();
  StreamClient other = connected();
  proxy.lose_reply_to("needle");
  expect_echo(client, "some hay and a nee");
  expect_echo(other, "dle");
  client.send("dle and more hay");
  expect_end(client, End::reset);
  EXPECT_TRUE(server_received(5 + 5 + 18 + 3 + 16));
  expect_echo(other, "needle");
}

TEST_F(TcpProxyTest, HeldTraffic_PassesLaterThoughItsClientHasEnded) {
  StreamClient client = connected();
  StreamClient other = connected();
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
  StreamClient client = connected();
  proxy.set(Direction::to_server, {.mode = Mode::stop});
  client.send("unread");
  StreamClient witness = this->client();  // accepted after the proxy has handled earlier events
  EXPECT_TRUE(proxy.wait_until([](const auto& c) { return c.accepted == 2; }));
  EXPECT_EQ(proxy.counters().to_server.taken, 5U);
  proxy.pass();
  EXPECT_EQ(client.receive(6), "unread");
}

TEST_F(TcpProxyTest, SwallowedTraffic_NeverArrives) {
  StreamClient client = connected();
  proxy.set({.mode = Mode::swallow});
  client.send("gone");
  EXPECT_TRUE(taken_from_clients(5 + 4));
  EXPECT_EQ(proxy.counters().to_server.passed, 5U);
  proxy.pass();
  expect_echo(client, "here");
}

TEST_F(TcpProxyTest, DelayedOrDrippedTraffic_TakesItsTime) {
  StreamClient client = connected();
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
