// Hosts that accept connections and never answer, beside one that does.
#include <memory>
#include <vector>

#include "torture/rig/socket.hpp"
#include "zookeeper/zookeeper_test.hpp"

namespace dlock::test {

namespace {

// Far less than the two thirds of the session timeout for which the client library stays with a silent host.
constexpr auto patient = 30s;

class SilentHostTest : public ZooKeeperTest {
 protected:
  [[nodiscard]] static std::string url(const std::vector<std::uint16_t>& ports) {
    std::string hosts;
    for (const auto port : ports) hosts += (hosts.empty() ? "" : ",") + ("127.0.0.1:" + std::to_string(port));
    return "zookeeper://" + hosts + "?session_timeout=100s";
  }
  const rig::Listener silent;  // nobody ever accepts: the system does
  const rig::Listener silent_too;
};

// Which host a client begins with is drawn at random, so that each order occurs.
TEST_F(SilentHostTest, OneHostAnswers_EachClientFindsIt) {
  const std::vector<std::uint16_t> lists[] = {{silent.port(), server.port()},
                                              {server.port(), silent.port()},
                                              {silent.port(), server.port(), silent_too.port()}};
  std::vector<Client> clients;
  std::vector<DistributedLock> locks;
  std::vector<Pending> acquires;
  for (int i = 0; i < 12; ++i) {
    clients.push_back(connect_patiently(url(lists[i % 3]), {.connect_timeout = 600ms}));
    locks.push_back(clients.back().make_lock("n" + std::to_string(i)));
  }
  for (DistributedLock& lock : locks) acquires.emplace_back(lock, AcquireOptions{.wait = patient});
  for (Pending& acquire : acquires) EXPECT_TRUE(acquire.lease().held());
}

// The server never sees what was sent while nothing passed, so that only another attempt can be answered.
TEST_F(SilentHostTest, NoHostAnswers_IsUnavailableUntilOneDoes) {
  proxy.set({.mode = rig::Traffic::Mode::swallow});
  const Client client = connect_patiently(url({proxy.port()}), {.response_timeout = 300ms, .connect_timeout = 200ms});
  DistributedLock lock = client.make_lock("alone");
  std::error_code error;
  EXPECT_FALSE(lock.try_acquire({}, error).has_value());
  EXPECT_EQ(error, errc::unavailable);
  Pending waiting(lock, {.wait = patient});
  proxy.pass();
  EXPECT_TRUE(waiting.lease().held());
}

}  // namespace

}  // namespace dlock::test
