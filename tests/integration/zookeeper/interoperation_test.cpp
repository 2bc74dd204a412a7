// Locks that other languages' libraries take on the same nodes.
#include <regex>

#include "zookeeper/zookeeper_test.hpp"

namespace dlock::test {

namespace {

constexpr const char* curator = "_c_0e1cf9d8-5f6c-4a49-8f0a-1c0f0c3f1b2d-lock-";
constexpr const char* go_zk = "_c_0e1cf9d85f6c4a498f0a1c0f0c3f1b2d-lock-";
constexpr const char* kazoo = "0e1cf9d85f6c4a498f0a1c0f0c3f1b2d__lock__";
constexpr const char* kazoo_layout = "layout=kazoo";

class InteroperationTest : public ZooKeeperTest {
 protected:
  // Somebody else holds the lock, then lets go.
  void expect_waits_for(const std::string& node, const std::string& parameters = long_session) {
    const Client client = steady({}, parameters);
    DistributedLock lock = client.lock("shared");
    const std::string theirs = add_foreign("shared", node);
    EXPECT_FALSE(lock.try_acquire().has_value());
    Pending waiting(lock, {});
    await_residue("shared", 2);
    EXPECT_TRUE(zk.remove(theirs));
    EXPECT_TRUE(waiting.lease().held());
  }
  // A node whose owner does not know of ours: the lock would not exclude.
  void expect_refused(const std::string& node, const std::string& named, const std::string& parameters = long_session) {
    const Client client = steady({}, parameters);
    DistributedLock lock = client.lock("shared");
    (void)add_foreign("shared", node);
    std::error_code error;
    EXPECT_FALSE(lock.acquire({}, error).has_value());
    EXPECT_EQ(error, errc::protocol);
    try {
      (void)lock.acquire({.wait = conformance::guard()});
      ADD_FAILURE() << "the lock was taken";
    } catch (const Error& e) {
      EXPECT_NE(e.detail().find(named), std::string::npos) << e.detail();
    }
    await_residue("shared", 1);
  }
};

TEST_F(InteroperationTest, OurNodeIsCalledAsCuratorsAndSaysWhoWeAre) {
  const Client client = steady({.label = "billing"});
  DistributedLock lock = client.lock("orders/42");
  const Lease lease = take(lock);
  EXPECT_EQ(path("orders/42"), "/dlock/orders%2F42");
  const auto nodes = queue("orders/42");
  ASSERT_EQ(nodes.size(), 1U);
  const std::regex form("_c_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}-lock-[0-9]{10}");
  EXPECT_TRUE(std::regex_match(nodes.front(), form)) << nodes.front();
  const auto node = holder("orders/42").value();
  EXPECT_EQ(node.data, client.holder());
  EXPECT_NE(node.owner, 0);
  EXPECT_EQ(static_cast<std::uint64_t>(node.created), lease.token().value());
  // A number in there would be taken for a limit by kazoo's Semaphore.
  EXPECT_EQ(zk.get(path("orders/42")).value().data, "");
}

TEST_F(InteroperationTest, ThePrefixIsTheOthersDirectory) {
  const Client client = steady({}, "prefix=/curator/locks");
  DistributedLock lock = client.lock("a");
  const Lease lease = take(lock);
  EXPECT_EQ(zk.children("/curator/locks/a").value().size(), 1U);
}

TEST_F(InteroperationTest, WaitsForCurator) {
  expect_waits_for(curator);
}

TEST_F(InteroperationTest, WaitsForGoZk) {
  expect_waits_for(go_zk);
}

TEST_F(InteroperationTest, WaitsForKazooInItsLayout) {
  expect_waits_for(kazoo, kazoo_layout);
}

TEST_F(InteroperationTest, WaitsForKazoosReadersInItsLayout) {
  expect_waits_for("0e1cf9d85f6c4a498f0a1c0f0c3f1b2d__rlock__", kazoo_layout);
}

// Whoever came later has a higher number, so Curator waits for us.
TEST_F(InteroperationTest, StandsBeforeThoseWhoComeLater) {
  const Client client = steady();
  DistributedLock lock = client.lock("shared");
  Lease lease = take(lock);
  const std::string theirs = add_foreign("shared", curator);
  EXPECT_EQ(path("shared") + "/" + queue("shared").back(), theirs);
  EXPECT_TRUE(lease.release());
  EXPECT_FALSE(lock.try_acquire().has_value());
}

TEST_F(InteroperationTest, KazoosLayoutHasItsNames) {
  const Client client = steady({}, kazoo_layout);
  DistributedLock lock = client.lock("shared");
  const Lease lease = take(lock);
  const auto nodes = queue("shared");
  ASSERT_EQ(nodes.size(), 1U);
  EXPECT_TRUE(std::regex_match(nodes.front(), std::regex("[0-9a-f]{32}__lock__[0-9]{10}"))) << nodes.front();
}

TEST_F(InteroperationTest, RefusesKazooAmongCurators) {
  expect_refused(kazoo, "kazoo");
}

TEST_F(InteroperationTest, RefusesCuratorAmongKazoos) {
  expect_refused(curator, "curator", kazoo_layout);
}

TEST_F(InteroperationTest, RefusesCuratorsReadWriteLock) {
  expect_refused("_c_0e1cf9d8-5f6c-4a49-8f0a-1c0f0c3f1b2d-__WRIT__", "read-write");
}

// As Curator 5.4 keeps them: a mutex that hands out leases one at a time, below two containers.
TEST_F(InteroperationTest, RefusesCuratorsSemaphoresAndIsNotInTheWayOfWhatTheyLeaveBehind) {
  const std::string leases = path("shared") + "/leases";
  const std::string locks = path("shared") + "/locks";
  zk.create_all(path("shared"));
  for (const std::string& each : {leases, locks}) (void)zk.create(each, "", ZooKeeperClient::Kind::container);
  const std::string guid = "_c_0e1cf9d8-5f6c-4a49-8f0a-1c0f0c3f1b2d";
  for (const auto& [parent, node] : {std::pair(leases, "-lease-"), std::pair(locks, "-lock-")}) {
    const std::string theirs = zk.create(parent + "/" + guid + node, "127.0.0.1", ZooKeeperClient::Kind::sequential);
    for (const std::string parameters : {"layout=curator", "layout=kazoo", "strategy=sequential-herd"}) {
      const Client client = steady({}, parameters + "&" + long_session);
      DistributedLock lock = client.lock("shared");
      std::error_code error;
      EXPECT_FALSE(lock.acquire({}, error).has_value());
      EXPECT_EQ(error, errc::protocol);
      EXPECT_FALSE(lock.try_acquire({}, error).has_value());
      EXPECT_EQ(error, errc::protocol);
      EXPECT_THROW((void)client.inspect("shared"), Error);
    }
    EXPECT_TRUE(zk.remove(theirs));
    const Client client = steady();
    DistributedLock lock = client.lock("shared");
    EXPECT_TRUE(take(lock).release());
    EXPECT_FALSE(client.inspect("shared").held);
  }
}

TEST_F(InteroperationTest, RefusesTheRecipeOfTheCLibrary) {
  expect_refused("x-0123456789abcdef-", "recipe");
}

TEST_F(InteroperationTest, RefusesPlainNumberedNodes) {
  expect_refused("lock-", "lock-");
}

// The two sort by number alone; ours would be one of two with the same.
TEST_F(InteroperationTest, ANodeOfOurNumberIsFirstIfItIsOlder) {
  const Client client = steady();
  const std::string theirs =
      add_foreign("shared", curator + std::string("0000000001"), ZooKeeperClient::Kind::ephemeral);
  DistributedLock lock = client.lock("shared");
  Pending waiting(lock, {});  // the second child, so its number is 1 as well
  await_residue("shared", 2);
  EXPECT_FALSE(lock.try_acquire().has_value());
  EXPECT_FALSE(waiting.done());
  EXPECT_TRUE(zk.remove(theirs));
  EXPECT_TRUE(waiting.lease().held());
}

TEST_F(InteroperationTest, ANodeThatIsNoLocksIsMentionedOnceAndLeftAlone) {
  const auto log = std::make_shared<EventLog>();
  const Client client = steady({.observer = log});
  const std::string theirs = add_foreign("shared", "config", ZooKeeperClient::Kind::persistent);
  DistributedLock lock = client.lock("shared");
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(take(lock).release());
  EXPECT_EQ(log->warnings_with("config"), 1U);
  EXPECT_TRUE(zk.get(theirs).has_value());
}

TEST_F(InteroperationTest, OthersAreSeenByWhoAsks) {
  const Client client = steady();
  (void)add_foreign("shared", curator);
  (void)add_foreign("shared", curator);
  const LockInfo info = client.inspect("shared");
  EXPECT_TRUE(info.held);
  EXPECT_EQ(info.holder, "elsewhere");
  EXPECT_EQ(info.waiters, 1U);
  EXPECT_EQ(info.token.value(), static_cast<std::uint64_t>(holder("shared").value().created));
}

}  // namespace

}  // namespace dlock::test
