// Locks in the caller's transaction, on a real server.
#include <dlock/mysql.hpp>

#include <gtest/gtest.h>
#include <mysql.h>

#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include "integration_test.hpp"
#include "tests/support/mysql_server.hpp"

namespace dlock::test {
namespace {

using mysql::lock_in_transaction;
using mysql::try_lock_in_transaction;

class MysqlTransactionLock : public testing::Test {
 protected:
  // A program of the user's.
  class Program {
   public:
    explicit Program(const MysqlServer& server) : mysql_(mysql_init(nullptr)) {
      if (mysql_real_connect(mysql_.get(), "127.0.0.1", MysqlServer::user, MysqlServer::password, MysqlServer::database,
                             server.port(), nullptr, 0) == nullptr) {
        throw std::runtime_error(mysql_error(mysql_.get()));
      }
    }
    void run(const std::string& sql) const {
      if (mysql_query(mysql_.get(), sql.c_str()) != 0) throw std::runtime_error(mysql_error(mysql_.get()));
      if (MYSQL_RES* const rows = mysql_store_result(mysql_.get())) mysql_free_result(rows);
    }
    [[nodiscard]] MYSQL* get() const { return mysql_.get(); }

   private:
    struct Close {
      void operator()(MYSQL* mysql) const { mysql_close(mysql); }
    };
    std::unique_ptr<MYSQL, Close> mysql_;
  };

  static void SetUpTestSuite() {
    server_ = std::make_unique<MysqlServer>();
    Client client = connect(server_->url("strategy=for-update"));
    (void)client.initialize();
  }
  static void TearDownTestSuite() { server_.reset(); }

  static inline std::unique_ptr<MysqlServer> server_;
  Program ours{*server_};
  Program theirs{*server_};
  Client client = connect(server_->url("strategy=for-update"));
};

TEST_F(MysqlTransactionLock, Lock_ExcludesTransactionsAndClients) {
  ours.run("BEGIN");
  const FencingToken first = lock_in_transaction(ours.get(), "accounts/42");
  EXPECT_EQ(lock_in_transaction(ours.get(), "accounts/42").value() > first.value(), true) << "the owner asks again";
  theirs.run("BEGIN");
  EXPECT_EQ(try_lock_in_transaction(theirs.get(), "accounts/42"), std::nullopt);
  EXPECT_TRUE(try_lock_in_transaction(theirs.get(), "accounts/43"));
  EXPECT_FALSE(client.make_lock("accounts/42").try_acquire());
  ours.run("COMMIT");
  const auto second = try_lock_in_transaction(theirs.get(), "accounts/42");
  ASSERT_TRUE(second);
  EXPECT_GT(second->value(), first.value());
  theirs.run("ROLLBACK");
  const auto lease = client.make_lock("accounts/42").try_acquire();
  ASSERT_TRUE(lease);
  EXPECT_GT(lease->token().value(), first.value());
  ours.run("BEGIN");
  EXPECT_FALSE(try_lock_in_transaction(ours.get(), "accounts/42"));
  ours.run("COMMIT");
}

TEST_F(MysqlTransactionLock, FirstUseOfAName_ExcludesOthersBeforeTheCommit) {
  ours.run("BEGIN");
  EXPECT_TRUE(try_lock_in_transaction(ours.get(), "new"));
  theirs.run("BEGIN");
  EXPECT_FALSE(try_lock_in_transaction(theirs.get(), "new"));
  EXPECT_FALSE(client.make_lock("new").try_acquire_for(100ms));
  ours.run("ROLLBACK");
  EXPECT_TRUE(try_lock_in_transaction(theirs.get(), "new"));
}

TEST_F(MysqlTransactionLock, Wait_EndsWithTheHoldersTransaction) {
  ours.run("BEGIN");
  (void)lock_in_transaction(ours.get(), "waited");
  theirs.run("BEGIN");
  std::thread waiting([&] { EXPECT_GT(lock_in_transaction(theirs.get(), "waited").value(), 0); });
  server_->await("EXISTS (SELECT 1 FROM information_schema.processlist WHERE info LIKE '%row_lock%' AND id = " +
                 std::to_string(mysql_thread_id(theirs.get())) + ")");
  ours.run("COMMIT");
  waiting.join();
}

TEST_F(MysqlTransactionLock, EndOfTheWait_LeavesTheTransactionAndTheTimeoutAlone) {
  theirs.run("BEGIN");
  (void)lock_in_transaction(theirs.get(), "kept");
  ours.run("SET innodb_lock_wait_timeout = 7");
  ours.run("CREATE OR REPLACE TABLE written (id INT) ENGINE=InnoDB");
  ours.run("BEGIN");
  ours.run("INSERT INTO written VALUES (1)");
  expect_failure(errc::timed_out, "", [&] { (void)lock_in_transaction(ours.get(), "kept", {.wait = 1s}); });
  ours.run("COMMIT");
  EXPECT_EQ(server_->value("SELECT COUNT(*) FROM locks.written"), "1");
  ours.run("SET @kept = @@innodb_lock_wait_timeout");
  ours.run("INSERT INTO written VALUES (@kept)");
  EXPECT_EQ(server_->value("SELECT MAX(id) FROM locks.written"), "7");
}

TEST_F(MysqlTransactionLock, RepeatableRead_SeesTheNewestRow) {
  ours.run("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ");
  ours.run("BEGIN");
  ours.run("SELECT COUNT(*) FROM dlock.row_lock");  // the snapshot
  theirs.run("BEGIN");
  const FencingToken before = lock_in_transaction(theirs.get(), "snapshot");
  theirs.run("COMMIT");
  EXPECT_GT(lock_in_transaction(ours.get(), "snapshot").value(), before.value());
}

TEST_F(MysqlTransactionLock, WrongUse_IsRefusedAndSaysWhy) {
  const auto fails = [&](errc code, const std::string& words, std::string_view name,
                         const mysql::TransactionLockOptions& options = {}) {
    expect_failure(code, words, [&] { (void)lock_in_transaction(ours.get(), name, options); });
  };
  const auto invalid = errc::invalid_argument;
  expect_failure(invalid, "connection: is null", [] { (void)lock_in_transaction(nullptr, "a"); });
  fails(invalid, "has no open transaction", "a");
  ours.run("BEGIN");
  fails(invalid, "lock name", std::string_view("a\0b", 3));
  fails(invalid, "schema: \"Dlock\"", "a", {.schema = "Dlock"});
  fails(invalid, "holder: ", "a", {.holder = "\n"});
  fails(invalid, "wait: is negative", "a", {.wait = -1s});
  fails(errc::access_denied, "GRANT", "a", {.schema = "elsewhere"});
  theirs.run("BEGIN");
  (void)lock_in_transaction(theirs.get(), "mine");
  fails(errc::timed_out, "lock \"mine\" is held", "mine", {.wait = 0s});
  server_->run("KILL " + std::to_string(mysql_thread_id(ours.get())));
  fails(errc::unavailable, "", "a");
}

TEST_F(MysqlTransactionLock, NamesOfAnyBytes_AreLockedAsTheyAre) {
  ours.run("SET NAMES latin1");
  ours.run("BEGIN");
  theirs.run("BEGIN");
  for (const std::string name : {"Ünïcode/锁", "quote'\"`", "back\\slash", "x", "X", "x "}) {
    EXPECT_GT(lock_in_transaction(ours.get(), name).value(), 0) << name;
    EXPECT_FALSE(try_lock_in_transaction(theirs.get(), name)) << name;
    EXPECT_EQ(server_->value("SELECT COUNT(*) FROM dlock.row_lock WHERE name = ''"), "0");
  }
}

}  // namespace
}  // namespace dlock::test
