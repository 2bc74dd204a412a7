// A service or a proxy that accepts connections and hangs up at the first request about locks.
#include <functional>

#include "network/room.hpp"

namespace dlock::test {

namespace {

class HungUpTest : public Room {
 protected:
  ~HungUpTest() override { proxy.pass(); }

  // Ends all connections at each request about a lock.
  void hang_up() {
    proxy.before_request(service_kind().lock_request, [this] {
      proxy.drop(rig::Ending::close);
      hang_up();
    });
  }
  // So many further connections are made, and each of them is ended at its first request.
  void await_attempts(std::size_t count) {
    const std::size_t before = proxy.counters().accepted;
    ASSERT_TRUE(proxy.wait_until([&](const auto& counters) { return counters.accepted >= before + count; }));
  }
};

TEST_P(HungUpTest, WaiterWithoutAnAnswer_IsReportedOnce) {
  hang_up();
  const auto log = std::make_shared<EventLog>();
  ClientOptions options = impatient();
  options.observer = log;
  Contender ours(disturbed(options), "refused");
  Pending waiting(ours.lock, {});
  await_attempts(6);
  EXPECT_EQ(log->connected.count(), 0U);
  EXPECT_LE(log->reconnecting.count(), 2U) << "the break, and that nothing was answered";
  EXPECT_FALSE(waiting.done());
  proxy.pass();
  EXPECT_TRUE(waiting.lease().release());
  log->connected.wait("a grant is no answer");
  EXPECT_EQ(log->connected.count(), 1U);
}

TEST_P(HungUpTest, HolderThatIsHungUpOn_IsReportedOnce) {
  const auto log = std::make_shared<EventLog>();
  const Client client = disturbed({.lease = 9s, .observer = log});
  DistributedLock lock = client.make_lock("held");
  Lease lease = take(lock);
  log->connected.wait("a grant is no answer");
  hang_up();
  proxy.drop();
  log->reconnecting.wait("a cut is not told");
  DistributedLock other = client.make_lock("other");
  Pending waiting(other, {});
  await_attempts(6);
  EXPECT_EQ(log->connected.count(), 1U);
  EXPECT_LE(log->reconnecting.count(), 3U);
  proxy.pass();
  log->connected.wait("the connection does not come back", 2);
  EXPECT_TRUE(waiting.lease().release());
  EXPECT_EQ(lease.release(), !ends_with_connection());
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(HungUpTest);
INSTANTIATE_TEST_SUITE_P(, HungUpTest, ::testing::ValuesIn(tested_strategies(!service_kind().lock_request.empty())),
                         Room::strategy_name);

}  // namespace

}  // namespace dlock::test
