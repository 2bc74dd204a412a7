// Which of a host's addresses a connection is made to, over real sockets of this machine.
#include "backends/common/tcp_dial.hpp"

#include <arpa/inet.h>
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
#include "util/event.hpp"

namespace dlock::common {
namespace {

using namespace std::chrono_literals;

util::Address address_of(const char* ip, std::uint16_t port) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_port = htons(port);
  EXPECT_EQ(inet_pton(AF_INET, ip, &in.sin_addr), 1);
  util::Address address;
  std::memcpy(&address.storage, &in, sizeof in);
  address.length = sizeof in;
  address.family = AF_INET;
  return address;
}

class Listening {
 public:
  explicit Listening(const char* ip, int backlog = 8) : ip_(ip) {
    socket_ = util::UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const util::Address any = address_of(ip, 0);
    EXPECT_EQ(bind(socket_.get(), any.get(), any.length), 0);
    EXPECT_EQ(listen(socket_.get(), backlog), 0);
  }
  [[nodiscard]] util::Address address() const {
    sockaddr_in in{};
    socklen_t length = sizeof in;
    EXPECT_EQ(getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&in), &length), 0);
    return address_of(ip_, ntohs(in.sin_port));
  }

 private:
  const char* ip_;
  util::UniqueFd socket_;
};

// Accepts nothing and refuses nothing: connections wait until one of those before them is taken.
class Silent {
 public:
  Silent() : listening_("127.0.0.1", 0) {
    const util::Address address = listening_.address();
    for (auto& socket : waiting_) {
      socket = util::UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
      (void)connect(socket.get(), address.get(), address.length);
    }
  }
  [[nodiscard]] util::Address address() const { return listening_.address(); }

 private:
  Listening listening_;
  util::UniqueFd waiting_[4];
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
  const Listening open("127.0.0.1");
  const Listening second("127.0.0.1");
  const util::Address closed = address_of("127.0.0.1", test::free_port());
  EXPECT_EQ(connect({closed, closed}, 10s), std::nullopt);
  EXPECT_EQ(why_, "Connection refused");
  EXPECT_EQ(connect({closed, closed, open.address(), second.address()}, 10s), 2U);
}

TEST_F(TcpDialTest, SilentAddress_IsFollowedByTheNextInTime) {
  const Silent silent;
  const Listening open("127.0.0.1");
  EXPECT_EQ(connect({silent.address(), open.address()}, 1s), 1U);
}

TEST_F(TcpDialTest, AddressOfOtherConnections_ComesFirst) {
  const Listening first("127.0.0.1");
  const Listening second("127.0.0.1");
  const auto there = std::make_shared<const util::Address>(second.address());
  hint_.peer = there;
  EXPECT_EQ(connect({first.address(), second.address()}, 10s), 1U);
}

TEST_F(TcpDialTest, AddressOfAWrongServer_ComesLast) {
  const Listening first("127.0.0.1");
  const Listening second("127.0.0.1");
  const Listening third("127.0.0.1");
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
