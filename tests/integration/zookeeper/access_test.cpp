// What the server does not let us do.
#include <functional>

#include "tests/support/recording_observer.hpp"
#include "zookeeper/zookeeper_test.hpp"

namespace dlock::test {

namespace {

class AccessTest : public ZooKeeperTest {
 protected:
  // Nobody else may remove its nodes, so that it has a server of its own.
  explicit AccessTest(ZooKeeperConfig config = {}) : ZooKeeperTest(std::move(config)) {}
};

constexpr const char* alice = "auth=digest:alice:al1ce-secret";
constexpr const char* mallory = "auth=digest:mallory:mall0ry-secret";

TEST_F(AccessTest, LockOfOneIdentity_IsDeniedToOthers) {
  const Client owner = steady({}, alice);
  const Client again = steady({}, alice);
  DistributedLock lock = owner.make_lock("private");
  DistributedLock same = again.make_lock("private");
  {
    const Lease lease = take(lock);
    EXPECT_FALSE(same.try_acquire().has_value());
    EXPECT_THROW((void)zk.children(path("private")), ZooKeeperRefusal);
  }
  EXPECT_TRUE(take(same).release());
  for (const std::string parameters : {mallory, long_session}) {
    const Client stranger = steady({}, parameters);
    DistributedLock refused = stranger.make_lock("private");
    try {
      (void)refused.acquire({.wait = conformance::guard()});
      ADD_FAILURE() << "a stranger gets the lock";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), errc::access_denied);
      EXPECT_EQ(std::string(e.what()).find("secret"), std::string::npos) << e.what();
    }
    std::error_code error;
    EXPECT_FALSE(refused.try_acquire({}, error).has_value());
    EXPECT_EQ(error, errc::access_denied) << error.message();
  }
  EXPECT_TRUE(take(lock).held());
}

TEST_F(AccessTest, Reconnected_KeepsItsIdentity) {
  const Client client = disturbed({}, std::string(alice) + "&" + short_session);
  DistributedLock lock = client.make_lock("private");
  EXPECT_TRUE(take(lock).release());
  proxy.drop();
  EXPECT_TRUE(take(lock).release());
  Lease lease = take(lock);
  const LossEvent loss(lease);
  cut();
  loss.event().wait("the loss is not signalled");
  heal();
  EXPECT_TRUE(take(lock).release());
}

// The root is an administrator's: a lock lives on all the same, and what is there needs no right to what is above it.
TEST_F(AccessTest, RootIsReadOnly_LocksAndChrootsStillWork) {
  zk.create_all("/dlock");
  zk.create_all("/app");
  zk.forbid_changes("/");
  const Client client = steady({}, short_session);
  DistributedLock lock = client.make_lock("a");
  const Lease lease = take(lock);
  await_renewal(lease);
  await_renewal(lease);
  EXPECT_TRUE(lease.held());
  EXPECT_FALSE(mentions(client.diagnose(), Finding::Severity::error, "locks cannot be created"));
  const Client below = steady({}, "/app?" + std::string(long_session));
  EXPECT_TRUE(below.initialize().empty());
}

TEST_F(AccessTest, MissingChroot_IsAnErrorThatNamesIt) {
  const Client client = steady({}, "/not/there?" + std::string(long_session));
  DistributedLock lock = client.make_lock("a");
  try {
    (void)lock.acquire({.wait = conformance::guard()});
    ADD_FAILURE() << "the lock was taken";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), errc::invalid_argument);
    EXPECT_NE(e.detail().find("/not/there"), std::string::npos) << e.detail();
  }
  EXPECT_FALSE(zk.get("/not").has_value());
  EXPECT_TRUE(mentions(client.diagnose(), Finding::Severity::error, "/not/there"));
}

TEST_F(AccessTest, MissingChroot_IsMadeByInitialize) {
  const Client client = steady({}, "/not/there?" + std::string(long_session));
  EXPECT_EQ(client.initialize(), (std::vector<std::string>{"node /not", "node /not/there"}));
  EXPECT_TRUE(client.initialize().empty());
  DistributedLock lock = client.make_lock("a");
  const Lease lease = take(lock);
  EXPECT_EQ(zk.children("/not/there/dlock/a").value().size(), 1U);
}

// A server that answers the first request of a client without an identity by a refusal, and closes the connection.
class IdentityTest : public AccessTest {
 protected:
  IdentityTest()
      : AccessTest({.properties = {"zookeeper.enforce.auth.enabled=true", "zookeeper.enforce.auth.schemes=digest"}}) {}
};

TEST_F(IdentityTest, WithoutIdentity_IsDeniedAndNeverReportedConnected) {
  for (const std::string& strategy : tested_strategies()) {
    const auto observer = std::make_shared<RecordingObserver>();
    const Client client = steady({.observer = observer}, "strategy=" + strategy);
    DistributedLock lock = client.make_lock("a");
    const std::vector<std::function<void()>> calls = {
        [&] { (void)lock.acquire({.wait = 0s}); },
        [&] { (void)lock.acquire({.wait = conformance::guard()}); },
        [&] { (void)client.inspect("a"); },
    };
    for (const auto& call : calls) {
      try {
        call();
        ADD_FAILURE() << "it was not refused";
      } catch (const Error& e) {
        EXPECT_EQ(e.code(), errc::access_denied);
        EXPECT_NE(e.detail().find("auth="), std::string::npos) << e.detail();
      }
    }
    EXPECT_TRUE(mentions(client.diagnose(), Finding::Severity::error, "auth="));
    EXPECT_EQ(observer->count("connected") + observer->count("reconnecting"), 0U);
  }
  const Client known = steady({}, alice);
  DistributedLock lock = known.make_lock("a");
  EXPECT_TRUE(take(lock).release());
}

class QuotaTest : public AccessTest {
 protected:
  QuotaTest() : AccessTest({.properties = {"zookeeper.enforceQuota=true"}}) {}
  // setquota -N of zkCli.sh.
  void allow_nodes(int count) {
    zk.create_all("/zookeeper/quota/dlock");
    zk.create("/zookeeper/quota/dlock/zookeeper_limits",
              "count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=" + std::to_string(count));
    zk.create("/zookeeper/quota/dlock/zookeeper_stats", "count=0,bytes=0");
  }
};

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

class ShortSessionsTest : public AccessTest {
 protected:
  ShortSessionsTest() : AccessTest({.max_session = 1s}) {}
};

TEST_F(ShortSessionsTest, ServerGrantsLess_LeaseIsAsShort) {
  const Client client = steady({}, "session_timeout=60s");
  DistributedLock lock = client.make_lock("granted");
  const Lease lease = take(lock);
  EXPECT_LE(lease.valid_until() - LeaseClock::now(), 1s);
  EXPECT_TRUE(lease.held());
  EXPECT_TRUE(mentions(client.diagnose(), Finding::Severity::warning, "1s"))
      << "nobody says that the server granted less than was asked for";
}

class LongSessionsTest : public AccessTest {
 protected:
  LongSessionsTest() : AccessTest({.min_session = 8s}) {}
};

TEST_F(LongSessionsTest, ServerGrantsMore_LeaseIsAsLong) {
  const Client client = steady({}, "session_timeout=1s");
  DistributedLock lock = client.make_lock("granted");
  const Lease lease = take(lock);
  EXPECT_GT(lease.valid_until() - LeaseClock::now(), 1s);
  EXPECT_LE(lease.valid_until() - LeaseClock::now(), 8s);
}

TEST(ReadOnlyTest, ReadOnlyServer_GrantsNothing) {
  ZooKeeperEnsemble ensemble({.tick = 200ms, .properties = {"readonlymode.enabled=true"}});
  const std::size_t survivor = ensemble.follower();
  const Client client = connect_patiently(ensemble.server(survivor).url(long_session), impatient());
  DistributedLock lock = client.make_lock("read-only");
  EXPECT_TRUE(take(lock).release());
  for (std::size_t i = 0; i < ensemble.size(); ++i) {
    if (i != survivor) ensemble.server(i).kill();
  }
  await("nobody is left without a quorum", [&] { return ensemble.server(survivor).mode() == "read-only"; });
  std::error_code error;
  (void)lock.acquire({.wait = 1s}, error);
  EXPECT_TRUE(error == errc::unavailable || error == errc::ambiguous) << error.message();
  Pending waiting(lock, {});
  ensemble.start();
  EXPECT_TRUE(waiting.lease().held());
}

}  // namespace

}  // namespace dlock::test
