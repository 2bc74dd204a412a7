// A network of the program's own, in which packets are lost.
#include "tests/torture/breakage/network.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>

#include <cerrno>
#include <iostream>
#include <string>

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
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address_);
    rig::require(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address_), size), "bind");
    rig::require(::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address_), &size), "getsockname");
  }

  [[nodiscard]] std::uint16_t port() const { return ntohs(address_.sin_port); }

  // How many of so many come.
  [[nodiscard]] int send(const Datagrams& to, int number) const {
    const auto* const address = reinterpret_cast<const sockaddr*>(&to.address_);
    for (int i = 0; i < number; ++i) {
      rig::require(::sendto(socket_.get(), "x", 1, 0, address, sizeof(to.address_)), "sendto");
    }
    int received = 0;
    for (char byte = 0; ::recv(to.socket_.get(), &byte, 1, 0) == 1;) ++received;
    EXPECT_EQ(errno, EAGAIN);
    return received;
  }

 private:
  util::UniqueFd socket_;
  sockaddr_in address_{};
};

// Which ones is chance; that it is fewer than 300 or more than 700 of 1000 does not happen.
TEST(PacketLossTest, ShareOfThePacketsOfItsPort_IsLostBothWaysUntilItEnds) {
  if (!why_no_network.empty()) GTEST_SKIP() << "needs privilege: " << why_no_network;
  if (std::string why_not; !PacketLoss::available(why_not)) GTEST_SKIP() << why_not;
  // On one processor, what is sent on the loopback interface has come when sending returns.
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(::sched_getcpu()), &one);
  rig::require(::sched_setaffinity(0, sizeof(one), &one), "sched_setaffinity");
  const Datagrams client;
  const Datagrams server;
  const Datagrams another;
  {
    const PacketLoss half({.percent = 50, .port = server.port()});
    const int came = client.send(server, 1000);
    EXPECT_TRUE(came > 300 && came < 700) << came;
  }
  {
    const PacketLoss all({.percent = 100, .port = server.port()});
    const PacketLoss none({.percent = 0, .port = another.port()});
    EXPECT_EQ(client.send(server, 10), 0);
    EXPECT_EQ(server.send(client, 10), 0);
    EXPECT_EQ(client.send(another, 10), 10);
  }
  EXPECT_EQ(client.send(server, 10), 10);
  EXPECT_EQ(server.send(client, 10), 10);
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
