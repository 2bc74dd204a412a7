// How a lock inside the caller's transaction fails, and what that leaves of the transaction. The
// tests are instantiated in transaction_lock_test.cpp.
#include "transaction_lock.hpp"

#include <gtest/gtest.h>

#include <libpq-fe.h>

#include <chrono>
#include <future>
#include <string>

#include <dlock/dlock.hpp>
#include <dlock/postgres.hpp>

#include "torture/rig/hang_guard.hpp"

namespace dlock::test {

namespace {

// --- The end of the wait ---------------------------------------------------------------------------------------------

TEST_P(PostgresTransactionLockTest, TheEndOfTheWaitIsAnErrorThatASavepointContains) {
  const Client other = client();
  const Lease lease = other.make_lock(name).acquire();
  Program program(server.url());
  program.begin();
  program.run("SET LOCAL lock_timeout = '1234ms'");
  program.run("SET LOCAL statement_timeout = '1234s'");
  program.run("SAVEPOINT mine");
  expect_error(errc::timed_out, "SQLSTATE",
               [&] { (void)lock_in_transaction(program.connection(), name, options(20ms)); });
  EXPECT_EQ(program.status(), PQTRANS_INERROR);
  program.run("ROLLBACK TO SAVEPOINT mine");
  EXPECT_EQ(program.status(), PQTRANS_INTRANS);
  EXPECT_EQ(program.value("SHOW lock_timeout"), "1234ms");
  EXPECT_EQ(program.value("SHOW statement_timeout"), "1234s");
  expect_error(errc::timed_out, "is already held",
               [&] { (void)lock_in_transaction(program.connection(), name, options(0ms)); });
  EXPECT_EQ(program.status(), PQTRANS_INTRANS) << "not to wait is no error of SQL";
  program.rollback();
}

// Who waits behind others waits twice: for those, and then for whoever has the lock.
TEST_P(PostgresTransactionLockTest, AWaitBehindOthersEndsInTime) {
  constexpr auto wait = 4s;
  EXPECT_TRUE(is_free());  // and no longer a new name
  Program holder(server.url());
  holder.begin();
  (void)lock_in_transaction(holder.connection(), name, options());
  Program first(server.url());
  first.begin();
  auto first_waits = std::async(std::launch::async, [&] {
    return error_of([&] { (void)lock_in_transaction(first.connection(), name, options()); }).has_value();
  });
  const auto pid = [](const Program& program) { return std::to_string(PQbackendPID(program.connection())); };
  server.await("cardinality(pg_blocking_pids(" + pid(first) + ")) > 0");
  Program second(server.url());
  second.begin();
  const auto start = std::chrono::steady_clock::now();
  auto ended = std::async(std::launch::async, [&] {
    expect_error(errc::timed_out, "", [&] { (void)lock_in_transaction(second.connection(), name, options(wait)); });
    return std::chrono::steady_clock::now();
  });
  server.await("cardinality(pg_blocking_pids(" + pid(second) + ")) > 0");
  const std::string late = "interval '" + std::to_string(std::chrono::milliseconds(wait).count() * 3 / 4) + " ms'";
  server.await("(SELECT clock_timestamp() > query_start + " + late +
               " FROM pg_stat_activity WHERE pid = " + pid(second) + ")");
  server.run("SELECT pg_cancel_backend(" + pid(first) + ")");
  EXPECT_TRUE(first_waits.get());
  EXPECT_LT(ended.get() - start, wait * 3 / 2);
}

TEST_P(PostgresTransactionLockTest, TheCallersStatementTimeoutGoesOnApplyingAndStaysAsItIs) {
  const auto timeout = [](Program& program) { return program.value("SHOW statement_timeout"); };
  Program program(server.url());
  program.run("SET statement_timeout = '1h'");
  for (const std::string own : {"0", "1234s", "1d", "90min", "30500ms"}) {
    program.begin();
    program.run("SET LOCAL statement_timeout = '" + own + "'");
    const std::string before = timeout(program);
    (void)lock_in_transaction(program.connection(), name + own, options());  // a new name
    EXPECT_EQ(timeout(program), before);
    (void)lock_in_transaction(program.connection(), name + own, options());  // a known one
    EXPECT_EQ(timeout(program), before);
    program.commit();
    EXPECT_EQ(timeout(program), "1h");
  }
  Program other(server.url());
  program.begin();
  (void)lock_in_transaction(program.connection(), name, options());
  other.begin();
  other.run("SET LOCAL statement_timeout = '50ms'");
  expect_error(errc::unavailable, "57014", [&] { (void)lock_in_transaction(other.connection(), name, options()); });
  program.commit();
}

// To the server, 0 means for ever.
TEST_P(PostgresTransactionLockTest, AWaitOfLessThanAMillisecondEnds) {
  const Client other = client();
  const Lease lease = other.make_lock(name).acquire();
  Program program(server.url());
  for (const auto wait : {1ns, 999'999ns}) {
    program.begin();
    expect_error(errc::timed_out, "", [&] { (void)lock_in_transaction(program.connection(), name, options(wait)); });
    program.rollback();
  }
}

TEST_P(PostgresTransactionLockTest, AWaitMayBeAsLongAsYouLike) {
  Program program(server.url());
  for (const Duration wait : {Duration(std::chrono::hours(24 * 365)), Duration(forever.value() - 1ns), forever}) {
    program.begin();
    EXPECT_GT(lock_in_transaction(program.connection(), name, options(wait)).value(), 0U);
    program.commit();
  }
}

TEST_P(PostgresTransactionLockTest, TheCallersLockTimeoutStaysAsItIs) {
  const auto timeout = [](Program& program) { return program.value("SHOW lock_timeout"); };
  Program program(server.url());
  program.run("SET lock_timeout = '5s'");
  program.begin();
  program.run("SET LOCAL lock_timeout = '1234ms'");
  (void)lock_in_transaction(program.connection(), name, options());  // a new name
  EXPECT_EQ(timeout(program), "1234ms");
  (void)lock_in_transaction(program.connection(), name, options());  // a known one
  EXPECT_EQ(timeout(program), "1234ms");
  (void)try_lock_in_transaction(program.connection(), name + "/2", options());
  EXPECT_EQ(timeout(program), "1234ms");
  Program other(server.url());
  other.begin();
  other.run("SET LOCAL lock_timeout = '1234ms'");
  EXPECT_FALSE(try_lock_in_transaction(other.connection(), name, options()));
  EXPECT_EQ(timeout(other), "1234ms");
  program.commit();
  EXPECT_EQ(timeout(program), "5s");
}

// --- Savepoints and errors -------------------------------------------------------------------------------------------

TEST_P(PostgresTransactionLockTest, GoingBackToASavepointReleasesWhatWasLockedAfterIt) {
  Program program(server.url());
  program.begin();
  (void)lock_in_transaction(program.connection(), name, options());
  program.run("SAVEPOINT mine");
  (void)lock_in_transaction(program.connection(), name + "/2", options());
  program.run("ROLLBACK TO SAVEPOINT mine");
  EXPECT_TRUE(is_free(name + "/2"));
  EXPECT_FALSE(is_free());
  program.commit();
}

TEST_P(PostgresTransactionLockTest, AnyErrorInTheTransactionReleasesItBeforeTheRollback) {
  Program program(server.url());
  program.begin();
  (void)lock_in_transaction(program.connection(), name, options());
  EXPECT_THROW(program.run("SELECT 1 / 0"), std::runtime_error);
  EXPECT_EQ(program.status(), PQTRANS_INERROR);
  EXPECT_TRUE(is_free());
}

TEST_P(PostgresTransactionLockTest, ADeadlockEndsOneOfTheTwo) {
  Program one(server.url());
  Program two(server.url());
  one.begin();
  two.begin();
  (void)lock_in_transaction(one.connection(), name + "/a", options());
  (void)lock_in_transaction(two.connection(), name + "/b", options());
  const auto take = [&](Program& program, const std::string& which) {
    return std::async(std::launch::async, [&program, which, this] {
      const auto error = error_of([&] { (void)lock_in_transaction(program.connection(), name + which, options()); });
      if (error) program.rollback();
      return error;
    });
  };
  auto first = take(one, "/b");
  auto second = take(two, "/a");
  const auto errors = {first.get(), second.get()};
  int victims = 0;
  for (const auto& error : errors) {
    if (!error) continue;
    ++victims;
    EXPECT_EQ(error->code(), errc::unavailable);
    EXPECT_NE(error->detail().find("40P01"), std::string::npos) << error->detail();
  }
  EXPECT_EQ(victims, 1);
}

TEST_P(PostgresTransactionLockTest, ABrokenConnectionIsUnavailable) {
  Program program(server.url());
  program.begin();
  server.run("SELECT pg_terminate_backend(" + std::to_string(PQbackendPID(program.connection())) + ", 10000)");
  for (int i = 0; i < 2; ++i) {
    expect_error(errc::unavailable, "", [&] { (void)lock_in_transaction(program.connection(), name, options()); });
  }
}

// --- Isolation -------------------------------------------------------------------------------------------------------

TEST_P(PostgresTransactionLockTest, AFreeLockIsTakenAtAnyIsolation) {
  Program program(server.url());
  for (const char* const isolation : {"READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"}) {
    for (int i = 0; i < 2; ++i) {
      program.begin(std::string("ISOLATION LEVEL ") + isolation);
      EXPECT_GT(lock_in_transaction(program.connection(), name + isolation, options()).value(), 0U);
      program.commit();
    }
  }
}

TEST_P(PostgresTransactionLockTest, ALockThatSomebodyHadSinceTheSnapshotIsASerializationFailure) {
  const Client other = client();
  for (const char* const isolation : {"REPEATABLE READ", "SERIALIZABLE"}) {
    for (const bool known : {false, true}) {
      const std::string own = name + isolation;
      if (known) (void)other.make_lock(own).acquire();
      Program program(server.url());
      program.begin(std::string("ISOLATION LEVEL ") + isolation);
      (void)program.value("SELECT count(*) FROM dlock.meta");  // takes the snapshot
      ASSERT_TRUE(other.make_lock(own).acquire().release());
      expect_error(errc::unavailable, "40001",
                   [&] { (void)lock_in_transaction(program.connection(), own, options()); });
      program.rollback();
      program.begin(std::string("ISOLATION LEVEL ") + isolation);
      EXPECT_GT(lock_in_transaction(program.connection(), own, options()).value(), 0U) << "begun again";
      program.commit();
    }
  }
}

TEST_P(PostgresTransactionLockTest, AfterAWaitASnapshotIsTooOldUnlessTheHolderRolledBack) {
  for (const bool commits : {false, true}) {
    EXPECT_TRUE(is_free());  // and no longer a new name
    Program holder(server.url());
    holder.begin();
    (void)lock_in_transaction(holder.connection(), name, options());
    Program program(server.url());
    program.begin("ISOLATION LEVEL REPEATABLE READ");
    auto waiting = std::async(std::launch::async, [&] {
      return error_of([&] { (void)lock_in_transaction(program.connection(), name, options()); });
    });
    await_waiter();
    if (commits) {
      holder.commit();
    } else {
      holder.rollback();
    }
    const auto error = waiting.get();
    program.rollback();
    ASSERT_EQ(error.has_value(), commits);
    if (!error) continue;
    EXPECT_EQ(error->code(), errc::unavailable);
    EXPECT_NE(error->detail().find("40001"), std::string::npos) << error->detail();
  }
}

TEST_P(PostgresTransactionLockTest, AReadOnlyTransactionCannotTakeIt) {
  EXPECT_TRUE(is_free());  // and no longer a new name
  Program program(server.url());
  program.begin("READ ONLY");
  expect_error(errc::unavailable, "25006", [&] { (void)lock_in_transaction(program.connection(), name, options()); });
}

// --- What is refused -------------------------------------------------------------------------------------------------

TEST_P(PostgresTransactionLockTest, AConnectionWithoutAnOpenTransactionIsRefused) {
  const auto refused = [&](pg_conn* connection, const std::string& words) {
    expect_error(errc::invalid_argument, words, [&] { (void)lock_in_transaction(connection, name, options()); });
    expect_error(errc::invalid_argument, words, [&] { (void)try_lock_in_transaction(connection, name, options()); });
  };
  refused(nullptr, "connection");
  Program program(server.url());
  refused(program.connection(), "no open transaction");
  program.begin();
  EXPECT_THROW(program.run("SELECT 1 / 0"), std::runtime_error);
  refused(program.connection(), "has failed");
  program.rollback();
  program.begin();
  ASSERT_EQ(PQsendQuery(program.connection(), "SELECT 1"), 1);
  refused(program.connection(), "under way");
  while (PGresult* const result = PQgetResult(program.connection())) PQclear(result);
  ASSERT_EQ(PQenterPipelineMode(program.connection()), 1);
  refused(program.connection(), "pipeline");
  ASSERT_EQ(PQexitPipelineMode(program.connection()), 1);
  EXPECT_TRUE(try_lock_in_transaction(program.connection(), name, options()));
}

TEST_P(PostgresTransactionLockTest, WrongArgumentsAreRefusedAndTheTransactionGoesOn) {
  Program program(server.url());
  program.begin();
  const auto refused = [&](const std::string& words, const std::string& which, TransactionLockOptions with) {
    with.kind = GetParam();
    expect_error(errc::invalid_argument, words, [&] { (void)lock_in_transaction(program.connection(), which, with); });
    EXPECT_EQ(program.status(), PQTRANS_INTRANS);
  };
  refused("lock name", "", {});
  refused("lock name", std::string(513, 'x'), {});
  refused("lock name", "\xff", {});
  refused("lock name", std::string("a\0b", 3), {});
  refused("schema", name, {.schema = ""});
  refused("holder", name, {.holder = "a\nb"});
  refused("wait", name, {.wait = -1ms});
  if (GetParam() == Kind::advisory) refused("key", name, {.key = "int64:x"});
  EXPECT_TRUE(try_lock_in_transaction(program.connection(), name, options()));
}

TEST_P(PostgresTransactionLockTest, AnotherEncodingCannotMakeItAnotherLock) {
  const std::string umlaut = name + "/\xc3\xa4";
  Program program(server.url());
  program.run("SET client_encoding = 'LATIN1'");
  program.begin();
  expect_error(errc::invalid_argument, "client_encoding",
               [&] { (void)lock_in_transaction(program.connection(), umlaut, options()); });
  EXPECT_TRUE(try_lock_in_transaction(program.connection(), name, options())) << "ASCII is the same in all of them";
  program.rollback();
  program.run("SET client_encoding = 'UTF8'");
  program.begin();
  (void)lock_in_transaction(program.connection(), umlaut, options());
  EXPECT_FALSE(is_free(umlaut));
}

TEST_P(PostgresTransactionLockTest, AMissingSchemaSaysHowToMakeIt) {
  Program program(server.url());
  program.begin();
  TransactionLockOptions elsewhere = options();
  elsewhere.schema = "nowhere";
  expect_error(errc::invalid_argument, "dlock init",
               [&] { (void)lock_in_transaction(program.connection(), name, elsewhere); });
}

TEST_P(PostgresTransactionLockTest, AMissingPermissionNamesTheGrant) {
  server.run("DROP ROLE IF EXISTS nobody");
  server.run("CREATE ROLE nobody LOGIN PASSWORD 'nobody'");
  Program program(server.url_as("nobody", "nobody"));
  program.begin();
  expect_error(errc::access_denied, "GRANT USAGE ON SCHEMA",
               [&] { (void)lock_in_transaction(program.connection(), name, options()); });
}

}  // namespace

}  // namespace dlock::test
