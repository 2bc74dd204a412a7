// A lock inside a transaction of the caller's own, on a real server.
#include <gtest/gtest.h>

#include <libpq-fe.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <dlock/dlock.hpp>
#include <dlock/postgres.hpp>

#include "tests/support/hang_guard.hpp"
#include "tests/support/pgbouncer.hpp"
#include "tests/support/postgres_connection.hpp"
#include "tests/support/postgres_locks.hpp"
#include "tests/support/postgres_server.hpp"

namespace dlock::test {

namespace {

using namespace std::chrono_literals;
using postgres::lock_in_transaction;
using postgres::Strategy;
using postgres::TransactionLockOptions;
using postgres::try_lock_in_transaction;
using Kind = TransactionLockOptions::Kind;

// A program's own connection.
class Program {
 public:
  explicit Program(const std::string& url) : sql_(url) {}

  [[nodiscard]] pg_conn* connection() const { return sql_.handle(); }
  void run(const std::string& sql) { sql_.run(sql); }
  [[nodiscard]] std::string value(const std::string& sql) { return sql_.value(sql); }
  void begin(const std::string& how = {}) { sql_.run("BEGIN " + how); }
  void commit() { sql_.run("COMMIT"); }
  void rollback() { sql_.run("ROLLBACK"); }
  [[nodiscard]] PGTransactionStatusType status() const { return PQtransactionStatus(connection()); }

 private:
  PostgresConnection sql_;
};

class PostgresTransactionLockTest : public testing::TestWithParam<Kind> {
 protected:
  static void SetUpTestSuite() {
    shared = std::make_unique<PostgresServer>();
    (void)connect(shared->url()).initialize();
  }
  static void TearDownTestSuite() { shared.reset(); }

  // A name of this test's own.
  PostgresTransactionLockTest() : name("test/" + std::to_string(++tests)) {}

  [[nodiscard]] static TransactionLockOptions options(Duration wait = hang_guard) {
    return {.kind = GetParam(), .wait = wait};
  }
  [[nodiscard]] Client client() const {
    return connect(server.url(GetParam() == Kind::row ? "strategy=for-update" : "strategy=advisory"));
  }
  [[nodiscard]] bool is_free() const { return client().lock(name).try_acquire().has_value(); }
  void await_waiter() const {
    const auto strategy = GetParam() == Kind::row ? Strategy::for_update : Strategy::advisory;
    const auto give_up = std::chrono::steady_clock::now() + hang_guard;
    while (server.value("SELECT pg_sleep(0.01) IS NULL OR (" + PostgresLock(strategy, name).waiters() + ") > 0") !=
           "t") {
      ASSERT_LT(std::chrono::steady_clock::now(), give_up);
    }
  }
  [[nodiscard]] static std::optional<Error> error_of(const std::function<void()>& call) {
    try {
      call();
    } catch (const Error& e) {
      return e;
    }
    return std::nullopt;
  }
  static void expect_error(errc code, const std::string& words, const std::function<void()>& call) {
    const auto error = error_of(call);
    ASSERT_TRUE(error) << words;
    EXPECT_EQ(error->code(), code) << error->what();
    EXPECT_NE(error->detail().find(words), std::string::npos) << error->what();
  }

  static std::unique_ptr<PostgresServer> shared;
  static int tests;
  PostgresServer& server = *shared;
  const std::string name;
};
std::unique_ptr<PostgresServer> PostgresTransactionLockTest::shared;
int PostgresTransactionLockTest::tests = 0;

// --- The same lock as the client's -----------------------------------------------------------------------------------

TEST_P(PostgresTransactionLockTest, TheClientsLockIsTheTransactionsAndTheOtherWayRound) {
  const Client other = client();
  Lease lease = other.lock(name).acquire();
  Program program(server.url());
  program.begin();
  EXPECT_FALSE(try_lock_in_transaction(program.connection(), name, options()));
  EXPECT_EQ(program.status(), PQTRANS_INTRANS) << "busy is no error";
  EXPECT_TRUE(lease.release());
  const auto token = try_lock_in_transaction(program.connection(), name, options());
  ASSERT_TRUE(token);
  EXPECT_GT(*token, lease.token());
  EXPECT_FALSE(other.lock(name).try_acquire());
  EXPECT_TRUE(other.inspect(name).held);
  program.commit();
  const auto next = other.lock(name).try_acquire();
  ASSERT_TRUE(next);
  EXPECT_GT(next->token(), *token);
}

TEST_P(PostgresTransactionLockTest, ItWaitsForTheClientAndTheClientForIt) {
  const Client other = client();
  Lease lease = other.lock(name).acquire();
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
      std::async(std::launch::async, [&] { return other.lock(name).acquire({.wait = hang_guard}).token(); });
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
    Program other(server.url());
    other.begin();
    EXPECT_FALSE(try_lock_in_transaction(other.connection(), name, options()));
    EXPECT_EQ(other.status(), PQTRANS_INTRANS);
    auto waiting = std::async(std::launch::async,
                              [&] { return lock_in_transaction(other.connection(), name, options()).value() > 0; });
    const std::string pid = std::to_string(PQbackendPID(other.connection()));
    const auto give_up = std::chrono::steady_clock::now() + hang_guard;
    while (server.value("SELECT pg_sleep(0.01) IS NULL OR cardinality(pg_blocking_pids(" + pid + ")) > 0") != "t") {
      ASSERT_LT(std::chrono::steady_clock::now(), give_up);
    }
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

// --- The end of the wait ---------------------------------------------------------------------------------------------

TEST_P(PostgresTransactionLockTest, TheEndOfTheWaitIsAnErrorThatASavepointContains) {
  const Client other = client();
  const Lease lease = other.lock(name).acquire();
  Program program(server.url());
  program.begin();
  program.run("SAVEPOINT mine");
  expect_error(errc::timed_out, "55P03", [&] { (void)lock_in_transaction(program.connection(), name, options(20ms)); });
  EXPECT_EQ(program.status(), PQTRANS_INERROR);
  program.run("ROLLBACK TO SAVEPOINT mine");
  EXPECT_EQ(program.status(), PQTRANS_INTRANS);
  expect_error(errc::timed_out, "held by somebody else",
               [&] { (void)lock_in_transaction(program.connection(), name, options(0ms)); });
  EXPECT_EQ(program.status(), PQTRANS_INTRANS) << "not to wait is no error of SQL";
  program.rollback();
}

// To the server, 0 means for ever.
TEST_P(PostgresTransactionLockTest, AWaitOfLessThanAMillisecondEnds) {
  const Client other = client();
  const Lease lease = other.lock(name).acquire();
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
  EXPECT_TRUE(client().lock(name + "/2").try_acquire());
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
      if (known) (void)other.lock(own).acquire();
      Program program(server.url());
      program.begin(std::string("ISOLATION LEVEL ") + isolation);
      (void)program.value("SELECT count(*) FROM dlock.meta");  // takes the snapshot
      ASSERT_TRUE(other.lock(own).acquire().release());
      expect_error(errc::unavailable, "40001",
                   [&] { (void)lock_in_transaction(program.connection(), own, options()); });
      program.rollback();
      program.begin(std::string("ISOLATION LEVEL ") + isolation);
      EXPECT_GT(lock_in_transaction(program.connection(), own, options()).value(), 0U) << "begun again";
      program.commit();
    }
  }
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
  EXPECT_FALSE(client().lock(umlaut).try_acquire());
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

INSTANTIATE_TEST_SUITE_P(Kinds, PostgresTransactionLockTest, testing::Values(Kind::row, Kind::advisory),
                         [](const auto& kind) { return kind.param == Kind::row ? "row" : "advisory"; });

}  // namespace

}  // namespace dlock::test
