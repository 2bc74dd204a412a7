// Read-write locks with strategy=advisory on a real server.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include <dlock/dlock.hpp>

#include "integration_test.hpp"
#include "postgres/shared_server.hpp"
#include "suite/wait.hpp"

namespace dlock::test {

namespace {

using namespace std::chrono_literals;
using conformance::Event;

class AdvisorySharingTest : public OnSharedServer<> {
 protected:
  void SetUp() override { server.run("DROP SCHEMA IF EXISTS dlock CASCADE"); }

  [[nodiscard]] Client client() const { return connect_patiently(server.url("strategy=advisory"), {}); }
  struct Pending {
    Event event;
    std::optional<Lease> lease;
  };
};

// The readers' session would get the lock again, past whoever waits for it in the server.
TEST_F(AdvisorySharingTest, NobodyJoinsReadersWhileAWriterWaits) {
  const Client readers = client();
  const Client writers = client();
  ReadWriteLock lock = readers.make_read_write_lock("x");
  Lease one = lock.acquire_shared({.wait = 1min});
  std::optional<Lease> two = lock.try_acquire_shared();
  ASSERT_TRUE(two);
  EXPECT_EQ(server.value("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted"), "1")
      << "they share the lock of one session";
  EXPECT_NE(one.token(), two->token());
  auto writing = std::make_shared<Pending>();
  ReadWriteLock writer = writers.make_read_write_lock("x");
  writer.async_acquire({.wait = 1min}, [writing](std::error_code, Lease lease) {
    writing->lease = std::move(lease);
    writing->event.set();
  });
  server.await("EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted)");
  EXPECT_FALSE(lock.try_acquire_shared());
  EXPECT_TRUE(one.release());
  EXPECT_FALSE(writing->event.happened());
  EXPECT_TRUE(two->release());
  writing->event.wait("the writer enters");
  EXPECT_GT(writing->lease->token(), two->token());
  EXPECT_FALSE(lock.try_acquire_shared());
  EXPECT_TRUE(writing->lease->release());
  EXPECT_TRUE(lock.try_acquire_shared());
}

TEST_F(AdvisorySharingTest, ReadersOfManyClientsAreShownWithTheirMode) {
  const Client one = client();
  const Client two = client();
  ReadWriteLock lock = one.make_read_write_lock("x");
  ReadWriteLock other = two.make_read_write_lock("x");
  std::optional<Lease> first = lock.acquire_shared({.wait = 1min});
  std::optional<Lease> second = other.acquire_shared({.wait = 1min});
  const auto all = one.list(LockKind::read_write);
  ASSERT_EQ(all.size(), 1U);
  ASSERT_EQ(all[0].holders.size(), 2U);
  EXPECT_EQ(all[0].holders[0].mode, Mode::shared);
  first.reset();
  second.reset();
  const Lease writing = lock.acquire({.wait = 1min});
  const LockInfo info = two.inspect("x", LockKind::read_write);
  ASSERT_EQ(info.holders.size(), 1U);
  EXPECT_EQ(info.holders[0].mode, Mode::exclusive);
  EXPECT_EQ(info.holders[0].token, writing.token());
  EXPECT_FALSE(two.inspect("x").held);
}

TEST_F(AdvisorySharingTest, BreakingEndsTheSessionsOfAllReaders) {
  const Client one = client();
  const Client two = client();
  const Client breaker = client();
  Lease first = one.make_read_write_lock("x").acquire_shared({.wait = 1min});
  Lease second = two.make_read_write_lock("x").acquire_shared({.wait = 1min});
  EXPECT_TRUE(breaker.break_lock("x", LockKind::read_write));
  EXPECT_TRUE(breaker.make_read_write_lock("x").acquire({.wait = 1min}).held());
}

// Semaphores are none of what a session can lock.
TEST_F(AdvisorySharingTest, SemaphoresAreUnsupported) {
  const Client one = client();
  EXPECT_FALSE(one.capabilities().semaphores);
  try {
    (void)one.make_semaphore("x", 2);
    FAIL() << "there is none";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), errc::unsupported);
  }
}

}  // namespace

}  // namespace dlock::test
