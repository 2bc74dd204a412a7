// What people and tools are told of locks.
#include "network/room.hpp"

namespace dlock::test {

namespace {

class InspectionTest : public Room {};

TEST_P(InspectionTest, SaysWhoHoldsAndHowManyWait) {
  const Client holding = steady({.label = "holding"});
  const Client waiting = steady();
  const Client asking = steady();
  EXPECT_FALSE(asking.inspect("x").held);
  DistributedLock lock = holding.make_lock("x");
  DistributedLock others = waiting.make_lock("x");
  const Lease lease = take(lock);
  const Pending pending(others, {});
  await_waiter("x");
  const LockInfo info = asking.inspect("x");
  EXPECT_EQ(info.name, "x");
  EXPECT_TRUE(info.held);
  EXPECT_EQ(info.holder, holding.holder());
  EXPECT_EQ(info.token, lease.token());
  EXPECT_EQ(info.waiters.has_value(), asking.capabilities().counts_waiters);
  // A server may still count a try of the waiter, which it is about to end.
  if (info.waiters) await("one waiter is counted", [&] { return asking.inspect("x").waiters == 1U; });
}

TEST_P(InspectionTest, ListsTheLocksThatAreHeld) {
  const Client client = steady();
  const std::vector<std::string> names = {"%", "..", "a", "a/b", "\xc3\xa9"};
  std::vector<Lease> leases;
  for (const std::string& name : names) {
    DistributedLock lock = client.make_lock(name);
    leases.push_back(take(lock));
  }
  std::vector<std::string> listed;
  for (const LockInfo& each : client.list()) {
    if (each.held) listed.push_back(each.name);
  }
  std::sort(listed.begin(), listed.end());
  EXPECT_EQ(listed, names);
}

TEST_P(InspectionTest, BreaksALock) {
  const Client client = steady({.lease = 6s});
  const Client other = steady();
  DistributedLock lock = client.make_lock("broken");
  const Lease lease = take(lock);
  const LossEvent loss(lease);
  EXPECT_TRUE(other.break_lock("broken"));
  loss.event().wait("the holder is not told");
  EXPECT_FALSE(other.break_lock("broken"));
  EXPECT_FALSE(other.break_lock("never-there"));
  EXPECT_GT(take(lock).token(), lease.token());
}

INSTANTIATE_TEST_SUITE_P(, InspectionTest, ::testing::ValuesIn(tested_strategies()), Room::strategy_name);

}  // namespace

}  // namespace dlock::test
