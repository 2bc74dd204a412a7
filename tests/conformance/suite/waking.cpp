// Contracts 11 and 12: waiters are woken when the lock frees; one release wakes one waiter, in order where fair.
#include <algorithm>
#include <deque>
#include <optional>
#include <vector>

#include "suite/contract.hpp"

namespace dlock::conformance {

DLOCK_CONFORMANCE_TESTS(waking)

TEST_P(Contract, C11_AWaiterIsWokenByARelease) {
  auto [lock, others] = two_locks();
  for (Lock* waiting_lock : {&others, &lock}) {  // of another client, and of the same
    std::optional<Lease> lease = take(lock);
    Pending waiting(*waiting_lock, {});
    EXPECT_FALSE(is_free(name()));
    EXPECT_FALSE(waiting.done());
    lease.reset();
    EXPECT_TRUE(waiting.lease().held());
  }
}

TEST_P(Contract, C11_AWaiterIsWokenWhileTimeStandsStill) {
  DLOCK_NEEDS(step_clock);
  DLOCK_APPLIES_IF(caps().wakes_waiters && !polls(), "waiters are not woken, they poll");
  step_time_if_possible();
  auto [lock, others] = two_locks();
  for (int i = 0; i < 20; ++i) {
    std::optional<Lease> lease = take(lock);
    Pending waiting(others, {});
    settle();
    EXPECT_FALSE(waiting.done());
    lease.reset();
    EXPECT_TRUE(waiting.lease().held());
  }
}

TEST_P(ClientContract, C11_AWaitingThreadIsWoken) {
  auto [lock, others] = two_locks();
  std::optional<Lease> lease = take(lock);
  std::error_code error = make_error_code(errc::protocol);
  {
    const Thread waiting([&] { (void)others.acquire({.wait = guard()}, error); });
    EXPECT_FALSE(is_free(name()));
    lease.reset();
  }
  EXPECT_FALSE(error) << error.message();
}

TEST_P(Contract, C11_AReleaseThatMeetsAnArrivingWaiterIsNotMissed) {
  auto [lock, others] = two_locks();
  for (int round = 0; round < 30; ++round) {
    std::optional<Lease> lease = take(lock);
    Thread releasing([&] { lease.reset(); });
    Pending waiting(others, {});
    ASSERT_TRUE(waiting.lease().release());
  }
}

TEST_P(Contract, C11_AWaiterIsWokenWhenAHoldIsKilled) {
  DLOCK_NEEDS(kill_hold);
  auto [lock, others] = two_locks();
  const Lease lease = take(lock);
  Pending waiting(others, {});
  EXPECT_FALSE(is_free(name()));
  kill_hold(name());
  EXPECT_TRUE(waiting.lease().held());
}

TEST_P(Contract, C11_AWaiterIsWokenAcrossProcesses) {
  DLOCK_NEEDS(processes);
  Worker holder = worker();
  holder.acquire(name(), std::chrono::nanoseconds(0));
  Lock& lock = lock_of(client());
  Pending waiting(lock, {});
  EXPECT_FALSE(is_free(name()));
  EXPECT_EQ(holder.ask("release", "released "), "1");
  EXPECT_TRUE(waiting.lease().held());
}

TEST_P(Contract, C12_WaitersOfAClientAreServedInOrderWhereFair) {
  DLOCK_APPLIES_IF(caps().fair && !polls(), "waiters may overtake each other");
  Lock& lock = lock_of(client());
  Client& waiting = client();
  Lock& others = lock_of(waiting);
  std::optional<Lease> lease = take(lock);
  std::vector<int> order;  // written by one holder after the other
  std::deque<Pending> waiters;
  for (int i = 0; i < 20; ++i) {
    waiters.emplace_back(others, AcquireOptions{}, [&order, i](Lease& granted) {
      order.push_back(i);
      release_soon(std::move(granted));
    });
    // The order is that of arrival, which is that of the calls only where they go the same way. Some of them may wait
    // in the client, which counts them.
    if (caps().counts_waiters) await_waiters(name(), static_cast<std::uint64_t>(i) + 1, &waiting);
  }
  lease.reset();
  for (Pending& each : waiters) EXPECT_FALSE(each.get().error);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(order.at(static_cast<std::size_t>(i)), i);
}

TEST_P(Contract, C12_WaitersOfManyClientsAreServedInOrderWhereFair) {
  DLOCK_APPLIES_IF(caps().fair && !polls(), "waiters may overtake each other");
  DLOCK_APPLIES_IF(caps().counts_waiters, "nobody can tell in which order waiters arrived");
  Lock& lock = lock_of(client());
  std::optional<Lease> lease = take(lock);
  std::deque<Pending> waiters;
  for (std::uint64_t i = 1; i <= 5; ++i) {
    waiters.emplace_back(lock_of(client()), AcquireOptions{});
    await_waiters(name(), i);
  }
  lease.reset();
  for (std::size_t i = 0; i < waiters.size(); ++i) {
    const Lease granted = waiters[i].lease();
    for (std::size_t later = i + 1; later < waiters.size(); ++later) EXPECT_FALSE(waiters[later].done());
  }
}

// Shows: waiters-woken
TEST_P(Contract, C12_AHandOverCostsTheSameHoweverManyWait) {
  DLOCK_NEEDS(requests);
  DLOCK_APPLIES_IF(caps().wakes_one && !polls(), "a release wakes more than one waiter");
  Lock& lock = lock_of(client());
  const auto cost = [&](int count) {
    std::optional<Lease> lease = take(lock);
    std::deque<Pending> waiters;
    for (int i = 0; i < count; ++i) {
      waiters.emplace_back(lock, AcquireOptions{}, [](Lease& granted) { release_soon(std::move(granted)); });
    }
    const auto before = fixture().requests();
    lease.reset();
    for (Pending& each : waiters) EXPECT_FALSE(each.get().error);
    return static_cast<double>(fixture().requests() - before) / count;
  };
  const double alone = cost(5);
  // Where there is a connection for each, so many are a crowd already.
  const double crowd = cost(caps().max_locks == 0 ? 100 : std::min(100, static_cast<int>(caps().max_locks) / 4));
  EXPECT_LE(crowd, 2 * alone + 2);
}

TEST_P(Contract, C12_AWaiterThatGivesUpInTheMiddleBreaksNoLine) {
  auto [one, two] = two_locks();
  std::optional<Lease> lease = take(lock_of(client()));
  std::deque<Pending> waiters;
  for (int i = 0; i < 9; ++i) {
    waiters.emplace_back(i % 2 == 0 ? one : two, AcquireOptions{},
                         [](Lease& granted) { release_soon(std::move(granted)); });
  }
  for (std::size_t i = 1; i < waiters.size(); i += 3) waiters[i].cancel();
  for (std::size_t i = 1; i < waiters.size(); i += 3) EXPECT_EQ(waiters[i].get().error, errc::cancelled);
  lease.reset();
  for (std::size_t i = 0; i < waiters.size(); ++i) {
    if (i % 3 == 1) continue;
    EXPECT_FALSE(waiters[i].get().error);
  }
}

TEST_P(Contract, C12_WaitersAreCounted) {
  DLOCK_APPLIES_IF(caps().counts_waiters, "waiters are not counted");
  Lock& lock = lock_of(client());
  const Client& waiting = client();
  Lock& others = lock_of(waiting);
  const Lease lease = take(lock);
  {
    std::deque<Pending> waiters;
    for (int i = 0; i < 3; ++i) waiters.emplace_back(others, AcquireOptions{});
    await_waiters(name(), 3, &waiting);
    await_waiters(name(), caps().one_waiter_per_client ? 1 : 3);
  }
  await_waiters(name(), 0);
}

}  // namespace dlock::conformance
