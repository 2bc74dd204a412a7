// What a hand-over costs the servers, by their own count.
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "zookeeper/zookeeper_test.hpp"

namespace dlock::test {

namespace {

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
