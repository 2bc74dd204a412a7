// Connections that break in the middle of an exchange, at every possible place.
#include <cstdlib>
#include <iostream>
#include <random>

#include "redis/redis_test.hpp"

namespace dlock::test {

namespace {

constexpr auto test_lease = 2s;
constexpr std::size_t wanted_cuts = 200;

// A seed of its own for every run; DLOCK_SEED repeats one.
std::uint64_t seed() {
  const char* given = std::getenv("DLOCK_SEED");
  const std::uint64_t value = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
  std::cout << "DLOCK_SEED=" << value << '\n';
  return value;
}

class CutTest : public RedisStrategyTest {
 protected:
  std::uint64_t pick(std::uint64_t most) { return std::uniform_int_distribution<std::uint64_t>(0, most)(random_); }

  // Somewhere in the first exchange of a connection or in one of a connection that stands.
  void arm_cut() {
    if (pick(1) == 0) {
      proxy.cut_after(rig::Direction::to_server, pick(700), pick(1) == 0 ? rig::Ending::reset : rig::Ending::close);
    } else {
      proxy.cut_after(rig::Direction::to_client, pick(150), pick(1) == 0 ? rig::Ending::reset : rig::Ending::close);
    }
  }

  // What the server and the lease say of each other.
  void expect_truth(const Outcome& outcome) {
    // The server is asked first: a lease that is held afterwards was held then.
    const std::string owner = value("cut");
    if (!outcome.lease.held()) return;
    EXPECT_FALSE(outcome.error) << outcome.error.message();
    EXPECT_NE(owner.find(outcome.lease.owner().to_string()), std::string::npos) << "the server says: " << owner;
  }

  // Whoever comes next gets the lock, without waiting for more than a lease, and nobody else believes to hold it then.
  void expect_free_for_others(DistributedLock& lock, const Lease& other) {
    const Lease lease = take(lock, {.wait = conformance::guard(), .lease = test_lease});
    EXPECT_FALSE(other.held());
    EXPECT_GT(lease.token(), last_token_);
    last_token_ = lease.token();
  }

  void note_token(const Lease& lease) {
    if (!lease.has_value()) return;
    EXPECT_GT(lease.token(), last_token_);
    last_token_ = lease.token();
  }

  void expect_mortal() {
    const auto remaining = server.command({"PTTL", keys("cut").lock}).integer;
    EXPECT_NE(remaining, -1) << "a lock without an end";
    EXPECT_LE(remaining, std::chrono::milliseconds(test_lease).count());
  }

 private:
  std::mt19937_64 random_{seed()};
  FencingToken last_token_;
};

TEST_P(CutTest, TwoHundredCutAcquiresLeaveNoOrphanAndNoWrongBelief) {
  const Client cut_client = disturbed({.response_timeout = 1s}, strategy());
  const Client other_client = steady({}, strategy());
  DistributedLock lock = cut_client.lock("cut");
  DistributedLock others = other_client.lock("cut");
  std::size_t cuts = 0;
  std::size_t grants = 0;
  std::size_t rounds = 0;
  for (; cuts < wanted_cuts && rounds < 10 * wanted_cuts; ++rounds) {
    arm_cut();
    const auto wait = pick(1) == 0 ? 0ms : 500ms;
    Outcome outcome = Pending(lock, {.wait = wait, .lease = test_lease, .renew = pick(1) == 0}).get();
    expect_truth(outcome);
    expect_mortal();
    if (!outcome.error) ++grants;
    note_token(outcome.lease);
    // A release that is cut as well may say that it does not know; the lock is freed all the same.
    std::error_code ignored;
    (void)outcome.lease.release(ignored);
    expect_free_for_others(others, outcome.lease);
    cuts = proxy.counters().cuts;
  }
  proxy.pass();
  EXPECT_GE(cuts, wanted_cuts);
  EXPECT_GT(grants, 0U);
  std::cout << rounds << " acquires, " << cuts << " cuts, " << grants << " grants\n";
  await_no_residue("cut");
}

TEST_P(CutTest, TwoHundredCutWaitsLeaveNoOrphanAndNoWrongBelief) {
  const Client cut_client = disturbed({.response_timeout = 1s}, strategy());
  const Client other_client = steady({}, strategy());
  DistributedLock lock = cut_client.lock("cut");
  DistributedLock others = other_client.lock("cut");
  std::size_t cuts = 0;
  std::size_t grants = 0;
  std::size_t rounds = 0;
  for (; cuts < wanted_cuts && rounds < 10 * wanted_cuts; ++rounds) {
    std::optional<Lease> holder = take(others, {.wait = conformance::guard(), .lease = test_lease});
    note_token(*holder);
    const auto sent = proxy.counters().to_server.passed;
    arm_cut();
    Pending waiting(lock, {.wait = 500ms, .lease = test_lease});
    // The hand-over may meet the cut, or come before or after it.
    (void)proxy.wait_until([&](const auto& c) { return c.cuts > cuts || c.to_server.passed > sent; });
    holder.reset();
    Outcome outcome = waiting.get();
    expect_truth(outcome);
    expect_mortal();
    if (!outcome.error) ++grants;
    note_token(outcome.lease);
    std::error_code ignored;
    (void)outcome.lease.release(ignored);
    expect_free_for_others(others, outcome.lease);
    cuts = proxy.counters().cuts;
  }
  proxy.pass();
  EXPECT_GE(cuts, wanted_cuts);
  EXPECT_GT(grants, 0U);
  std::cout << rounds << " waits, " << cuts << " cuts, " << grants << " grants\n";
  await_no_residue("cut");
}

TEST_P(CutTest, AnAnswerTruncatedAnywhereIsNoGrant) {
  const Client other_client = steady({}, strategy());
  DistributedLock others = other_client.lock("cut");
  for (std::uint64_t length = 0;; ++length) {
    // A connection of its own for each, which stands before the answer is cut.
    const Client cut_client = disturbed({.response_timeout = 1s}, strategy());
    DistributedLock warm = cut_client.lock("warm");
    (void)take(warm).release();
    proxy.cut_after(rig::Direction::to_client, length, rig::Ending::close);
    DistributedLock lock = cut_client.lock("cut");
    Outcome outcome = Pending(lock, {.wait = 0ns, .lease = long_lease}).get();
    expect_truth(outcome);
    const bool was_cut = proxy.counters().cuts > length;
    outcome.lease = Lease();
    const Lease next = take(others, {.wait = conformance::guard(), .lease = test_lease});
    if (!was_cut) break;
    ASSERT_LT(length, 1000U);
  }
  proxy.pass();
}

INSTANTIATE_TEST_SUITE_P(, CutTest, all_strategies(), strategy_name);

}  // namespace

}  // namespace dlock::test
