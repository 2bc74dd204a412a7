// Faults of a machine have the effects that the tests with services rely on, and end.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "tests/torture/breakage/network.hpp"
#include "tests/torture/breakage/wall_clock.hpp"
#include "tests/torture/client/commanded_client.hpp"
#include "torture/nemesis/used_up_descriptors.hpp"
#include "torture/rig/scratch_directory.hpp"
#include "torture/rig/system_call.hpp"
#include "util/unique_fd.hpp"

namespace dlock::torture {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

// A gap between the numbers of the open ones would be one to use.
TEST(UsedUpDescriptorsTest, UsedUpDescriptors_LeaveNoneToOpenInTheirProcess) {
  if (std::string why; !UsedUpDescriptors::available(why)) GTEST_SKIP() << "needs privilege: " << why;
  const auto open_something = [] {  // the error, or 0
    const util::UniqueFd file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    return file ? 0 : errno;
  };
  util::UniqueFd gap(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
  const util::UniqueFd above(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
  gap.reset();
  rlimit before{};
  rlimit after{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  int during = 0;
  {
    const UsedUpDescriptors none_left(::getpid());
    during = open_something();
  }
  EXPECT_EQ(during, EMFILE);
  EXPECT_EQ(open_something(), 0);
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &after), 0);
  EXPECT_EQ(after.rlim_cur, before.rlim_cur);
  EXPECT_EQ(after.rlim_max, before.rlim_max);
  EXPECT_THROW(UsedUpDescriptors(999'999'999), std::system_error);
  auto child = std::make_unique<rig::ChildProcess>(std::vector<std::string>{"cat", "/dev/zero"});
  const UsedUpDescriptors none_left(child->pid());
  EXPECT_EQ(open_something(), 0);
  child.reset();  // a process that has ended needs none back
}

milliseconds now(clockid_t clock) {
  timespec t{};
  EXPECT_EQ(::clock_gettime(clock, &t), 0);
  return std::chrono::floor<milliseconds>(std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec));
}

class WallClockTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string why_not;
    if (!WallClock::available(why_not)) GTEST_SKIP() << why_not;
    clock_ = std::make_unique<WallClock>(directory_.path());
  }

  // Expects the child's clocks between two readings of ours; its wall clock so, apart from the offset.
  static void expect_clocks(CommandedClient& client, milliseconds offset) {
    const std::array clocks{CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_BOOTTIME};  // the last: of leases
    std::array<milliseconds, 4> before{};
    for (std::size_t i = 0; i < clocks.size(); ++i) before[i] = now(clocks[i]);
    std::istringstream words(client.tell("clocks"));
    for (std::size_t i = 0; i < clocks.size(); ++i) {
      std::int64_t read = 0;
      EXPECT_TRUE(words >> read) << client.said();
      const milliseconds value = milliseconds(read) - (i == 0 ? offset : 0ms);
      const milliseconds slack = i == 0 ? 1s : 0s;
      EXPECT_GE(value, before[i] - slack) << "clock " << i;
      EXPECT_LE(value, now(clocks[i]) + slack) << "clock " << i;
    }
  }

  rig::ScratchDirectory directory_;
  std::string url_ = "file://" + directory_.path() + "/locks";
  std::unique_ptr<WallClock> clock_;
};

// A wait that ends by its deadline is one that a timer ended.
TEST_F(WallClockTest, SteppedWallClock_LeavesOtherClocksTimersAndProcessesAlone) {
  CommandedClient other(url_);
  ASSERT_TRUE(other.tell("acquire a 0").starts_with("granted a ")) << other.said();
  CommandedClient client(url_, clock_->variables());
  expect_clocks(client, 0h);
  for (const auto step : {3h, -9h, -24h, 48h, 0h}) {
    clock_->step(step);
    expect_clocks(client, clock_->offset());
    const auto begin = std::chrono::steady_clock::now();
    const std::string answer = client.tell("acquire a 100");
    EXPECT_TRUE(answer.starts_with("error timed out")) << answer;
    EXPECT_GE(std::chrono::steady_clock::now() - begin, 90ms);
  }
  EXPECT_EQ(clock_->offset(), 18h);
  expect_clocks(other, 0h);
  clock_->step(-66h);
  ASSERT_TRUE(client.tell("acquire b 0").starts_with("granted b ")) << client.said();
  for (const auto& entry : std::filesystem::directory_iterator(directory_.path() + "/locks")) {
    EXPECT_LT(std::filesystem::file_time_type::clock::now() - entry.last_write_time(), 24h) << entry.path();
  }
}

// --- A network of the program's own, in which packets are lost

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
