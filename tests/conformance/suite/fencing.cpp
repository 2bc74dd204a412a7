// Contract 4: every lease carries a token greater than that of every earlier lease of the name.
#include <limits>
#include <optional>
#include <sstream>
#include <vector>

#include "suite/contract.hpp"

namespace dlock::conformance {

DLOCK_CONFORMANCE_TESTS(fencing)

namespace {

// Fits a signed 64-bit column.
constexpr std::uint64_t token_limit = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

}  // namespace

TEST_P(Contract, C04_TokensGrowWithEveryLease) {
  Lock& one = lock_of(client());
  Lock& two = lock_of(client());
  FencingToken last;
  for (int i = 0; i < 200; ++i) {
    auto lease = (i % 2 == 0 ? one : two).try_acquire();
    ASSERT_TRUE(lease.has_value());
    ASSERT_GT(lease->token(), last);
    ASSERT_LE(lease->token().value(), token_limit);
    last = lease->token();
    ASSERT_TRUE(lease->release());
  }
}

TEST_P(Contract, C04_TokensGrowAcrossClients) {
  FencingToken last;
  for (int i = 0; i < 10; ++i) {
    Client& next = client();
    Lock& lock = lock_of(next);
    {
      const Lease lease = take(lock);
      EXPECT_GT(lease.token(), last);
      last = lease.token();
    }
    close(next);
  }
}

TEST_P(Contract, C04_TokensGrowAcrossProcesses) {
  DLOCK_NEEDS(processes);
  Lock& lock = lock_of(client());
  std::uint64_t last = take(lock).token();
  for (int i = 0; i < 3; ++i) {
    Worker other = worker();
    std::istringstream tokens(other.ask("cycle " + name() + " 20", "tokens"));
    int leases = 0;
    for (std::uint64_t token = 0; tokens >> token; ++leases) {
      EXPECT_GT(token, last);
      last = token;
    }
    EXPECT_EQ(leases, 20);
  }
  EXPECT_GT(take(lock).token(), last);
}

TEST_P(Contract, C04_TokensGrowAfterAKilledHold) {
  DLOCK_NEEDS(kill_hold);
  Lock& lock = lock_of(client());
  const Lease killed = take(lock);
  kill_hold(name());
  Lock& next_lock = lock_of(client());
  EXPECT_GT(take(next_lock).token(), killed.token());
}

TEST_P(Contract, C04_TokensGrowAfterALeaseRanOut) {
  step_time_if_possible();
  Lock& lock = lock_of(client());
  const Lease expired = take(lock, fixed());
  Lock& next_lock = lock_of(client());
  Pending next(next_lock, {});
  pass_until(next.event(), "nobody enters after a lease has run out");
  EXPECT_GT(next.lease().token(), expired.token());
}

TEST_P(Contract, C04_WaitersGetTokensInTheOrderOfTheirGrants) {
  Lock& lock = lock_of(client());
  std::optional<Lease> first = take(lock);
  FencingToken last = first->token();
  bool grew = true;  // written by one holder after the other
  std::vector<Pending> waiters;
  for (int i = 0; i < 20; ++i) {
    waiters.emplace_back(lock, AcquireOptions{}, [&](Lease& lease) {
      grew = grew && lease.token() > last;
      last = lease.token();
      release_soon(std::move(lease));
    });
  }
  first.reset();
  for (Pending& each : waiters) EXPECT_FALSE(each.get().error);
  EXPECT_TRUE(grew);
}

TEST_P(Contract, C04_ALeaseKeepsItsTokenWhenItIsRenewed) {
  DLOCK_APPLIES_IF(caps().lease_kind == LeaseKind::per_lock, "leases are not renewed one by one");
  step_time_if_possible();
  const auto observer = std::make_shared<RecordingObserver>();
  Lock& lock = lock_of(client({.observer = observer}));
  const Lease lease = take(lock, renewed());
  const FencingToken token = lease.token();
  pass_until(observer->renewals(name()), "a lease is not renewed", 2);
  EXPECT_EQ(lease.token(), token);
}

TEST_P(Contract, C04_TokensGrowWhenTheWallClockIsSetBack) {
  DLOCK_NEEDS(step_clock);
  step_time_if_possible();
  Lock& lock = lock_of(client());
  const FencingToken before = take(lock).token();
  fixture().clock()->step_wall(-std::chrono::hours(24));
  Lock& later = lock_of(client());
  EXPECT_GT(take(later).token(), before);
}

TEST_P(ClientContract, C04_AnEmptyLeaseHasNoToken) {
  EXPECT_EQ(Lease().token().value(), 0U);
}

}  // namespace dlock::conformance
