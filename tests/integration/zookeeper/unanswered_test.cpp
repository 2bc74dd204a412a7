// Requests whose answers never come.
#include <cstdlib>
#include <iostream>
#include <random>

#include "zookeeper/zookeeper_test.hpp"

namespace dlock::test {

namespace {

constexpr std::size_t wanted_cuts = 60;

class UnansweredTest : public ZooKeeperStrategyTest {
 protected:
  // Its session stands, and no parent node is missing any more.
  void warm_up(const Client& client, const std::string& name) {
    DistributedLock lock = client.lock(name);
    EXPECT_TRUE(take(lock).release());
    await_no_residue(name);
  }
};

TEST_P(UnansweredTest, ACreateWhoseAnswerIsLostIsFoundAgain) {
  const Client client = disturbed(labelled("shaky"));
  warm_up(client, "create");
  DistributedLock lock = client.lock("create");
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
  DistributedLock lock = client.lock("create");
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
  DistributedLock lock = client.lock("create");
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

TEST_P(UnansweredTest, ANodeOfAnEarlierSessionIsNotTakenForOurs) {
  const Client client = disturbed(labelled("shaky"), short_session);
  warm_up(client, "create");
  DistributedLock lock = client.lock("create");
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

TEST_P(UnansweredTest, AReleaseWhoseAnswerIsLostFreesTheLock) {
  const Client client = disturbed(labelled("shaky", impatient()));
  const Client other_client = steady();
  DistributedLock lock = client.lock("release");
  DistributedLock others = other_client.lock("release");
  Lease lease = take(lock);
  Pending waiting(others, {});
  proxy.cut_after(rig::Direction::to_client, 0);
  std::error_code error;
  (void)lease.release(error);  // it may have been repeated in time
  EXPECT_FALSE(lease.held());
  EXPECT_TRUE(waiting.lease().held());
}

TEST_P(UnansweredTest, AReleaseWhileCutOffIsCarriedOutLater) {
  const Client client = disturbed(impatient());
  const Client other_client = steady();
  DistributedLock lock = client.lock("release");
  DistributedLock others = other_client.lock("release");
  Lease lease = take(lock);
  cut();
  std::error_code error;
  EXPECT_FALSE(lease.release(error));
  EXPECT_TRUE(error == errc::ambiguous || error == errc::unavailable) << error.message();
  EXPECT_FALSE(others.try_acquire().has_value());
  heal();
  EXPECT_TRUE(take(others).release());
  await_no_residue("release");
}

TEST_P(UnansweredTest, AWaiterCancelledWhileCutOffBlocksNobody) {
  const Client client = disturbed(impatient());
  const Client other_client = steady();
  DistributedLock lock = client.lock("orphan");
  DistributedLock others = other_client.lock("orphan");
  std::optional<Lease> lease = take(others);
  Pending orphan(lock, {});
  const bool queued = std::string(GetParam()) != "ephemeral";
  if (queued) await_residue("orphan", 2);
  Pending behind(others, {});
  if (queued) await_residue("orphan", 3);
  cut();
  orphan.cancel();
  EXPECT_EQ(orphan.get().error, errc::cancelled);
  lease.reset();
  heal();
  EXPECT_TRUE(behind.lease().held());
  await_no_residue("orphan");
}

TEST_P(UnansweredTest, ATryOfAServerThatStandsStillEndsAndIsCleanedUp) {
  const Client client = disturbed(labelled("shaky", impatient()));
  warm_up(client, "frozen");
  DistributedLock lock = client.lock("frozen");
  proxy.before_request(":shaky", [this] { server.freeze(); });
  const auto start = std::chrono::steady_clock::now();
  std::error_code error;
  EXPECT_FALSE(lock.try_acquire({}, error).has_value());
  EXPECT_TRUE(error == errc::ambiguous || error == errc::unavailable) << error.message();
  EXPECT_LT(std::chrono::steady_clock::now() - start, far_too_long);
  server.thaw();
  await_no_residue("frozen");
}

TEST_P(UnansweredTest, AClientThatIsClosedFreesAllAtOnce) {
  const Client other_client = steady();
  std::optional<Client> client = disturbed();
  DistributedLock one = client->lock("one");
  DistributedLock two = client->lock("two");
  const Lease held = take(one);
  DistributedLock others = other_client.lock("two");
  const Lease elsewhere = take(others);
  Pending waiting(two, {});
  if (std::string(GetParam()) != "ephemeral") await_residue("two", 2);
  client.reset();
  EXPECT_EQ(waiting.get().error, errc::closed);
  await_no_residue("one");
  await_residue("two", 1);
}

// The server cannot be told, so it keeps the lock as if its holder had died.
TEST_P(UnansweredTest, AClientThatIsClosedWhileCutOffLeavesItsLockForTheSession) {
  const Client other_client = steady();
  std::optional<Client> client = disturbed(impatient(), short_session);
  DistributedLock lock = client->lock("closed");
  const Lease lease = take(lock);
  cut();
  const auto start = std::chrono::steady_clock::now();
  client.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - start, far_too_long);
  EXPECT_FALSE(lease.held());
  DistributedLock others = other_client.lock("closed");
  EXPECT_GT(take(others).token(), lease.token());
}

// A seed of its own for every run; DLOCK_SEED repeats one.
std::uint64_t seed() {
  const char* given = std::getenv("DLOCK_SEED");  // NOLINT(concurrency-mt-unsafe): nobody changes the environment
  const std::uint64_t value = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
  std::cout << "DLOCK_SEED=" << value << '\n';
  return value;
}

TEST_P(UnansweredTest, ConnectionsCutAnywhereLeaveNoOrphanAndNoWrongBelief) {
  std::mt19937_64 random(seed());
  const auto pick = [&](std::uint64_t most) { return std::uniform_int_distribution<std::uint64_t>(0, most)(random); };
  const Client client = disturbed({.response_timeout = 1s}, "session_timeout=15s");
  const Client other_client = steady();
  DistributedLock lock = client.lock("cut");
  DistributedLock others = other_client.lock("cut");
  FencingToken last;
  std::size_t cuts = 0;
  std::size_t grants = 0;
  for (std::size_t round = 0; cuts < wanted_cuts && round < 10 * wanted_cuts; ++round) {
    // Somewhere in the exchanges of an acquire and its release, or in those of setting up the connection.
    if (pick(1) == 0) {
      proxy.cut_after(rig::Direction::to_server, pick(700), pick(1) == 0 ? rig::Ending::reset : rig::Ending::close);
    } else {
      proxy.cut_after(rig::Direction::to_client, pick(700), pick(1) == 0 ? rig::Ending::reset : rig::Ending::close);
    }
    Outcome outcome = Pending(lock, {.wait = pick(1) == 0 ? 0ms : 500ms}).get();
    const auto now = holder("cut");
    if (outcome.lease.held()) {
      ++grants;
      EXPECT_FALSE(outcome.error);
      ASSERT_TRUE(now.has_value());
      EXPECT_EQ(static_cast<std::uint64_t>(now->created), outcome.lease.token().value());
      EXPECT_GT(outcome.lease.token(), last);
    }
    std::error_code ignored;  // a release that is cut as well may not know; the lock is freed all the same
    (void)outcome.lease.release(ignored);
    const Lease next = take(others);
    EXPECT_GT(next.token(), last);
    last = next.token();
    cuts = proxy.counters().cuts;
  }
  proxy.pass();
  EXPECT_GE(cuts, wanted_cuts);
  EXPECT_GT(grants, 0U);
  await_no_residue("cut");
}

INSTANTIATE_TEST_SUITE_P(, UnansweredTest, all_strategies(), strategy_name);

}  // namespace

}  // namespace dlock::test
