// Servers with limits and settings of their own; three servers, of which some fail.
#include <array>
#include <cstdio>
#include <functional>

#include "network/ensemble_room.hpp"
#include "tests/support/recording_observer.hpp"
#include "zookeeper/zookeeper_test.hpp"

namespace dlock::test {

namespace {

// --- What the server does not let us do ------------------------------------------------------------------------------

class ReadOnlyRootTest : public ZooKeeperTest {
 protected:
  ReadOnlyRootTest() : ZooKeeperTest(ZooKeeperConfig()) {}  // nobody may change it back
};

// The root is an administrator's: a lock lives on all the same, and what is there needs no right to what is above it.
TEST_F(ReadOnlyRootTest, RootIsReadOnly_LocksAndChrootsStillWork) {
  zk.create_all("/dlock");
  zk.create_all("/app");
  zk.forbid_changes("/");
  Contender own(steady({}, short_session), "a");
  const Lease lease = take(own.lock);
  await_renewal(lease);
  await_renewal(lease);
  EXPECT_TRUE(lease.held());
  EXPECT_FALSE(mentions(own.client.diagnose(), Finding::Severity::error, "locks cannot be created"));
  const Client below = steady({}, "/app?" + std::string(long_session));
  EXPECT_TRUE(below.initialize().empty());
}

// A server that answers the first request of a client without an identity by a refusal, and closes the connection.
class IdentityTest : public ZooKeeperTest {
 protected:
  IdentityTest()
      : ZooKeeperTest(ZooKeeperConfig{
            .properties = {"zookeeper.enforce.auth.enabled=true", "zookeeper.enforce.auth.schemes=digest"}}) {}
};

// Hazard: a server refuses a client and closes the connection
TEST_F(IdentityTest, WithoutIdentity_IsDeniedAndNeverReportedConnected) {
  for (const std::string& strategy : tested_strategies()) {
    const auto observer = std::make_shared<RecordingObserver>();
    Contender own(steady({.observer = observer}, "strategy=" + strategy), "a");
    const std::vector<std::function<void()>> calls = {
        [&] { (void)own.lock.acquire({.wait = 0s}); },
        [&] { (void)own.lock.acquire({.wait = conformance::guard()}); },
        [&] { (void)own.client.inspect("a"); },
    };
    for (const auto& call : calls) expect_failure(errc::access_denied, "auth=", call);
    EXPECT_TRUE(mentions(own.client.diagnose(), Finding::Severity::error, "auth="));
    EXPECT_EQ(observer->count("connected") + observer->count("reconnecting"), 0U);
  }
  Contender known(steady({}, "auth=digest:alice:al1ce-secret"), "a");
  EXPECT_TRUE(take(known.lock).release());
}

class QuotaTest : public ZooKeeperTest {
 protected:
  QuotaTest() : ZooKeeperTest(ZooKeeperConfig{.properties = {"zookeeper.enforceQuota=true"}}) {}
  // setquota -N of zkCli.sh.
  void allow_nodes(int count) {
    zk.create_all("/zookeeper/quota/dlock");
    zk.create("/zookeeper/quota/dlock/zookeeper_limits",
              "count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=" + std::to_string(count));
    zk.create("/zookeeper/quota/dlock/zookeeper_stats", "count=0,bytes=0");
  }
};

// Hazard: a quota is used up
TEST_F(QuotaTest, QuotaUsedUp_WaiterWaitsUntilThereIsRoom) {
  const auto observer = std::make_shared<RecordingObserver>();
  const Client client = steady({.observer = observer});
  DistributedLock other = client.make_lock("other");
  Lease lease = take(other);
  DistributedLock lock = client.make_lock("a");
  EXPECT_TRUE(take(lock).release());
  allow_nodes(4);  // those of the two locks, and of the holder
  std::error_code error;
  EXPECT_FALSE(lock.try_acquire({}, error).has_value());
  EXPECT_EQ(error, errc::unavailable) << error.message();
  Pending waiting(lock, {});
  await("the waiter is refused", [&] { return observer->count("warning a") == 1; });
  EXPECT_NE(observer->last_warning.reason.detail.find("QUOTAEXCEEDED"), std::string::npos);
  EXPECT_TRUE(lease.release());
  EXPECT_TRUE(waiting.lease().held());
  EXPECT_EQ(observer->count("warning a"), 1U);
}

// --- Nodes that the server removes -----------------------------------------------------------------------------------

class ReapingTest : public ZooKeeperTest {
 protected:
  ReapingTest() : ZooKeeperTest(ZooKeeperConfig{.properties = {"znode.container.checkIntervalMs=100"}}) {}
};

// Shows: no-residue
TEST_F(ReapingTest, UnusedLock_IsRemovedByTheServerAndMadeAgain) {
  Contender ours(steady(), "reaped");
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(take(ours.lock).release());
    await("the node stays", [&] { return !zk.get(path("reaped")); });
  }
}

// Shows: growing-tokens, no-residue
TEST_F(ReapingTest, NodeBeingRemoved_LockIsGrantedWithGrowingTokens) {
  Contender own(steady(), "reaped");
  FencingToken last;
  for (int i = 0; i < 500; ++i) {
    const Lease lease = take(own.lock);
    ASSERT_GT(lease.token(), last);
    last = lease.token();
  }
}

// --- Three servers, of which some fail: what only ZooKeeper does. The rest is in tests/integration/network. ---

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
