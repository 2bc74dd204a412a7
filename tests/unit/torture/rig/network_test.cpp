#include "torture/rig/network.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <stdexcept>
#include <thread>

#include "torture/rig/socket.hpp"

namespace dlock::rig {
namespace {

using namespace std::chrono_literals;

// Answers the first connection with what it was sent, doubled.
void answer_once(const rig::Listener& listener) {
  pollfd source{.fd = listener.fd(), .events = POLLIN, .revents = 0};
  (void)::poll(&source, 1, -1);
  const rig::UniqueFd client = listener.accept();
  source.fd = client.get();
  (void)::poll(&source, 1, -1);
  std::array<char, 64> bytes{};
  const auto n = ::recv(client.get(), bytes.data(), bytes.size(), 0);
  for (int i = 0; i < 2; ++i) (void)!::send(client.get(), bytes.data(), static_cast<std::size_t>(n), MSG_NOSIGNAL);
}

TEST(BenchNetwork, AnAnswerIsAllThatComesUntilTheEnd) {
  const rig::Listener listener;
  std::jthread server([&] { answer_once(listener); });
  EXPECT_EQ(ask({.name = "localhost", .port = listener.port()}, "mntr", 60s), "mntrmntr");
}

TEST(BenchNetwork, ASilentServerIsGivenUp) {
  const rig::Listener listener;
  EXPECT_THROW((void)ask({.name = "127.0.0.1", .port = listener.port()}, "mntr", 1ms), std::runtime_error);
}

TEST(BenchNetwork, WhereNobodyListensIsSaid) {
  rig::Listener listener;
  listener.close();
  try {
    (void)connect_to({.name = "localhost", .port = listener.port()}, 60s);
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(std::string(error.what()), "localhost:" + std::to_string(listener.port()) + " cannot be reached");
  }
}

TEST(BenchNetwork, TheOtherSideHasAnAddress) {
  const rig::Listener listener;
  const auto fd = connect_to({.name = "localhost", .port = listener.port()}, 60s);
  EXPECT_EQ(peer_address(fd.get()), "127.0.0.1");
}

}  // namespace
}  // namespace dlock::rig
