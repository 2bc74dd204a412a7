// Three servers, of which some fail.
#include <atomic>
#include <thread>

#include "network/ensemble_room.hpp"

namespace dlock::test {

namespace {

// Many acquires, and the leader dies in the middle: each of them ends with the lock, never two at a time, and a holder
// and its waiter do not notice.
// Shows: one-holder, growing-tokens
TEST_F(EnsembleTest, LeaderKilled_HundredAcquiresAllEndWithTheLock) {
  constexpr int clients = 4;
  constexpr int acquires_each = 25;
  std::atomic<int> inside{0};
  std::atomic<int> overlaps{0};
  std::atomic<int> backwards{0};
  std::atomic<std::uint64_t> last_token{0};
  Event acquired;
  Contender holder(client(), "held");
  Contender waiter(client(), "held");
  Lease kept = take(holder.lock);
  Pending waiting(waiter.lock, {});
  await_residue("held", 2);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < clients; ++i) {
      threads.emplace_back([&] {
        Contender own(client(), "hundred");
        for (int n = 0; n < acquires_each; ++n) {
          Lease lease = take(own.lock);
          if (inside.fetch_add(1) != 0) overlaps.fetch_add(1);
          if (last_token.exchange(lease.token().value()) >= lease.token().value()) backwards.fetch_add(1);
          inside.fetch_sub(1);
          std::error_code error;  // it is released all the same
          (void)lease.release(error);
          acquired.set();
        }
      });
    }
    acquired.wait("nobody gets the lock", 30);
    ensemble.server(ensemble.leader()).kill();
  }
  EXPECT_EQ(acquired.count(), static_cast<std::size_t>(clients) * acquires_each);
  EXPECT_EQ(overlaps, 0);
  EXPECT_EQ(backwards, 0);
  EXPECT_TRUE(kept.held());
  EXPECT_FALSE(waiting.done());
  EXPECT_TRUE(kept.release());
  EXPECT_GT(waiting.lease().token(), kept.token());
  ensemble.start();
  await_residue("hundred", 0);
}

// Shows: deadlines
TEST_F(EnsembleTest, WithoutQuorum_NothingIsGrantedAndHoldersKeepTheirs) {
  Contender holder(client(), "held");
  DistributedLock another = holder.client.make_lock("another");
  Lease lease = take(holder.lock);
  kill_all_but(ensemble.follower());
  std::error_code error;
  const auto start = std::chrono::steady_clock::now();
  (void)another.acquire({.wait = 1s}, error);
  expect_unanswered(error);
  EXPECT_FALSE(another.try_acquire({}, error).has_value());
  expect_unanswered(error);
  EXPECT_LT(std::chrono::steady_clock::now() - start, far_too_long);
  Pending waiting(another, {});
  EXPECT_TRUE(lease.held()) << "its session is long";
  ensemble.start();
  EXPECT_TRUE(waiting.lease().release());
  EXPECT_TRUE(lease.held());
  EXPECT_TRUE(lease.release());
  await_residue("another", 0);
  await_residue("held", 0);
}

// A server that has lost the others goes on answering what it remembers, and a leader even says that it is up to date.
// That is no ground to believe in a session.
// Shows: one-holder, loss-signal
// Hazard: a server without the ensemble answers: heartbeats are writes
TEST_F(EnsembleTest, ServerWithoutTheOthers_KeepsNoLockAlive) {
  for (const bool leads : {false, true}) {
    const std::size_t survivor = leads ? ensemble.leader() : ensemble.follower();
    Contender one(client_of(survivor, EnsembleKind::short_session), "alone");
    Contender two(client(EnsembleKind::short_session), "alone");
    const Lease lease = take(one.lock);
    const LossEvent loss(lease);
    std::atomic<bool> overlap = false;
    Pending waiting(two.lock, {},
                    [&](Lease& /*granted*/) { overlap = lease.held() || !lease.lost().stop_requested(); });
    await_residue("alone", 2);
    freeze_all_but(survivor);
    const TimePoint alone = LeaseClock::now();
    loss.event().wait("a lock is believed to be held without a quorum");
    EXPECT_LE(lease.valid_until(), alone + EnsembleKind::short_time);
    EXPECT_FALSE(waiting.done());
    thaw_all();
    EXPECT_GT(waiting.lease().token(), lease.token());
    EXPECT_FALSE(overlap);
    EXPECT_TRUE(take(one.lock).held());
  }
}

}  // namespace

}  // namespace dlock::test
