// What may happen to the nodes of a queue, and to those above it.
#include "zookeeper/zookeeper_test.hpp"

namespace dlock::test {

namespace {

// As Curator would call its node.
constexpr const char* foreign_guid = "_c_0e1cf9d8-5f6c-4a49-8f0a-1c0f0c3f1b2d-lock-";

class QueueTest : public ZooKeeperTest {
 protected:
  using ZooKeeperTest::ZooKeeperTest;

  // A node of another client, with a number of our choosing: the server's counter cannot be driven up in a test.
  std::string add_numbered(const std::string& name, const std::string& number) {
    return add_foreign(name, foreign_guid + number, ZooKeeperClient::Kind::ephemeral);
  }
};

// How an acquire is refused.
Failure refusal(DistributedLock& lock) {
  try {
    (void)lock.acquire({.wait = conformance::guard()});
  } catch (const Error& e) {
    return {e.code(), e.detail()};
  }
  return {};
}

class PoisonedQueueTest : public QueueTest, public ::testing::WithParamInterface<const char*> {};

// Behind 2147483647 the server's counter sticks or becomes negative, and says nothing any more about who was first.
TEST_P(PoisonedQueueTest, NumbersUsedUp_AreRefusedWithARemedy) {
  const Client client = steady();
  const std::string sibling = add_numbered("poisoned", GetParam());
  DistributedLock lock = client.make_lock("poisoned");
  const Failure failure = refusal(lock);
  EXPECT_EQ(failure.code, errc::protocol);
  EXPECT_NE(failure.detail.find(path("poisoned")), std::string::npos) << failure.detail;
  EXPECT_NE(failure.detail.find("delete"), std::string::npos) << failure.detail;
  await_residue("poisoned", 1);  // the sibling alone
  // What the operator is told to do helps.
  EXPECT_TRUE(zk.remove(sibling));
  EXPECT_TRUE(zk.remove(path("poisoned")));
  EXPECT_TRUE(take(lock).held());
}

INSTANTIATE_TEST_SUITE_P(, PoisonedQueueTest,
                         ::testing::Values("2147483647", "2147418112", "-2147483648", "-0000000001"),
                         [](const auto& each) {
                           std::string name = each.param;
                           if (name.front() == '-') name = "minus_" + name.substr(1);
                           return name;
                         });

TEST_F(QueueTest, NodesBeforeDeleted_WaiterKeepsItsTurn) {
  const Client client = steady({.response_timeout = 3s});
  std::vector<std::string> before;
  for (int i = 0; i < 5; ++i) before.push_back(add_foreign("line", foreign_guid));
  DistributedLock lock = client.make_lock("line");
  Pending waiting(lock, {});
  await_residue("line", 6);
  for (const std::size_t i : {2U, 4U, 3U, 0U}) {
    EXPECT_TRUE(zk.remove(before[i]));
    EXPECT_FALSE(lock.try_acquire().has_value());
    EXPECT_FALSE(waiting.done());
  }
  EXPECT_TRUE(zk.remove(before[1]));
  EXPECT_TRUE(waiting.lease().held());
}

TEST_F(QueueTest, AllNodesDeleted_HolderLosesAndWaiterIsGranted) {
  const Client client = steady();
  DistributedLock lock = client.make_lock("razed");
  DistributedLock others = client.make_lock("razed");
  const Lease lease = take(lock);
  const LossEvent loss(lease);
  Pending waiting(others, {});
  await_residue("razed", 2);
  zk.remove_all("/dlock");
  loss.event().wait("the loss is not signalled");
  const Lease next = waiting.lease();
  EXPECT_TRUE(next.held());
  EXPECT_GT(next.token(), lease.token());
}

class ReapingTest : public QueueTest {
 protected:
  ReapingTest() : QueueTest({.properties = {"znode.container.checkIntervalMs=100"}}) {}
};

TEST_F(ReapingTest, UnusedLock_IsRemovedByTheServerAndMadeAgain) {
  const Client client = steady();
  DistributedLock lock = client.make_lock("reaped");
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(take(lock).release());
    await("the node stays", [&] { return !zk.get(path("reaped")); });
  }
}

TEST_F(ReapingTest, NodeBeingRemoved_LockIsGrantedWithGrowingTokens) {
  const Client client = steady();
  DistributedLock lock = client.make_lock("reaped");
  FencingToken last;
  for (int i = 0; i < 500; ++i) {
    const Lease lease = take(lock);
    ASSERT_GT(lease.token(), last);
    last = lease.token();
  }
}

// The client library sends all its watches in one packet when it reconnects, and a server refuses more than a megabyte.
TEST_F(QueueTest, MegabyteOfWatches_SurvivesAReconnection) {
  constexpr std::size_t locks = 2000;
  const Client client = disturbed();
  const Client other_client = steady();
  const auto name = [](std::size_t i) { return std::string(500, 'n') + std::to_string(i); };
  std::vector<Lease> leases;
  std::vector<DistributedLock> waiting_for;
  std::vector<Pending> waiting;
  {
    std::vector<Pending> granted;
    for (std::size_t i = 0; i < locks; ++i) {
      DistributedLock others = other_client.make_lock(name(i));
      granted.emplace_back(others, AcquireOptions{});
    }
    for (Pending& each : granted) leases.push_back(each.lease());
  }
  for (std::size_t i = 0; i < locks; ++i) {
    waiting_for.push_back(client.make_lock(name(i)));
    waiting.emplace_back(waiting_for.back(), AcquireOptions{});
  }
  await_residue(name(locks - 1), 2);
  proxy.drop();
  leases.clear();
  for (Pending& each : waiting) EXPECT_TRUE(each.lease().held());
}

}  // namespace

}  // namespace dlock::test
