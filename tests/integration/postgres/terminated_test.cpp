// pg_terminate_backend() of every connection of a client.
#include <sys/stat.h>

#include <atomic>
#include <fstream>
#include <mutex>
#include <set>
#include <thread>

#include "postgres/postgres_test.hpp"
#include "torture/rig/scratch_directory.hpp"

namespace dlock::test {

namespace {

class TerminatedTest : public PostgresStrategyTest {
 protected:
  TerminatedTest() { make_role("doomed"); }

  [[nodiscard]] static bool is_over(const std::atomic<int>& running) { return running.load() == 0; }
};

TEST_P(TerminatedTest, AHolderIsToldOrKeepsTheLock) {
  const Client holder = as("doomed", {.lease = in_session() ? Duration(10min) : Duration(9s)});
  const Client other = steady(patient());
  DistributedLock lock = holder.make_lock("held");
  DistributedLock others = other.make_lock("held");
  Lease lease = take(lock);
  const LossEvent loss(lease);
  Pending waiting(others, {});
  await_waiter("held");
  EXPECT_NE(server.value(PostgresLock(GetParam(), "held").residue()), "0");
  EXPECT_GE(terminate("doomed"), 1);
  if (in_session()) {
    loss.event().wait("the loss is not signalled");
    EXPECT_FALSE(lease.held());
    EXPECT_GT(waiting.lease().token(), lease.token());
    EXPECT_FALSE(lease.release());
  } else {
    await_renewal(lease);
    EXPECT_TRUE(lease.held());
    EXPECT_FALSE(waiting.done());
    EXPECT_TRUE(lease.release());
    EXPECT_GT(waiting.lease().token(), lease.token());
  }
  await_no_residue("held");
}

TEST_P(TerminatedTest, ASessionTakesAllItsLocksWithItAndNoMore) {
  const Client holder = as("doomed", patient());
  const Client other = steady(patient());
  std::vector<DistributedLock> locks;
  std::vector<Lease> leases;
  for (int i = 0; i < 5; ++i) {
    locks.push_back(holder.make_lock("held/" + std::to_string(i)));
    leases.push_back(take(locks.back()));
  }
  DistributedLock unrelated = other.make_lock("unrelated");
  const Lease kept = take(unrelated);
  EXPECT_GE(terminate("doomed"), 1);
  for (std::size_t i = 0; i < leases.size(); ++i) {
    if (in_session()) LossEvent(leases[i]).event().wait("a lock of the session is not lost");
    EXPECT_EQ(leases[i].held(), !in_session());
  }
  EXPECT_TRUE(kept.held());
}

TEST_P(TerminatedTest, AWaiterGoesOnWaiting) {
  const Client holder = steady(patient());
  const Client other = as("doomed", patient());
  DistributedLock lock = holder.make_lock("waited-for");
  DistributedLock others = other.make_lock("waited-for");
  Lease lease = take(lock);
  Pending waiting(others, {});
  for (int i = 0; i < 3; ++i) {
    await_waiter("waited-for");
    await_in_server("EXISTS (SELECT FROM pg_stat_activity WHERE usename = 'doomed')");
    EXPECT_GE(terminate("doomed"), 1);
  }
  EXPECT_FALSE(waiting.done());
  EXPECT_TRUE(lease.release());
  Lease next = waiting.lease();
  EXPECT_GT(next.token(), lease.token());
  EXPECT_TRUE(next.release());
  await_no_residue("waited-for");
}

TEST_P(TerminatedTest, WhoHoldsNothingDoesNotNotice) {
  const Client client = as("doomed", patient());
  DistributedLock lock = client.make_lock("free");
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(take(lock).release());
    EXPECT_GE(terminate("doomed"), 1);
  }
  EXPECT_TRUE(take(lock).release());
  EXPECT_EQ(client.stats().failed, 0U);
}

TEST_P(TerminatedTest, InTheMiddleOfEverythingNoTokenIsGivenTwiceAndNothingIsLeft) {
  constexpr int clients = 3;
  constexpr int rounds = 20;
  std::mutex mutex;
  std::set<FencingToken> tokens;
  std::atomic<int> running = clients;
  std::vector<std::jthread> threads;
  for (int i = 0; i < clients; ++i) {
    threads.emplace_back([&] {
      const Client client = as("doomed", patient());
      DistributedLock lock = client.make_lock("contended");
      for (int round = 0; round < rounds; ++round) {
        std::error_code error;
        Lease lease = lock.acquire({}, error);
        EXPECT_FALSE(error) << "a wait without a deadline ends with the lock: " << error.message();
        if (error) break;
        {
          const std::scoped_lock guard(mutex);
          EXPECT_TRUE(tokens.insert(lease.token()).second);
        }
        (void)lease.release(error);  // may be lost, or be repeated later
      }
      --running;
    });
  }
  for (int i = 0; i < 10 && !is_over(running); ++i) {
    server.run("SELECT pg_sleep(0.1)");
    (void)terminate("doomed");
  }
  threads.clear();
  const Client other = steady(patient());
  DistributedLock others = other.make_lock("contended");
  EXPECT_TRUE(take(others).release());
  await_no_residue("contended");
}

INSTANTIATE_TEST_SUITE_P(, TerminatedTest, testing::ValuesIn(tested()), strategy_name);

class PostgresPasswordFileTest : public PostgresTest {
 protected:
  void write(const std::string& password) const {
    std::ofstream(path(), std::ios::trunc) << "*:*:*:doomed:" << password << "\n";
    rig::require(::chmod(path().c_str(), S_IRUSR | S_IWUSR), "chmod");
  }
  [[nodiscard]] std::string path() const { return directory_.path() + "/passwords"; }

 private:
  rig::ScratchDirectory directory_;
};

TEST_F(PostgresPasswordFileTest, ConnectionsThatAreMadeLaterUseTheNewPassword) {
  make_role("doomed");
  write("doomed");
  const Client client = connect_patiently(
      "postgresql://doomed@127.0.0.1:" + std::to_string(server.port()) + "/locks?passfile=" + path(), {.lease = 9s});
  DistributedLock lock = client.make_lock("held");
  const Lease lease = take(lock);
  server.run("ALTER ROLE doomed PASSWORD 'new'");
  write("new");
  EXPECT_GE(terminate("doomed"), 1);
  await_renewal(lease);
  EXPECT_TRUE(lease.held());
}

}  // namespace

}  // namespace dlock::test
