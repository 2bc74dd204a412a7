// The nodes of a queue: their names, what may happen to them, and what a hand-over costs the servers. Nodes of other
// programs, by these themselves: interoperation_test.cpp.
#include <deque>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "zookeeper/zookeeper_test.hpp"

namespace dlock::test {

namespace {

// As Curator would call its node.
constexpr const char* foreign_guid = "_c_0e1cf9d8-5f6c-4a49-8f0a-1c0f0c3f1b2d-lock-";

class QueueTest : public ZooKeeperTest {
 protected:
  // A node of another client, with a number of our choosing: the server's counter cannot be driven up in a test.
  std::string add_numbered(const std::string& name, const std::string& number) {
    return add_foreign(name, foreign_guid + number, ZooKeeperClient::Kind::ephemeral);
  }
};

class PoisonedQueueTest : public QueueTest, public ::testing::WithParamInterface<const char*> {};

// Behind 2147483647 the server's counter sticks or becomes negative, and says nothing any more about who was first.
TEST_P(PoisonedQueueTest, NumbersUsedUp_AreRefusedWithARemedy) {
  Contender ours(steady(), "poisoned");
  const std::string sibling = add_numbered("poisoned", GetParam());
  for (const std::string& text : {path("poisoned"), std::string("delete")}) {
    expect_failure(errc::protocol, text, [&] { (void)ours.lock.acquire({.wait = conformance::guard()}); });
  }
  await_residue("poisoned", 1);  // the sibling alone
  // What the operator is told to do helps.
  EXPECT_TRUE(zk.remove(sibling));
  EXPECT_TRUE(zk.remove(path("poisoned")));
  EXPECT_TRUE(take(ours.lock).held());
}

INSTANTIATE_TEST_SUITE_P(, PoisonedQueueTest,
                         ::testing::Values("2147483647", "2147418112", "-2147483648", "-0000000001"),
                         [](const auto& each) {
                           std::string name = each.param;
                           if (name.front() == '-') name = "minus_" + name.substr(1);
                           return name;
                         });

TEST_F(QueueTest, NodesBeforeDeleted_WaiterKeepsItsTurn) {
  Contender own(steady({.response_timeout = 3s}), "line");
  std::vector<std::string> before;
  for (int i = 0; i < 5; ++i) before.push_back(add_foreign("line", foreign_guid));
  Pending waiting(own.lock, {});
  await_residue("line", 6);
  for (const std::size_t i : {2U, 4U, 3U, 0U}) {
    EXPECT_TRUE(zk.remove(before[i]));
    EXPECT_FALSE(own.lock.try_acquire().has_value());
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

// --- Names -----------------------------------------------------------------------------------------------------------

TEST_F(QueueTest, OurNode_IsNamedAsCuratorsWithOurHolder) {
  Contender ours(steady({.label = "billing"}), "orders/42");
  const Lease lease = take(ours.lock);
  EXPECT_EQ(path("orders/42"), "/dlock/orders%2F42");
  const auto nodes = queue("orders/42");
  ASSERT_EQ(nodes.size(), 1U);
  const std::regex form("_c_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}-lock-[0-9]{10}");
  EXPECT_TRUE(std::regex_match(nodes.front(), form)) << nodes.front();
  const auto node = holder("orders/42").value();
  EXPECT_EQ(node.data, ours.client.holder());
  EXPECT_NE(node.owner, 0);
  EXPECT_EQ(static_cast<std::uint64_t>(node.created), lease.token().value());
  // A number in there would be taken for a limit by kazoo's Semaphore.
  EXPECT_EQ(zk.get(path("orders/42")).value().data, "");
}

TEST_F(QueueTest, KazoosLayout_HasItsNames) {
  Contender ours(steady({}, "layout=kazoo"), "shared");
  const Lease lease = take(ours.lock);
  const auto nodes = queue("shared");
  ASSERT_EQ(nodes.size(), 1U);
  EXPECT_TRUE(std::regex_match(nodes.front(), std::regex("[0-9a-f]{32}__lock__[0-9]{10}"))) << nodes.front();
}

// --- Nodes of those that no program is here for ----------------------------------------------------------------------

TEST_F(QueueTest, NodeOfGoZk_IsWaitedFor) {
  Contender own(steady(), "shared");
  const std::string theirs = add_foreign("shared", "_c_0e1cf9d85f6c4a498f0a1c0f0c3f1b2d-lock-");
  EXPECT_FALSE(own.lock.try_acquire().has_value());
  Pending waiting(own.lock, {});
  await_residue("shared", 2);
  EXPECT_TRUE(zk.remove(theirs));
  EXPECT_TRUE(waiting.lease().held());
}

// As .NET's.
TEST_F(QueueTest, PlainNumberedNode_IsRefused) {
  Contender ours(steady(), "shared");
  (void)add_foreign("shared", "lock-");
  for (const Duration wait : {Duration(0ns), Duration(conformance::guard())}) {
    std::error_code error;
    EXPECT_FALSE(ours.lock.acquire({.wait = wait}, error).has_value());
    EXPECT_EQ(error, errc::protocol);
  }
  await_residue("shared", 1);
}

TEST_F(QueueTest, UnknownNode_IsLeftAloneWithOneWarning) {
  const auto log = std::make_shared<EventLog>();
  Contender ours(steady({.observer = log}), "shared");
  const std::string theirs = add_foreign("shared", "config", ZooKeeperClient::Kind::persistent);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(take(ours.lock).release());
  EXPECT_EQ(log->warnings_with("config"), 1U);
  EXPECT_TRUE(zk.get(theirs).has_value());
}

// --- What a hand-over costs, by the server's own count
// ----------------------------------------------------------------

class HerdTest : public ZooKeeperTest {
 protected:
  struct Cost {
    double events;
    double received;
    double sent;
  };
  // Of one hand-over, with so many clients waiting at first; each takes the lock once.
  template <class Make>
  Cost hand_over(std::size_t waiters, LockKind kind, Make lock_of) {
    std::vector<Client> clients;
    std::vector<decltype(lock_of(std::declval<const Client&>()))> locks;
    for (std::size_t i = 0; i < waiters; ++i) {
      clients.push_back(steady());
      locks.push_back(lock_of(clients.back()));
    }
    const Client holding = steady();
    auto lock = lock_of(holding);
    std::deque<Lease> leases;
    while (auto lease = lock.try_acquire()) leases.push_back(std::move(*lease));
    const std::size_t held = leases.size();
    std::vector<Pending> pending;
    for (auto& each : locks) {
      pending.emplace_back(each, AcquireOptions{},
                           [](Lease& granted) { conformance::release_soon(std::move(granted)); });
    }
    await_residue("herd", waiters + held, kind);
    const Cost before = totals();
    leases.clear();
    for (Pending& each : pending) EXPECT_FALSE(each.get().error);
    await_no_residue("herd", kind);
    const Cost after = totals();
    const auto count = static_cast<double>(waiters);
    return {.events = (after.events - before.events) / count,
            .received = (after.received - before.received) / count,
            .sent = (after.sent - before.sent) / count};
  }

 private:
  [[nodiscard]] Cost totals() const {
    const auto figure = [this](const std::string& name) { return static_cast<double>(server.figure(name)); };
    return {.events = figure("zk_sum_node_deleted_watch_count") + figure("zk_sum_node_children_watch_count") +
                      figure("zk_sum_node_changed_watch_count"),
            .received = figure("zk_packets_received"),
            .sent = figure("zk_packets_sent")};
  }
};

TEST_F(HerdTest, HandOver_CostsTheSameHoweverManyWait) {
  const auto lock_of = [](const Client& client) { return client.make_lock("herd"); };
  const Cost few = hand_over(8, LockKind::lock, lock_of);
  const Cost many = hand_over(64, LockKind::lock, lock_of);
  RecordProperty("events", std::to_string(many.events));
  EXPECT_LE(many.events, 2.2) << "the one who is next, and perhaps those who watch their own node";
  EXPECT_LE(many.received, 8);
  EXPECT_LE(many.events, few.events * 1.5 + 0.5);
  EXPECT_LE(many.received, few.received * 1.5 + 2);
}

TEST_F(HerdTest, Permit_CostsTheSameHoweverManyWait) {
  const auto semaphore_of = [](const Client& client) { return client.make_semaphore("herd", 3); };
  const Cost few = hand_over(8, LockKind::semaphore, semaphore_of);
  const Cost many = hand_over(64, LockKind::semaphore, semaphore_of);
  RecordProperty("events", std::to_string(many.events));
  RecordProperty("received", std::to_string(many.received));
  EXPECT_LE(many.events, few.events * 1.5 + 0.5);
  EXPECT_LE(many.received, few.received * 1.5 + 2);
}

}  // namespace

}  // namespace dlock::test
