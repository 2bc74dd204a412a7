// What nodes are called: ours, and those of programs that are no part of the tests (interoperation_test.cpp has
// others).
#include <regex>

#include "zookeeper/zookeeper_test.hpp"

namespace dlock::test {

namespace {

constexpr const char* go_zks_node = "_c_0e1cf9d85f6c4a498f0a1c0f0c3f1b2d-lock-";

using NodeNamesTest = ZooKeeperTest;

// --- Our own ---------------------------------------------------------------------------------------------------------

TEST_F(NodeNamesTest, OurNode_IsNamedAsCuratorsWithOurHolder) {
  const Client client = steady({.label = "billing"});
  DistributedLock lock = client.make_lock("orders/42");
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

TEST_F(NodeNamesTest, KazoosLayout_HasItsNames) {
  const Client client = steady({}, "layout=kazoo");
  DistributedLock lock = client.make_lock("shared");
  const Lease lease = take(lock);
  const auto nodes = queue("shared");
  ASSERT_EQ(nodes.size(), 1U);
  EXPECT_TRUE(std::regex_match(nodes.front(), std::regex("[0-9a-f]{32}__lock__[0-9]{10}"))) << nodes.front();
}

// --- Nodes of those that no program is here for ----------------------------------------------------------------------

TEST_F(NodeNamesTest, NodeOfGoZk_IsWaitedFor) {
  const Client client = steady();
  DistributedLock lock = client.make_lock("shared");
  const std::string theirs = add_foreign("shared", go_zks_node);
  EXPECT_FALSE(lock.try_acquire().has_value());
  Pending waiting(lock, {});
  await_residue("shared", 2);
  EXPECT_TRUE(zk.remove(theirs));
  EXPECT_TRUE(waiting.lease().held());
}

// As .NET's.
TEST_F(NodeNamesTest, PlainNumberedNode_IsRefused) {
  const Client client = steady();
  DistributedLock lock = client.make_lock("shared");
  (void)add_foreign("shared", "lock-");
  for (const Duration wait : {Duration(0ns), Duration(conformance::guard())}) {
    std::error_code error;
    EXPECT_FALSE(lock.acquire({.wait = wait}, error).has_value());
    EXPECT_EQ(error, errc::protocol);
  }
  await_residue("shared", 1);
}

TEST_F(NodeNamesTest, UnknownNode_IsLeftAloneWithOneWarning) {
  const auto log = std::make_shared<EventLog>();
  const Client client = steady({.observer = log});
  const std::string theirs = add_foreign("shared", "config", ZooKeeperClient::Kind::persistent);
  DistributedLock lock = client.make_lock("shared");
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(take(lock).release());
  EXPECT_EQ(log->warnings_with("config"), 1U);
  EXPECT_TRUE(zk.get(theirs).has_value());
}

}  // namespace

}  // namespace dlock::test
