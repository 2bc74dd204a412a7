// Three servers, of which some fail: what only ZooKeeper does. The rest is in tests/integration/network.
#include <array>
#include <atomic>
#include <cstdio>

#include "network/ensemble_room.hpp"

namespace dlock::test {

namespace {

class ZooKeeperEnsembleTest : public EnsembleTest {
 protected:
  // Which server a session is connected to.
  [[nodiscard]] std::optional<std::size_t> server_of(std::int64_t session) const {
    std::array<char, 32> text{};
    (void)std::snprintf(text.data(), text.size(), "sid=0x%llx,", static_cast<unsigned long long>(session));
    for (std::size_t i = 0; i < ensemble.size(); ++i) {
      if (ensemble.server(i).running() && ensemble.server(i).ask("cons").find(text.data()) != std::string::npos)
        return i;
    }
    return std::nullopt;
  }
};

// Shows: hole zookeeper-unresponsive-server
TEST_F(ZooKeeperEnsembleTest, FollowerFrozenBeyondTheSession_HolderKeepsItsLock) {
  // A client library hears nothing for two thirds of it before it looks for another server; a holder may believe in it
  // for three quarters. The time in between is for a busy machine.
  constexpr auto session_timeout = 30s;
  const std::size_t leader = ensemble.leader();
  Tree tree(ensemble.server(leader).address());
  // The client library picks a server at random.
  for (int attempt = 0; attempt < 50; ++attempt) {
    const auto log = std::make_shared<EventLog>();
    Contender own(client("session_timeout=30s", log), "follower");
    Lease lease = take(own.lock);
    const auto at = server_of(tree.holder("follower").value().owner);
    ASSERT_TRUE(at.has_value());
    if (*at == leader) continue;
    const TimePoint start = LeaseClock::now();
    ensemble.server(*at).freeze();
    log->reconnecting.wait("the standstill is not noticed");
    log->connected.wait("no other server is found", 2);
    LossEvent loss(lease);
    const auto rest = start + session_timeout + 1s - LeaseClock::now();
    EXPECT_FALSE(loss.event().wait_for(rest)) << "the session went on elsewhere";
    EXPECT_TRUE(lease.held());
    ensemble.server(*at).thaw();
    EXPECT_TRUE(lease.release());
    return;
  }
  FAIL() << "no client is connected to a follower";
}

TEST(ReadOnlyTest, ReadOnlyServer_GrantsNothing) {
  ZooKeeperEnsemble ensemble({.tick = 200ms, .properties = {"readonlymode.enabled=true"}});
  const std::size_t survivor = ensemble.follower();
  Contender ours(connect_patiently(ensemble.server(survivor).url(long_session), impatient()), "read-only");
  EXPECT_TRUE(take(ours.lock).release());
  for (std::size_t i = 0; i < ensemble.size(); ++i) {
    if (i != survivor) ensemble.server(i).kill();
  }
  await("nobody is left without a quorum", [&] { return ensemble.server(survivor).mode() == "read-only"; });
  std::error_code error;
  (void)ours.lock.acquire({.wait = 1s}, error);
  EXPECT_TRUE(error == errc::unavailable || error == errc::ambiguous) << error.message();
  Pending waiting(ours.lock, {});
  ensemble.start();
  EXPECT_TRUE(waiting.lease().held());
}

}  // namespace

}  // namespace dlock::test
