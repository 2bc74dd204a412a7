// A network of the program's own, in which packets are lost.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <iostream>
#include <string>

#include "tests/torture/breakage/network.hpp"
#include "torture/rig/system_call.hpp"

namespace dlock::torture {
namespace {

// Why the program is in the network in which it was started; empty if it has its own.
std::string why_no_network;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): main() sets it

// A socket for datagrams on a port of its own.
class Datagrams {
 public:
  Datagrams() : socket_(rig::require(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), "socket")) {
    // Enough for all that a test sends.
    const int buffer = 4 * 1024 * 1024;
    rig::require(::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer)), "setsockopt");
    sockaddr_in address = loopback(0);
    rig::require(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), "bind");
    socklen_t size = sizeof(address);
    rig::require(::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size), "getsockname");
    port_ = ntohs(address.sin_port);
  }

  [[nodiscard]] std::uint16_t port() const { return port_; }

  void send(const Datagrams& to, int number) const {
    const sockaddr_in address = loopback(to.port_);
    for (int i = 0; i < number; ++i) {
      rig::require(::sendto(socket_.get(), "x", 1, 0, reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
                   "sendto");
    }
  }
  // How many have come.
  [[nodiscard]] int received() const {
    int number = 0;
    for (char byte = 0; ::recv(socket_.get(), &byte, 1, 0) == 1;) ++number;
    EXPECT_EQ(errno, EAGAIN);
    return number;
  }

 private:
  static sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }

  util::UniqueFd socket_;
  std::uint16_t port_ = 0;
};

class PacketLossTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!why_no_network.empty()) GTEST_SKIP() << "needs privilege: " << why_no_network;
    if (std::string why_not; !PacketLoss::available(why_not)) GTEST_SKIP() << why_not;
    // On one processor, what is sent on the loopback interface has come when sending returns.
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(::sched_getcpu()), &one);
    rig::require(::sched_setaffinity(0, sizeof(one), &one), "sched_setaffinity");
  }

  Datagrams client_;
  Datagrams server_;
};

TEST_F(PacketLossTest, PacketsOfItsPort_AreLostBothWaysUntilItEnds) {
  const Datagrams another;
  const auto expect = [&](int of_server, int of_other) {
    client_.send(server_, 10);
    server_.send(client_, 10);
    client_.send(another, 10);
    EXPECT_EQ(server_.received(), of_server);
    EXPECT_EQ(client_.received(), of_server);
    EXPECT_EQ(another.received(), of_other);
  };
  {
    const PacketLoss loss({.percent = 100, .port = server_.port()});
    expect(0, 10);
    {
      const PacketLoss more({.percent = 100, .port = another.port()});
      expect(0, 0);
    }
    expect(0, 10);
  }
  expect(10, 10);
}

// Which ones is chance; that it is fewer than 300 or more than 700 of 1000 does not happen.
TEST_F(PacketLossTest, Share_OfPacketsIsLost) {
  const auto received = [&](int percent) {
    const PacketLoss loss({.percent = percent, .port = server_.port()});
    client_.send(server_, 1000);
    return server_.received();
  };
  EXPECT_EQ(received(0), 1000);
  const int half = received(50);
  EXPECT_GT(half, 300);
  EXPECT_LT(half, 700);
}

}  // namespace
}  // namespace dlock::torture

int main(int argc, char** argv) {
  if (!dlock::torture::enter_own_network(dlock::torture::why_no_network)) {
    std::cout << "without a network of its own: " << dlock::torture::why_no_network << '\n';
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
