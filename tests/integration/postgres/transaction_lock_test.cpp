// A lock inside the caller's transaction: what it excludes, when it is released, and what an error leaves of the
// transaction.
#include <gtest/gtest.h>
#include <libpq-fe.h>

#include <chrono>
#include <future>
#include <optional>
#include <stdexcept>
#include <string>

#include <dlock/postgres.hpp>

#include "postgres/postgres_test.hpp"
#include "tests/support/pgbouncer.hpp"
#include "torture/rig/child_process.hpp"
#include "torture/rig/hang_guard.hpp"

namespace dlock::test {

namespace {

using postgres::lock_in_transaction;
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
  void end(bool commits) { sql_.run(commits ? "COMMIT" : "ROLLBACK"); }
  void commit() { end(true); }
  void rollback() { end(false); }
  [[nodiscard]] PGTransactionStatusType status() const { return PQtransactionStatus(connection()); }
  [[nodiscard]] std::string pid() const { return std::to_string(PQbackendPID(connection())); }

 private:
  PostgresConnection sql_;
};

class PostgresTransactionLockTest : public PostgresTest, public testing::WithParamInterface<Kind> {
 protected:
  PostgresTransactionLockTest() { (void)steady(patient()).initialize(); }

  [[nodiscard]] static TransactionLockOptions options(Duration wait = rig::hang_guard) {
    return {.kind = GetParam(), .wait = wait};
  }
  [[nodiscard]] Program begun(const std::string& how = {}) const {
    Program program(server.url());
    program.begin(how);
    return program;
  }
  FencingToken lock(Program& program, const std::string& lock_name = "name", Duration wait = rig::hang_guard) const {
    return lock_in_transaction(program.connection(), lock_name, options(wait));
  }
  std::optional<FencingToken> try_lock(Program& program, const std::string& lock_name = "name") const {
    return try_lock_in_transaction(program.connection(), lock_name, options());
  }
  // In a thread of its own.
  std::future<FencingToken> lock_later(Program& program, const std::string& lock_name = "name") const {
    return std::async(std::launch::async, [this, &program, lock_name] { return lock(program, lock_name); });
  }
  void expect_error(errc code, const std::string& words, Program& program, Duration wait = rig::hang_guard) const {
    expect_failure(code, words, [&] { (void)lock(program, name, wait); });
  }
  [[nodiscard]] Client client() const { return steady(patient(), with(strategy())); }
  [[nodiscard]] bool is_free(const std::string& lock_name = "name") const {
    const Client other = client();
    return other.make_lock(lock_name).try_acquire().has_value();
  }
  void await_waiter() { server.await("(" + PostgresLock(strategy(), name).waiters() + ") > 0"); }
  void await_blocked(const Program& program) {
    server.await("cardinality(pg_blocking_pids(" + program.pid() + ")) > 0");
  }
  [[nodiscard]] static Strategy strategy() {
    return GetParam() == Kind::row ? Strategy::for_update : Strategy::advisory;
  }

  const std::string name = "name";
};

INSTANTIATE_TEST_SUITE_P(Kinds, PostgresTransactionLockTest, testing::Values(Kind::row, Kind::advisory),
                         [](const auto& kind) { return kind.param == Kind::row ? "row" : "advisory"; });

TEST_P(PostgresTransactionLockTest, ClientAndTransaction_HaveTheSameLock) {
  const Client other = client();
  Lease lease = other.make_lock(name).acquire();
  Program program = begun();
  EXPECT_FALSE(try_lock(program));
  EXPECT_EQ(program.status(), PQTRANS_INTRANS) << "busy is no error";
  EXPECT_TRUE(lease.release());
  const auto token = try_lock(program);
  ASSERT_TRUE(token);
  EXPECT_GT(*token, lease.token());
  EXPECT_FALSE(other.make_lock(name).try_acquire());
  EXPECT_TRUE(other.inspect(name).held);
  // A lock that it has is granted again, with a newer token.
  const auto again = try_lock(program);
  ASSERT_TRUE(again);
  EXPECT_GT(*again, *token);
  program.commit();
  const auto next = other.make_lock(name).try_acquire();
  ASSERT_TRUE(next);
  EXPECT_GT(next->token(), *again);
}

TEST_P(PostgresTransactionLockTest, ClientAndTransaction_WaitForEachOther) {
  Contender other(client(), name);
  Lease lease = take(other.lock);
  Program program = begun();
  auto waiting = lock_later(program);
  await_waiter();
  const std::string before = server.value("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint");
  EXPECT_TRUE(lease.release());
  const FencingToken token = waiting.get();
  EXPECT_GT(token.value(), std::stoull(before)) << "drawn after the wait";
  Pending client_waiting(other.lock, {});
  await_waiter();
  program.commit();
  EXPECT_GT(client_waiting.lease().token(), token);
}

TEST_P(PostgresTransactionLockTest, Rollback_ReleasesTheLock) {
  Program program(server.url());
  FencingToken last;
  for (const bool commits : {true, false, false, true}) {
    program.begin();
    const FencingToken token = lock(program);
    EXPECT_GT(token, last) << "a token that was undone is not handed out again";
    last = token;
    EXPECT_FALSE(is_free());
    program.end(commits);
  }
  EXPECT_TRUE(is_free());
}

TEST_P(PostgresTransactionLockTest, EndOfTheConnection_ReleasesAndUndoes) {
  const Client other = client();
  server.run("CREATE TABLE IF NOT EXISTS public.work (n integer)");
  server.run("GRANT ALL ON public.work TO PUBLIC");
  for (const bool broken_by_an_operator : {false, true}) {
    EXPECT_TRUE(is_free());  // and no longer a new name
    Program program = begun();
    (void)lock(program);
    program.run("INSERT INTO public.work VALUES (1)");
    if (broken_by_an_operator) {
      EXPECT_TRUE(other.break_lock(name));
    } else {
      program = Program(server.url());
    }
    EXPECT_TRUE(other.make_lock(name).acquire({.wait = rig::hang_guard}).release());
    if (broken_by_an_operator) {
      expect_error(errc::unavailable, "", program);
      EXPECT_THROW(program.commit(), std::runtime_error);
      expect_error(errc::unavailable, "", program);
    }
    EXPECT_EQ(server.value("SELECT count(*) FROM public.work"), "0");
  }
}

// Shows: hole different-urls
TEST_P(PostgresTransactionLockTest, RowAndAdvisory_AreDifferentLocks) {
  const Kind other_kind = GetParam() == Kind::row ? Kind::advisory : Kind::row;
  Program one = begun();
  Program two = begun();
  EXPECT_TRUE(try_lock(one));
  EXPECT_TRUE(try_lock_in_transaction(two.connection(), name, {.kind = other_kind}));
}

// Hazard: one statement inserts a row and locks it: it does not see another transaction's row
TEST_P(PostgresTransactionLockTest, NewName_IsHeldBeforeItsRowIsVisible) {
  for (const bool commits : {false, true}) {
    Program program = begun();
    (void)lock(program);
    EXPECT_FALSE(is_free());
    EXPECT_EQ(client().inspect(name).held, GetParam() == Kind::advisory) << "PostgreSQL shows locks, and no new row";
    Program other = begun();
    EXPECT_FALSE(try_lock(other));
    EXPECT_EQ(other.status(), PQTRANS_INTRANS);
    auto waiting = lock_later(other);
    await_blocked(other);
    program.end(commits);
    EXPECT_GT(waiting.get().value(), 0U);
    EXPECT_FALSE(is_free());
    other.rollback();
    EXPECT_TRUE(is_free());
    server.run("DELETE FROM dlock.row_lock");
  }
}

// Hazard: `SKIP LOCKED` takes a locked row for a missing one
TEST_P(PostgresTransactionLockTest, TryOfANewName_KeepsEarlierWork) {
  Program program(server.url());
  program.run("CREATE TEMPORARY TABLE mine (n integer)");
  program.begin();
  program.run("INSERT INTO mine VALUES (1)");
  EXPECT_TRUE(try_lock(program));
  EXPECT_FALSE(is_free());
  program.commit();
  EXPECT_EQ(program.value("SELECT count(*) FROM mine"), "1");
  EXPECT_TRUE(is_free());
}

TEST_P(PostgresTransactionLockTest, TransactionPooler_KeepsTheLockExclusive) {
  const PgBouncer pooler(server, {.pool_size = 2});
  Program one(server.url_at(pooler.port()));
  Program two(server.url_at(pooler.port()));
  Program three(server.url_at(pooler.port()));
  for (int i = 0; i < 3; ++i) {
    one.begin();
    two.begin();
    const FencingToken token = lock(one);
    EXPECT_FALSE(try_lock(two));
    two.commit();
    three.begin();
    EXPECT_FALSE(try_lock(three)) << "over the same session as two";
    one.commit();
    EXPECT_GT(lock(three), token);
    three.commit();
  }
  EXPECT_TRUE(is_free());
}

// Hazard: `lock_timeout=0` waits for ever
TEST_P(PostgresTransactionLockTest, EndOfTheWait_IsContainedByASavepoint) {
  const Client other = client();
  const Lease lease = other.make_lock(name).acquire();
  Program program = begun();
  program.run("SET LOCAL lock_timeout = '1234ms'");
  program.run("SET LOCAL statement_timeout = '1234s'");
  program.run("SAVEPOINT mine");
  // To the server, 0 ms would mean for ever.
  for (const Duration wait : {Duration(20ms), Duration(1ns), Duration(999'999ns)}) {
    expect_error(errc::timed_out, "SQLSTATE", program, wait);
    EXPECT_EQ(program.status(), PQTRANS_INERROR);
    program.run("ROLLBACK TO SAVEPOINT mine");
    EXPECT_EQ(program.status(), PQTRANS_INTRANS);
    EXPECT_EQ(program.value("SHOW lock_timeout"), "1234ms");
    EXPECT_EQ(program.value("SHOW statement_timeout"), "1234s");
  }
  expect_error(errc::timed_out, "is already held", program, 0ms);
  EXPECT_EQ(program.status(), PQTRANS_INTRANS) << "not to wait is no error of SQL";
  program.rollback();
}

// A waiter behind others waits twice: for those, and then for the holder.
// Hazard: `lock_timeout` applies twice to a row
TEST_P(PostgresTransactionLockTest, WaitBehindOthers_EndsInTime) {
  constexpr auto wait = 4s;
  EXPECT_TRUE(is_free());  // and no longer a new name
  Program holder = begun();
  (void)lock(holder);
  Program first = begun();
  auto first_waits = lock_later(first);
  await_blocked(first);
  Program second = begun();
  const auto start = std::chrono::steady_clock::now();
  auto ended = std::async(std::launch::async, [&] {
    expect_error(errc::timed_out, "", second, wait);
    return std::chrono::steady_clock::now();
  });
  await_blocked(second);
  server.await("(SELECT clock_timestamp() > query_start + interval '3 s' FROM pg_stat_activity WHERE pid = " +
               second.pid() + ")");
  server.run("SELECT pg_cancel_backend(" + first.pid() + ")");
  EXPECT_THROW((void)first_waits.get(), Error);
  EXPECT_LT(ended.get() - start, wait * 3 / 2);
}

// Hazard: a `lock_timeout` of more than 2^31 - 1 ms is refused
TEST_P(PostgresTransactionLockTest, WaitOfAnyLength_IsAccepted) {
  Program program(server.url());
  for (const Duration wait : {Duration(std::chrono::hours(24 * 365)), Duration(forever.value() - 1ns), forever}) {
    program.begin();
    EXPECT_GT(lock(program, name, wait).value(), 0U);
    program.commit();
  }
}

TEST_P(PostgresTransactionLockTest, CallersTimeouts_ApplyAndAreRestored) {
  Program program = begun();
  (void)lock(program, "held");
  for (const std::string setting : {"statement_timeout", "lock_timeout"}) {
    Program other(server.url());
    other.run("SET " + setting + " = '1h'");
    for (const std::string own : {"0", "1234s", "1d", "90min", "30500ms"}) {
      other.begin();
      other.run("SET LOCAL " + setting + " = '" + own + "'");
      const std::string before = other.value("SHOW " + setting);
      for (int times = 0; times < 2; ++times) {  // a new name, then a known one
        (void)lock(other, setting + own);
        EXPECT_EQ(other.value("SHOW " + setting), before);
      }
      (void)try_lock(other, setting + own + "/2");
      EXPECT_EQ(other.value("SHOW " + setting), before);
      EXPECT_FALSE(try_lock(other, "held"));
      EXPECT_EQ(other.value("SHOW " + setting), before);
      other.commit();
      EXPECT_EQ(other.value("SHOW " + setting), "1h");
    }
  }
  Program other = begun();
  other.run("SET LOCAL statement_timeout = '50ms'");
  expect_failure(errc::unavailable, "57014", [&] { (void)lock(other, "held"); });
}

// Shows: hole postgresql-transaction-error
// Hazard: an error in a transaction frees its locks
TEST_P(PostgresTransactionLockTest, SavepointOrError_ReleasesBeforeTheRollback) {
  Program program = begun();
  (void)lock(program);
  program.run("SAVEPOINT mine");
  (void)lock(program, name + "/2");
  program.run("ROLLBACK TO SAVEPOINT mine");
  EXPECT_TRUE(is_free(name + "/2"));
  EXPECT_FALSE(is_free());
  program.run("RELEASE SAVEPOINT mine");
  EXPECT_THROW(program.run("SELECT 1 / 0"), std::runtime_error);
  EXPECT_EQ(program.status(), PQTRANS_INERROR);
  EXPECT_TRUE(is_free());
}

TEST_P(PostgresTransactionLockTest, Deadlock_EndsOneOfTheTwo) {
  Program one = begun();
  Program two = begun();
  (void)lock(one, "a");
  (void)lock(two, "b");
  auto first = lock_later(one, "b");
  auto second = lock_later(two, "a");
  int victims = 0;
  for (auto* each : {&first, &second}) {
    try {
      (void)each->get();  // the victim has lost its lock by its error
    } catch (const Error& error) {
      ++victims;
      EXPECT_EQ(error.code(), errc::unavailable);
      EXPECT_NE(error.detail().find("40P01"), std::string::npos) << error.detail();
    }
  }
  EXPECT_EQ(victims, 1);
}

TEST_P(PostgresTransactionLockTest, ReadOnlyOrLockTakenSinceTheSnapshot_IsUnavailable) {
  const Client other = client();
  EXPECT_TRUE(is_free());  // and no longer a new name
  Program reader = begun("READ ONLY");
  expect_error(errc::unavailable, "25006", reader);
  for (const char* const isolation : {"REPEATABLE READ", "SERIALIZABLE"}) {
    for (const bool known : {false, true}) {
      const std::string own = name + isolation + (known ? "known" : "new");
      if (known) (void)other.make_lock(own).acquire();
      Program program(server.url());
      program.begin(std::string("ISOLATION LEVEL ") + isolation);
      (void)program.value("SELECT count(*) FROM dlock.meta");  // takes the snapshot
      ASSERT_TRUE(other.make_lock(own).acquire().release());
      expect_failure(errc::unavailable, "40001", [&] { (void)lock(program, own); });
      program.rollback();
      for (const std::string& begun_again : {own, own + "/never used"}) {
        program.begin(std::string("ISOLATION LEVEL ") + isolation);
        EXPECT_GT(lock(program, begun_again).value(), 0U);
        program.commit();
      }
    }
  }
}

TEST_P(PostgresTransactionLockTest, WaitWithASnapshot_FailsUnlessHolderRolledBack) {
  for (const bool commits : {false, true}) {
    EXPECT_TRUE(is_free());  // and no longer a new name
    Program holder = begun();
    (void)lock(holder);
    Program program = begun("ISOLATION LEVEL REPEATABLE READ");
    auto waiting = lock_later(program);
    await_waiter();
    if (commits) {
      holder.commit();
      expect_failure(errc::unavailable, "40001", [&] { (void)waiting.get(); });
    } else {
      holder.rollback();
      EXPECT_GT(waiting.get().value(), 0U);
    }
    program.rollback();
  }
}

TEST_P(PostgresTransactionLockTest, ConnectionWithoutATransaction_IsRefused) {
  const auto refused = [&](pg_conn* connection, const std::string& words) {
    expect_failure(errc::invalid_argument, words, [&] { (void)lock_in_transaction(connection, name, options()); });
    expect_failure(errc::invalid_argument, words, [&] { (void)try_lock_in_transaction(connection, name, options()); });
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
  EXPECT_TRUE(try_lock(program));
}

TEST_P(PostgresTransactionLockTest, WrongArguments_AreRefusedWithinTheTransaction) {
  Program program = begun();
  const auto refused = [&](const std::string& words, const std::string& which, TransactionLockOptions options) {
    options.kind = GetParam();
    expect_failure(errc::invalid_argument, words,
                   [&] { (void)lock_in_transaction(program.connection(), which, options); });
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
  EXPECT_TRUE(try_lock(program));
}

// Hazard: a text that is read in another encoding
TEST_P(PostgresTransactionLockTest, OtherEncoding_IsRefusedBeyondAscii) {
  const std::string umlaut = name + "/\xc3\xa4";
  Program program(server.url());
  program.run("SET client_encoding = 'LATIN1'");
  program.begin();
  expect_failure(errc::invalid_argument, "client_encoding", [&] { (void)lock(program, umlaut); });
  EXPECT_TRUE(try_lock(program)) << "ASCII is the same in all of them";
  program.rollback();
  program.run("SET client_encoding = 'UTF8'");
  program.begin();
  (void)lock(program, umlaut);
  EXPECT_FALSE(is_free(umlaut));
}

TEST_P(PostgresTransactionLockTest, MissingSchemaOrGrant_IsNamed) {
  Program program = begun();
  TransactionLockOptions elsewhere = options();
  elsewhere.schema = "nowhere";
  expect_failure(errc::invalid_argument, "dlock init",
                 [&] { (void)lock_in_transaction(program.connection(), name, elsewhere); });
  server.run("DROP ROLE IF EXISTS nobody");
  server.run("CREATE ROLE nobody LOGIN PASSWORD 'nobody'");
  Program stranger(server.url_as("nobody", "nobody"));
  stranger.begin();
  expect_error(errc::access_denied, "GRANT USAGE ON SCHEMA", stranger);
}

#ifdef DLOCK_TRANSACTION_EXAMPLE
TEST(PostgresTransactionLockExample, Example_PrintsWhatItsCommentsSay) {
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
