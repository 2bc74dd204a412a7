// Advisory locks of a real PostgreSQL server: what they are, how they are waited for, and how they end.
#include <string>
#include <system_error>
#include <vector>

#include "network/foreign_client.hpp"
#include "postgres/advisory_test.hpp"

namespace dlock::test {

namespace {

// --- What the lock is ------------------------------------------------------------------------------------------------

TEST_F(AdvisoryTest, IsTheLockOfPlainSql) {
  const Client ours = client("key=int64:42");
  DistributedLock lock = ours.make_lock("any name");
  PostgresConnection sql(server.admin_conninfo());
  Lease lease = take(lock);
  EXPECT_EQ(sql.value("SELECT pg_try_advisory_lock(42)"), "f");
  EXPECT_TRUE(lease.release());
  EXPECT_EQ(sql.value("SELECT pg_try_advisory_lock(42)"), "t");
  EXPECT_FALSE(lock.try_acquire());
  Pending waiting(lock, {});
  await_count(false, 1);
  sql.run("SELECT pg_advisory_unlock(42)");
  EXPECT_TRUE(waiting.lease().release());
  EXPECT_EQ(count(true), "0");
}

TEST_F(AdvisoryTest, LocksOfPsqlAndOursExcludeEachOther) {
  ForeignClient psql([&](const std::string& /*directory*/, const std::string& commands) {
    return std::vector<std::string>{"psql", server.admin_conninfo(), "-XAtq", "-f", commands};
  });
  const auto ask = [&](const std::string& function) {
    return psql.send([&](int number) { return "SELECT '<" + std::to_string(number) + "> ' || " + function + "(42);"; });
  };
  const Client ours = client("key=int64:42");
  DistributedLock lock = ours.make_lock("any name");
  Lease lease = take(lock);
  EXPECT_EQ(ask("pg_try_advisory_lock").get(), "false");
  EXPECT_TRUE(lease.release());
  EXPECT_EQ(ask("pg_try_advisory_lock").get(), "true");
  EXPECT_FALSE(lock.try_acquire());
  Pending waiting(lock, {});
  await_count(false, 1);
  EXPECT_EQ(ask("pg_advisory_unlock").get(), "true");
  EXPECT_TRUE(waiting.lease().held());
}

TEST_F(AdvisoryTest, KeysOfASpaceOfPairsAreOthersThanThoseOfOneNumber) {
  const Client pairs = client("key=pair:0,42");
  const Client numbers = client("key=int64:42");
  DistributedLock of_pairs = pairs.make_lock("any name");
  DistributedLock of_numbers = numbers.make_lock("any other name");
  PostgresConnection sql(server.admin_conninfo());
  const Lease one = take(of_pairs);
  const Lease other = take(of_numbers);
  EXPECT_EQ(sql.value("SELECT pg_try_advisory_lock(0, 42)"), "f");
  EXPECT_EQ(count(true), "2");
}

TEST_F(AdvisoryTest, ANameWhoseKeyTheServerComputesIsTheLockOfThatHash) {
  const Client ours = client("key=hashtextextended");
  DistributedLock one = ours.make_lock("one");
  DistributedLock other = ours.make_lock("other");
  PostgresConnection sql(server.admin_conninfo());
  Lease lease = take(one);
  Lease second = take(other);
  EXPECT_FALSE(one.try_acquire());
  EXPECT_EQ(sql.value("SELECT pg_try_advisory_lock(hashtextextended('one', 0))"), "f");
  EXPECT_TRUE(lease.release());
  EXPECT_TRUE(second.release());
  EXPECT_EQ(count(true), "0");
}

TEST_F(AdvisoryTest, TwoNamesWithOneKeyAreOneLock) {
  const Client ours = client("key=int64:42");
  DistributedLock one = ours.make_lock("one");
  DistributedLock other = ours.make_lock("other");
  Lease lease = take(one);
  EXPECT_FALSE(other.try_acquire());
  Pending waiting(other, {});
  await_count(false, 1);
  EXPECT_TRUE(lease.release());
  EXPECT_TRUE(waiting.lease().release());
}

TEST_F(AdvisoryTest, ASessionNeverHasALockTwice) {
  const Client ours = client();
  DistributedLock lock = ours.make_lock("a");
  Lease lease = take(lock);
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(lock.try_acquire());
  EXPECT_TRUE(lease.release());
  EXPECT_EQ(count(true), "0");  // one unlock was enough
}

TEST_F(AdvisoryTest, AHolderDoesNotKeepTheServerFromCleaningUp) {
  const Client ours = client();
  DistributedLock lock = ours.make_lock("a");
  const Lease lease = take(lock);
  EXPECT_EQ(server.value("SELECT count(*) FROM pg_stat_activity WHERE usename = 'locker' AND "
                         "(backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)"),
            "0");
}

TEST_F(AdvisoryTest, WaitersOfSeveralClientsAreServedInTheOrderInWhichTheyCame) {
  const Client ours = client();
  DistributedLock lock = ours.make_lock("a");
  Lease lease = take(lock);
  std::vector<Client> clients;
  std::vector<DistributedLock> locks;
  std::vector<Pending> waiting;
  constexpr int waiters = 6;
  clients.reserve(waiters);
  locks.reserve(waiters);
  waiting.reserve(waiters);
  for (int i = 0; i < waiters; ++i) {
    clients.push_back(client());
    locks.push_back(clients.back().make_lock("a"));
    waiting.emplace_back(locks.back(), AcquireOptions{});
    await_count(false, i + 1);
  }
  FencingToken last = lease.token();
  EXPECT_TRUE(lease.release());
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    Lease next = waiting[i].lease();
    EXPECT_GT(next.token(), last);
    last = next.token();
    for (std::size_t later = i + 1; later < waiting.size(); ++later) EXPECT_FALSE(waiting[later].done());
    EXPECT_FALSE(locks[i].try_acquire());  // nor does a try overtake
    EXPECT_TRUE(next.release());
  }
}

// --- Waiting ---------------------------------------------------------------------------------------------------------

TEST_F(AdvisoryTest, WhoGivesUpLeavesTheServersQueue) {
  const Client ours = client();
  const Client other = client();
  DistributedLock lock = ours.make_lock("a");
  DistributedLock others = other.make_lock("a");
  Lease lease = take(others);
  Pending waiting(lock, {});
  await_count(false, 1);
  waiting.cancel();
  EXPECT_EQ(waiting.get().error, errc::cancelled);
  await_count(false, 0);
  EXPECT_TRUE(lease.held());
  EXPECT_TRUE(lease.release());
  EXPECT_EQ(count(true), "0");
}

TEST_F(AdvisoryTest, OneThatIsGrantedAfterAWaitLongerThanItsLeaseIsSafe) {
  const Client ours = connect_patiently(server.url(advisory), {.lease = 3s});
  const Client other = client();
  DistributedLock lock = ours.make_lock("a");
  DistributedLock others = other.make_lock("a");
  Lease lease = take(others);
  Pending waiting(lock, {});
  await_count(false, 1);
  await_in_server(
      "EXISTS (SELECT FROM pg_stat_activity AS a JOIN pg_locks AS l ON a.pid = l.pid WHERE "
      "NOT l.granted AND a.query_start < clock_timestamp() - interval '4 s')");
  EXPECT_TRUE(lease.release());
  Lease granted = waiting.lease();
  EXPECT_TRUE(granted.held());
  EXPECT_EQ(server.value("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted"), "1");
  EXPECT_TRUE(granted.release());
}

TEST_F(AdvisoryTest, MoreMayWaitThanThereAreConnections) {
  const Client ours = client("max_connections=2");
  const Client other = client();
  constexpr int waiters = 8;
  DistributedLock others = other.make_lock("a");
  Lease lease = take(others);
  DistributedLock lock = ours.make_lock("a");
  std::vector<Pending> waiting;
  waiting.reserve(waiters);
  for (int i = 0; i < waiters; ++i) {
    waiting.emplace_back(lock, AcquireOptions{}, [](Lease& granted) { conformance::release_soon(std::move(granted)); });
  }
  await_count(false, 1);
  EXPECT_TRUE(lease.release());
  for (Pending& each : waiting) EXPECT_FALSE(each.get().error);
  await_count(true, 0);
}

TEST_F(AdvisoryTest, WhoWaitsBeyondTheConnectionsIsNotLeftOutWhenItsLockIsFree) {
  const Client ours = client("max_connections=1");
  const Client other = client();
  DistributedLock a = other.make_lock("a");
  DistributedLock b = other.make_lock("b");
  Lease lease_a = take(a);
  Lease lease_b = take(b);
  DistributedLock our_a = ours.make_lock("a");
  DistributedLock our_b = ours.make_lock("b");
  Pending waits_for_a(our_a, {});
  await_count(false, 1);
  Pending waits_for_b(our_b, {});
  EXPECT_TRUE(lease_b.release());
  EXPECT_TRUE(waits_for_b.lease().release());  // though the connection waits for the other
  EXPECT_FALSE(waits_for_a.done());
  EXPECT_TRUE(lease_a.release());
  EXPECT_TRUE(waits_for_a.lease().release());
}

TEST_F(AdvisoryTest, AWaitInVainBeyondTheConnectionsIsTimedOutForTheLockIsHeld) {
  const Client ours = client("max_connections=1");
  const Client other = client();
  DistributedLock others = other.make_lock("a");
  const Lease lease = take(others);
  DistributedLock lock = ours.make_lock("a");
  Pending first(lock, {});
  await_count(false, 1);
  std::error_code error;
  EXPECT_FALSE(lock.acquire({.wait = 50ms}, error).held());
  EXPECT_EQ(error, errc::timed_out) << error.message();
}

// --- The sessions ----------------------------------------------------------------------------------------------------

TEST_F(AdvisoryTest, TheServerFreesWhatIsHeldByAClientThatItDoesNotHearOf) {
  const Client silent = connect_patiently(server.url_at(proxy.port(), advisory),
                                          {.lease = short_lease, .response_timeout = 300ms, .close_timeout = 100ms});
  const Client other = client();
  DistributedLock tried = silent.make_lock("tried");
  DistributedLock waited = silent.make_lock("waited");
  DistributedLock others_tried = other.make_lock("tried");
  DistributedLock others_waited = other.make_lock("waited");
  Lease before = take(others_waited);
  Pending waiting(waited, {});
  await_count(false, 1);
  const Lease lease = take(tried);
  EXPECT_TRUE(before.release());
  const Lease on_other_connection = waiting.lease();
  const LossEvent loss(lease);
  const LossEvent other_loss(on_other_connection);
  Pending next(others_tried, {}, [&](Lease&) { EXPECT_FALSE(lease.held()); });
  Pending next_too(others_waited, {}, [&](Lease&) { EXPECT_FALSE(on_other_connection.held()); });
  await_count(false, 2);
  proxy.set({.mode = rig::Traffic::Mode::hold});
  EXPECT_TRUE(next.lease().release());
  EXPECT_TRUE(next_too.lease().release());
  loss.event().wait("the loss is not signalled");
  other_loss.event().wait("the loss is not signalled");
}

TEST_F(AdvisoryTest, ALockIsLostWithItsConnectionAndNoOther) {
  const Client ours = client();
  const Client other = client();
  DistributedLock tried = ours.make_lock("tried");
  DistributedLock waited = ours.make_lock("waited");
  DistributedLock others = other.make_lock("waited");
  Lease before = take(others);
  Pending waiting(waited, {});
  await_count(false, 1);
  EXPECT_TRUE(before.release());
  const Lease on_its_own = waiting.lease();
  Lease lease = take(tried);
  server.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE '% waiting'");
  LossEvent(on_its_own).event().wait("the loss is not signalled");
  EXPECT_TRUE(lease.held());
  EXPECT_TRUE(lease.release());
}

TEST_F(AdvisoryTest, AClientHoldsOnlySoManyLocks) {
  const Client ours = client("max_connections=995");  // five of the thousand are left for other locks
  std::vector<DistributedLock> locks;
  std::vector<Lease> leases;
  for (int i = 0; i < 6; ++i) locks.push_back(ours.make_lock(std::to_string(i)));
  for (std::size_t i = 0; i < 5; ++i) leases.push_back(take(locks[i]));
  std::error_code ec;
  EXPECT_FALSE(locks[5].try_acquire({}, ec));
  EXPECT_EQ(ec, errc::unavailable);
  Pending waiting(locks[5], {});
  EXPECT_TRUE(leases[0].release());
  EXPECT_TRUE(waiting.lease().release());
}

}  // namespace

}  // namespace dlock::test
