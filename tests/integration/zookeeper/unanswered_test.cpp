// Requests whose answers never come.
#include "zookeeper/zookeeper_test.hpp"

namespace dlock::test {

namespace {

class UnansweredTest : public ZooKeeperStrategyTest {
 protected:
  // Its session stands, and no parent node is missing any more.
  void warm_up(const Client& client, const std::string& name) {
    DistributedLock lock = client.make_lock(name);
    std::error_code late;  // of an impatient client on a busy machine
    (void)take(lock).release(late);
    await_no_residue(name);
  }
};

TEST_P(UnansweredTest, ACreateWhoseAnswerIsLostIsFoundAgain) {
  const Client client = disturbed(labelled("shaky"));
  warm_up(client, "create");
  DistributedLock lock = client.make_lock("create");
  proxy.lose_reply_to(":shaky");
  Lease lease = take(lock);
  EXPECT_EQ(proxy.counters().cuts, 1U);
  EXPECT_EQ(residue("create"), 1U);
  EXPECT_EQ(static_cast<std::uint64_t>(holder("create").value().created), lease.token().value());
  EXPECT_TRUE(lease.release());
  await_no_residue("create");
}

TEST_P(UnansweredTest, ATryWhoseAnswerIsLostLeavesNothing) {
  const Client client = disturbed(labelled("shaky", impatient()));
  warm_up(client, "create");
  DistributedLock lock = client.make_lock("create");
  proxy.before_request(":shaky", [this] { proxy.refuse(true); });
  proxy.lose_reply_to(":shaky");
  std::error_code error;
  EXPECT_FALSE(lock.try_acquire({}, error).has_value());
  EXPECT_TRUE(error == errc::ambiguous || error == errc::unavailable) << error.message();
  heal();
  await_no_residue("create");
}

TEST_P(UnansweredTest, ACancelledCreateWhoseAnswerIsLostLeavesNothing) {
  const Client client = disturbed(labelled("shaky"));
  warm_up(client, "create");
  DistributedLock lock = client.make_lock("create");
  proxy.before_request(":shaky", [this] { proxy.refuse(true); });
  proxy.lose_reply_to(":shaky");
  Pending waiting(lock, {});
  ASSERT_TRUE(proxy.wait_until([](const auto& c) { return c.cuts == 1; }));
  await_residue("create", 1);  // the server has carried it out
  waiting.cancel();
  EXPECT_EQ(waiting.get().error, errc::cancelled);
  heal();
  await_no_residue("create");
}

// Whose a node is that is still there is a matter of unit tests.
TEST_P(UnansweredTest, AWaiterWhoseSessionEndedBeginsAnewWithTheNextOne) {
  const Client client = disturbed(labelled("shaky"), short_session);
  warm_up(client, "create");
  DistributedLock lock = client.make_lock("create");
  proxy.before_request(":shaky", [this] { proxy.refuse(true); });
  proxy.lose_reply_to(":shaky");
  Pending waiting(lock, {});
  await_residue("create", 1);
  const auto before = holder("create").value();
  await_no_residue("create");
  heal();
  Lease lease = waiting.lease();
  const auto after = holder("create").value();
  EXPECT_NE(after.owner, before.owner);
  EXPECT_EQ(static_cast<std::uint64_t>(after.created), lease.token().value());
  EXPECT_TRUE(lease.release());
}

INSTANTIATE_TEST_SUITE_P(, UnansweredTest, all_strategies(), Room::strategy_name);

}  // namespace

}  // namespace dlock::test
