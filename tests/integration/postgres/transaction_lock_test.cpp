// What a lock inside the caller's transaction excludes, and when it is released.
#include "transaction_lock.hpp"

#include <gtest/gtest.h>

#include <libpq-fe.h>

#include <chrono>
#include <cstdint>
#include <future>
#include <stdexcept>
#include <string>

#include <dlock/dlock.hpp>
#include <dlock/postgres.hpp>

#include "tests/support/pgbouncer.hpp"
#include "torture/rig/child_process.hpp"
#include "torture/rig/hang_guard.hpp"

namespace dlock::test {

namespace {

// --- The same lock as the client's -----------------------------------------------------------------------------------

TEST_P(PostgresTransactionLockTest, TheClientsLockIsTheTransactionsAndTheOtherWayRound) {
  const Client other = client();
  Lease lease = other.make_lock(name).acquire();
  Program program(server.url());
  program.begin();
  EXPECT_FALSE(try_lock_in_transaction(program.connection(), name, options()));
  EXPECT_EQ(program.status(), PQTRANS_INTRANS) << "busy is no error";
  EXPECT_TRUE(lease.release());
  const auto token = try_lock_in_transaction(program.connection(), name, options());
  ASSERT_TRUE(token);
  EXPECT_GT(*token, lease.token());
  EXPECT_FALSE(other.make_lock(name).try_acquire());
  EXPECT_TRUE(other.inspect(name).held);
  program.commit();
  const auto next = other.make_lock(name).try_acquire();
  ASSERT_TRUE(next);
  EXPECT_GT(next->token(), *token);
}

TEST_P(PostgresTransactionLockTest, ItWaitsForTheClientAndTheClientForIt) {
  const Client other = client();
  Lease lease = other.make_lock(name).acquire();
  Program program(server.url());
  program.begin();
  auto waiting =
      std::async(std::launch::async, [&] { return lock_in_transaction(program.connection(), name, options()); });
  await_waiter();
  const std::uint64_t before =
      std::stoull(server.value("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"));
  EXPECT_TRUE(lease.release());
  const FencingToken token = waiting.get();
  EXPECT_GT(token.value(), before) << "drawn after the wait";
  auto client_waiting =
      std::async(std::launch::async, [&] { return other.make_lock(name).acquire({.wait = rig::hang_guard}).token(); });
  await_waiter();
  program.commit();
  EXPECT_GT(client_waiting.get(), token);
}

TEST_P(PostgresTransactionLockTest, ARollbackReleasesIt) {
  Program program(server.url());
  for (int i = 0; i < 2; ++i) {  // the first time there is no row yet
    program.begin();
    (void)lock_in_transaction(program.connection(), name, options());
    EXPECT_FALSE(is_free());
    program.rollback();
    EXPECT_TRUE(is_free());
  }
}

TEST_P(PostgresTransactionLockTest, TheEndOfTheConnectionReleasesItAndUndoesTheWork) {
  const Client other = client();
  server.run("CREATE TABLE IF NOT EXISTS public.work (n integer)");
  server.run("GRANT ALL ON public.work TO PUBLIC");
  for (const bool broken_by_an_operator : {false, true}) {
    EXPECT_TRUE(is_free());  // and no longer a new name
    Program program(server.url());
    program.begin();
    (void)lock_in_transaction(program.connection(), name, options());
    program.run("INSERT INTO public.work VALUES (1)");
    if (broken_by_an_operator) {
      EXPECT_TRUE(other.break_lock(name));
    } else {
      program = Program(server.url());
    }
    EXPECT_TRUE(other.make_lock(name).acquire({.wait = rig::hang_guard}).release());
    if (broken_by_an_operator) {
      EXPECT_THROW(program.commit(), std::runtime_error);
    }
    EXPECT_EQ(server.value("SELECT count(*) FROM public.work"), "0");
  }
}

TEST_P(PostgresTransactionLockTest, ATokenThatARollbackUndidIsNotHandedOutAgain) {
  Program program(server.url());
  FencingToken last;
  for (const bool commits : {true, false, false, true}) {
    program.begin();
    const FencingToken token = lock_in_transaction(program.connection(), name, options());
    EXPECT_GT(token, last);
    last = token;
    if (commits) {
      program.commit();
    } else {
      program.rollback();
    }
  }
}

TEST_P(PostgresTransactionLockTest, WhatItHasItGetsAgainWithANewerToken) {
  Program program(server.url());
  program.begin();
  const FencingToken first = lock_in_transaction(program.connection(), name, options());
  const auto again = try_lock_in_transaction(program.connection(), name, options());
  ASSERT_TRUE(again);
  EXPECT_GT(*again, first);
  program.commit();
  EXPECT_TRUE(is_free());
}

TEST_P(PostgresTransactionLockTest, TheKindsAreDifferentLocks) {
  const Kind other_kind = GetParam() == Kind::row ? Kind::advisory : Kind::row;
  Program one(server.url());
  Program two(server.url());
  one.begin();
  two.begin();
  EXPECT_TRUE(try_lock_in_transaction(one.connection(), name, options()));
  EXPECT_TRUE(try_lock_in_transaction(two.connection(), name, {.kind = other_kind}));
}

// --- The first use of a name -----------------------------------------------------------------------------------------

TEST_P(PostgresTransactionLockTest, ANewNameIsHeldBeforeAnybodyCanSeeItsRow) {
  for (const bool commits : {false, true}) {
    Program program(server.url());
    program.begin();
    (void)lock_in_transaction(program.connection(), name, options());
    EXPECT_FALSE(is_free());
    EXPECT_EQ(client().inspect(name).held, GetParam() == Kind::advisory) << "PostgreSQL shows locks, and no new row";
    Program other(server.url());
    other.begin();
    EXPECT_FALSE(try_lock_in_transaction(other.connection(), name, options()));
    EXPECT_EQ(other.status(), PQTRANS_INTRANS);
    auto waiting = std::async(std::launch::async,
                              [&] { return lock_in_transaction(other.connection(), name, options()).value() > 0; });
    const std::string pid = std::to_string(PQbackendPID(other.connection()));
    server.await("cardinality(pg_blocking_pids(" + pid + ")) > 0");
    if (commits) {
      program.commit();
    } else {
      program.rollback();
    }
    EXPECT_TRUE(waiting.get());
    EXPECT_FALSE(is_free());
    other.rollback();
    EXPECT_TRUE(is_free());
    server.run("DELETE FROM dlock.row_lock");
  }
}

TEST_P(PostgresTransactionLockTest, ATryOfANewNameTakesItAndKeepsWhatWasDoneBefore) {
  Program program(server.url());
  program.run("CREATE TEMPORARY TABLE mine (n integer)");
  program.begin();
  program.run("INSERT INTO mine VALUES (1)");
  EXPECT_TRUE(try_lock_in_transaction(program.connection(), name, options()));
  EXPECT_FALSE(is_free());
  program.commit();
  EXPECT_EQ(program.value("SELECT count(*) FROM mine"), "1");
  EXPECT_TRUE(is_free());
}

// --- Poolers ---------------------------------------------------------------------------------------------------------

TEST_P(PostgresTransactionLockTest, WorksThroughAPoolerThatLendsByTheTransaction) {
  const PgBouncer pooler(server, {.pool_size = 2});
  Program one(server.url_at(pooler.port()));
  Program two(server.url_at(pooler.port()));
  Program three(server.url_at(pooler.port()));
  for (int i = 0; i < 3; ++i) {
    one.begin();
    two.begin();
    const FencingToken token = lock_in_transaction(one.connection(), name, options());
    EXPECT_FALSE(try_lock_in_transaction(two.connection(), name, options()));
    two.commit();
    three.begin();
    EXPECT_FALSE(try_lock_in_transaction(three.connection(), name, options())) << "over the same session as two";
    one.commit();
    EXPECT_GT(lock_in_transaction(three.connection(), name, options()), token);
    three.commit();
  }
  EXPECT_TRUE(is_free());
}

INSTANTIATE_TEST_SUITE_P(Kinds, PostgresTransactionLockTest, testing::Values(Kind::row, Kind::advisory), name_of_kind);

#ifdef DLOCK_TRANSACTION_EXAMPLE
TEST(PostgresTransactionLockExample, DoesWhatItSays) {
  const PostgresServer server;
  (void)connect_patiently(server.url()).initialize();
  EXPECT_EQ(rig::run_command({DLOCK_TRANSACTION_EXAMPLE, server.url()}),
            "the balance is 200\n"
            "while one transaction has the lock, another does not get it\n"
            "after its end it does\n");
}
#endif

}  // namespace

}  // namespace dlock::test
