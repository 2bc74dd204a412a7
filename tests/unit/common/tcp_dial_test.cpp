// Which of a host's addresses a connection is made to, over real sockets of this machine.
#include "backends/common/tcp_dial.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/thread_engine.hpp"
#include "tests/support/free_port.hpp"
#include "torture/rig/hang_guard.hpp"
#include "torture/rig/socket.hpp"
#include "util/event.hpp"

namespace dlock::common {
namespace {

using namespace std::chrono_literals;

util::Address loopback(std::uint16_t port) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_port = htons(port);
  in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  util::Address address;
  std::memcpy(&address.storage, &in, sizeof in);
  address.length = sizeof in;
  address.family = AF_INET;
  return address;
}

struct Listening {
  [[nodiscard]] util::Address address() const { return loopback(listener.port()); }

  rig::Listener listener;
};

// Accepts nothing and refuses nothing: connections wait until one of those before them is taken.
class Silent {
 public:
  Silent() {
    for (auto& socket : sockets_)
      socket = util::UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    sockaddr_in in{};
    socklen_t length = sizeof in;
    const util::Address any = loopback(0);
    EXPECT_EQ(bind(sockets_[0].get(), any.get(), any.length), 0);
    EXPECT_EQ(listen(sockets_[0].get(), 0), 0);
    EXPECT_EQ(getsockname(sockets_[0].get(), reinterpret_cast<sockaddr*>(&in), &length), 0);
    address_ = loopback(ntohs(in.sin_port));
    for (int i = 1; i <= 4; ++i) (void)connect(sockets_[i].get(), address_.get(), address_.length);
  }
  [[nodiscard]] util::Address address() const { return address_; }

 private:
  util::UniqueFd sockets_[5];  // the first listens
  util::Address address_;
};

class TcpDialTest : public testing::Test {
 protected:
  ~TcpDialTest() override {
    util::Event gone;
    engine_->post([this, &gone] {
      dial_.reset();
      gone.set();
    });
    EXPECT_TRUE(gone.wait(rig::hang_guard));
    engine_->stop();
  }

  // The place in the list of the address that it connected to, or why it did not.
  std::optional<std::size_t> connect(const std::vector<util::Address>& addresses, std::chrono::nanoseconds within) {
    util::Event done;
    std::optional<std::size_t> reached;
    engine_->post([&] {
      dial_.emplace(static_cast<Executor&>(*engine_), addresses, engine_->now() + within, &hint_,
                    [&](Result<TcpDial::Connected> result) {
                      if (result.ok()) {
                        connected_ = std::move(result.value());
                        for (std::size_t i = 0; i < addresses.size(); ++i) {
                          if (std::memcmp(&addresses[i].storage, &connected_.peer->storage, addresses[i].length) == 0) {
                            reached = i;
                          }
                        }
                      } else {
                        why_ = result.failure().detail;
                      }
                      done.set();
                    });
    });
    EXPECT_TRUE(done.wait(rig::hang_guard));
    return reached;
  }

  std::string why_;
  PeerHint hint_;

 private:
  std::shared_ptr<engine::Engine> engine_ =
      engine::ThreadEngine::start(boottime_clock(), [] { return std::uint64_t{4}; });
  std::optional<TcpDial> dial_;
  TcpDial::Connected connected_;
};

TEST_F(TcpDialTest, FirstThatAccepts_IsConnected) {
  const Listening open;
  const Listening second;
  const util::Address closed = loopback(test::free_port());
  EXPECT_EQ(connect({closed, closed}, 10s), std::nullopt);
  EXPECT_EQ(why_, "Connection refused");
  EXPECT_EQ(connect({closed, closed, open.address(), second.address()}, 10s), 2U);
}

TEST_F(TcpDialTest, SilentAddress_IsFollowedByTheNextInTime) {
  const Silent silent;
  const Listening open;
  EXPECT_EQ(connect({silent.address(), open.address()}, 1s), 1U);
}

TEST_F(TcpDialTest, AddressOfOtherConnections_ComesFirst) {
  const Listening first;
  const Listening second;
  const auto there = std::make_shared<const util::Address>(second.address());
  hint_.peer = there;
  EXPECT_EQ(connect({first.address(), second.address()}, 10s), 1U);
}

TEST_F(TcpDialTest, AddressOfAWrongServer_ComesLast) {
  const Listening first;
  const Listening second;
  const Listening third;
  const std::vector all = {first.address(), second.address(), third.address()};
  const auto there = std::make_shared<const util::Address>(second.address());
  hint_.peer = there;
  hint_.refuse(second.address());
  EXPECT_EQ(connect(all, 10s), 0U) << "it is the only one refused";
  hint_.refuse(first.address());
  EXPECT_EQ(connect(all, 10s), 2U);
  hint_.refuse(third.address());
  EXPECT_EQ(connect(all, 10s), 1U) << "it was refused first";
  hint_.refuse(second.address());
  EXPECT_EQ(connect(all, 10s), 0U);
  EXPECT_EQ(hint_.refused.size(), 3U) << "each once";
}

}  // namespace
}  // namespace dlock::common
