// A migration under a lock that others wait for.
#include <gtest/gtest.h>

#include <dlock/dlock.hpp>

#include "postgres_test.hpp"

namespace dlock::test {

namespace {

class PostgresSnapshotsTest : public PostgresStrategyTest {};

INSTANTIATE_TEST_SUITE_P(Sessions, PostgresSnapshotsTest, testing::Values(Strategy::for_update, Strategy::advisory),
                         [](const auto& row) {
                           return row.param == Strategy::advisory ? std::string("advisory") : std::string("for_update");
                         });

// It waits for the snapshots of those who wait for the lock, and they wait for it.
TEST_P(PostgresSnapshotsTest, AnIndexIsMadeConcurrentlyUnderTheLock) {
  server.run("CREATE TABLE public.data (x int)");
  const Client holder = steady(patient());
  Lease lease = holder.make_lock("x").acquire();
  server.run("SET statement_timeout = '20s'");  // a slice lasts longer
  server.run("CREATE INDEX CONCURRENTLY ON public.data (x)");
  const Client other = steady(patient());
  DistributedLock lock = other.make_lock("x");
  Pending waiting(lock, {});
  await_waiter("x");
  server.run("CREATE INDEX CONCURRENTLY ON public.data (x)");
  EXPECT_TRUE(lease.held());
  lease.release();
  EXPECT_TRUE(waiting.lease().held());
}

}  // namespace

}  // namespace dlock::test
