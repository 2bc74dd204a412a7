// A connection keeps what the rest of the backend relies on: tests against real servers.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "live_connection.hpp"
#include "tests/support/mysql_server.hpp"
#include "torture/rig/tcp_proxy.hpp"

namespace dlock::test {

namespace {

using sql::Problem;
using sql::Purpose;

class MysqlConnectionTest : public ::testing::Test {
 protected:
  [[nodiscard]] static MysqlServer& shared() {
    static MysqlServer server;
    return server;
  }
  // Throws unless it comes to stand.
  LiveConnection& open(const std::string& url, Purpose purpose = {}) {
    connections_.push_back(std::make_unique<LiveConnection>(url, purpose));
    if (!connections_.back()->open()) throw std::runtime_error(connections_.back()->lost().detail);
    return *connections_.back();
  }
  LiveConnection& open() { return open(shared().url()); }
  // With a table "t" that has one row, (1, 0).
  LiveConnection& open_with_table() {
    LiveConnection& connection = open();
    (void)connection.ask("DROP TABLE IF EXISTS t")->outcome();
    (void)connection.ask("CREATE TABLE t (id INT PRIMARY KEY, n INT NOT NULL) ENGINE = InnoDB")->outcome();
    EXPECT_EQ(connection.ask("INSERT INTO t VALUES (1, 0)")->outcome().problem, Problem::none);
    return connection;
  }

 private:
  std::vector<std::unique_ptr<LiveConnection>> connections_;
};

// A connection that cannot be made.
void expect_refused(const std::string& url, errc code, const std::string& words,
                    std::chrono::nanoseconds within = 20s) {
  LiveConnection connection(url);
  EXPECT_FALSE(connection.open(within)) << url;
  const Failure why = connection.lost();
  EXPECT_EQ(why.code, code) << url << ": " << why.detail;
  EXPECT_NE(why.detail.find(words), std::string::npos) << url << ": " << why.detail;
  EXPECT_EQ(why.detail.find("secret"), std::string::npos) << why.detail;
}

void expect_large_queries_pass(LiveConnection& connection) {
  const std::string large(3 << 20, 'y');  // more than the buffers of the sockets hold
  std::vector<LiveConnection::Answer> answers;
  for (int i = 0; i < 5; ++i) answers.push_back(connection.ask("SELECT ?", {large}));
  for (const auto& answer : answers) EXPECT_EQ(answer->value(), large);
}

sql::Query commands(std::vector<std::string> texts) {
  sql::Query query;
  for (std::string& text : texts) query.commands.push_back({.text = std::move(text)});
  return query;
}

// --- Connecting ------------------------------------------------------------------------------------------------------

TEST_F(MysqlConnectionTest, Login_DescribesTheServerAndSetsTheSession) {
  LiveConnection& connection = open(shared().url(), {.session_lease = 3500ms, .lock_patience = 2500ms});
  const sql::ServerInfo& server = connection.server();
  EXPECT_GE(server.version, 101100);
  EXPECT_EQ(server.endpoint, shared().address() + "/locks");
  EXPECT_TRUE(server.ends_silent_sessions);
  EXPECT_FALSE(server.pooled || server.standby || server.read_only || server.encrypted || server.many_writers);
  EXPECT_EQ(connection.ask("SELECT CONNECTION_ID()")->value(), std::to_string(server.backend_pid));
  EXPECT_EQ(connection
                .ask("SELECT CONCAT_WS(' ', @@sql_mode, @@autocommit + 0, @@tx_isolation, @@time_zone,"
                     " @@character_set_client, @@innodb_lock_wait_timeout, @@lock_wait_timeout, @@wait_timeout,"
                     " @@max_statement_time, DATABASE())")
                ->value(),
            "STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION 1 READ-COMMITTED +00:00 utf8mb4 3 3 4 0.000000 locks");
}

TEST_F(MysqlConnectionTest, BadLogin_IsFinalAndNoServerIsNot) {
  expect_refused(shared().url_as("locker", "wrong-secret"), errc::access_denied, "(error 1045)");
  expect_refused(shared().url_as("nobody", "wrong-secret"), errc::access_denied, "(error 1045)");
  const std::string login = "mysql://locker:locker-secret@" + shared().address();
  expect_refused(login + "/mysql", errc::access_denied, "(error 1044)");
  for (const std::string tls : {"unverified", "verify"}) {
    expect_refused(login + "/locks?tls=" + tls, errc::access_denied, "does not support it");
  }
  shared().run("GRANT ALL ON `no where`.* TO 'locker'@'127.0.0.1'");
  expect_refused(login + "/no%20where", errc::invalid_argument, "(error 1049)");
  expect_refused("mysql://u@127.0.0.1:1", errc::unavailable, "127.0.0.1:1");
  expect_refused("mysql://u@no-such-host.invalid", errc::unavailable, "no-such-host.invalid");
}

// Hazard: a replica, or an old primary that is read-only now
TEST_F(MysqlConnectionTest, ReadOnlyServer_IsLeftForTheNext) {
  MysqlServer replica({.options = {"--read-only=1"}});
  expect_refused(replica.url(), errc::unavailable, "read-only (read_only)");
  LiveConnection& connection = open(shared().url_of(replica.address() + "," + shared().address(), ""));
  EXPECT_EQ(connection.server().endpoint, shared().address() + "/locks");
}

// Shows: deadlines
TEST_F(MysqlConnectionTest, SilentHost_LeavesTimeForTheNext) {
  rig::TcpProxy proxy(rig::Endpoint::loopback(shared().port()));
  proxy.set({.mode = rig::Traffic::Mode::hold});
  LiveConnection connection(
      shared().url_of("127.0.0.1:" + std::to_string(proxy.port()) + "," + shared().address(), ""));
  EXPECT_TRUE(connection.open(3s));
  expect_refused(shared().url_at(proxy.port()), errc::unavailable, "no connection in time", 300ms);
}

TEST_F(MysqlConnectionTest, StatementReplication_IsRefused) {
  const MysqlServer server({.options = {"--log-bin", "--binlog-format=STATEMENT", "--server-id=1"}});
  expect_refused(server.url(), errc::unsupported, "set ROW or MIXED");
}

// Shows: no-residue
TEST_F(MysqlConnectionTest, DestroyedWhileConnecting_ClosesWhatItGot) {
  for (int i = 0; i < 20; ++i) LiveConnection(shared().url()).open_and_destroy();
  MysqlServer frozen;
  frozen.freeze();
  LiveConnection(frozen.url()).open_and_destroy();
  shared().await("(SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = 'locker') = 0");
}

// Hazard: another server answers in place of the right one
TEST_F(MysqlConnectionTest, Tls_VerifiesTheServer) {
  const MysqlServer server({.tls = true});
  const ThrowawayCertificate other;
  const std::string bare = "mysql://locker:locker-secret@" + server.address() + "/locks";
  for (const std::string& url : {server.url(), bare + "?tls=unverified"}) {
    LiveConnection& connection = open(url);
    EXPECT_TRUE(connection.server().encrypted);
    EXPECT_NE(connection
                  .ask("SELECT VARIABLE_VALUE FROM information_schema.SESSION_STATUS"
                       " WHERE VARIABLE_NAME = 'Ssl_cipher'")
                  ->value(),
              "");
    expect_large_queries_pass(connection);
  }
  expect_refused(bare, errc::access_denied, "(error 1045)");
  expect_refused(bare + "?tls_ca=" + other.authority(), errc::access_denied, "certificate");
  expect_refused(bare + "?tls=verify", errc::access_denied, "certificate");
  expect_refused(bare + "?tls_ca=/nowhere", errc::access_denied, "No such file");
  const MysqlServer elsewhere({.tls = true, .tls_names = "DNS:db.example"});
  expect_refused(elsewhere.url(), errc::access_denied, "Validation of SSL server certificate failed");
}

// OpenSSL would raise SIGPIPE.
TEST_F(MysqlConnectionTest, TlsServerKilled_EndsNoProgram) {
  MysqlServer server({.tls = true});
  LiveConnection& idle = open(server.url());
  LiveConnection& busy = open(server.url());
  const auto answer = busy.ask("DO SLEEP(60)");
  server.await("EXISTS (SELECT 1 FROM information_schema.PROCESSLIST WHERE INFO LIKE '%SLEEP(60)')");
  server.kill();
  const auto late = idle.ask("SELECT 1");
  EXPECT_NE(late->outcome().problem, Problem::none);
  EXPECT_EQ(answer->outcome().problem, Problem::unknown_outcome);
}

// --- Queries ---------------------------------------------------------------------------------------------------------

// Shows: names
TEST_F(MysqlConnectionTest, Answers_AreTextsInTheOrderOfTheQueries) {
  LiveConnection& connection = open_with_table();
  const std::string odd = "'; DROP TABLE t; -- \\ \" ` \xff \xe2\x82\xac ? #";
  const auto first = connection.ask("SELECT ?, ?, ?, #", {odd, "", std::nullopt, "-5"});
  const auto second = connection.ask(commands({"SELECT 1", "SELECT id, n FROM t WHERE id = 2", "DO 0"}));
  const auto third = connection.ask("UPDATE t SET n = LAST_INSERT_ID(n + 42) WHERE id = 1");
  const auto fourth = connection.ask("SELECT n FROM t");
  EXPECT_EQ(fourth->value(), "42");
  EXPECT_EQ(third->results().at(0).affected, 1U);
  EXPECT_EQ(third->results().at(0).inserted, 42U);
  ASSERT_EQ(second->results().size(), 3U);
  EXPECT_EQ(second->results()[0].text(0, 0), "1");
  EXPECT_TRUE(second->results()[1].empty());
  ASSERT_EQ(first->results().size(), 1U);
  EXPECT_EQ(first->results()[0].text(0, 0), odd);
  EXPECT_FALSE(first->results()[0].is_null(0, 1));
  EXPECT_TRUE(first->results()[0].is_null(0, 2));
  EXPECT_EQ(first->results()[0].number(0, 3), -5);
  EXPECT_LE(first->outcome().sent, fourth->outcome().sent);
  // A text is a binary string.
  EXPECT_EQ(connection.ask("SELECT ? = ?", {"x", "X"})->value(), "0");
  // The zero bytes of a column are part of it.
  EXPECT_EQ(connection.ask("SELECT UNHEX('610062')")->value(), std::string("a\0b", 3));
}

TEST_F(MysqlConnectionTest, BadParameter_IsNotSent) {
  LiveConnection& connection = open();
  const auto answer = connection.ask("SELECT #", {"1 OR 1"});
  EXPECT_EQ(answer->outcome().problem, Problem::not_sent);
  EXPECT_EQ(answer->outcome().failure.code, errc::invalid_argument);
  EXPECT_EQ(connection.ask("SELECT 1")->value(), "1");
}

// Shows: no-residue
TEST_F(MysqlConnectionTest, RefusedCommand_RollsBackTheQuery) {
  LiveConnection& connection = open_with_table();
  const auto bad = connection.ask(
      commands({"SELECT 1", "UPDATE t SET n = 7", "INSERT INTO t VALUES (1, 1)", "INSERT INTO t VALUES (2, 2)"}));
  const auto after = connection.ask("SELECT CONCAT(COUNT(*), ' ', SUM(n), ' ', @@in_transaction) FROM t");
  EXPECT_EQ(bad->outcome().problem, Problem::refused);
  EXPECT_EQ(bad->outcome().server_code, "1062");
  EXPECT_EQ(bad->outcome().failed_command, 2U);
  EXPECT_EQ(bad->outcome().failure.code, errc::unavailable);
  EXPECT_TRUE(bad->results().empty());
  EXPECT_EQ(after->value(), "1 0 0");
  const auto good = connection.ask(commands({"UPDATE t SET n = 7", "INSERT INTO t VALUES (2, 2)"}));
  EXPECT_EQ(good->results().size(), 2U);
  EXPECT_EQ(connection.ask("SELECT SUM(n) FROM t")->value(), "9");
  const auto behind_it = connection.ask(commands({"UPDATE t SET n = 8 WHERE id = 1", "SELECT nothing"}));
  EXPECT_EQ(behind_it->outcome().server_code, "1054");
  EXPECT_EQ(behind_it->outcome().failed_command, 1U);
  EXPECT_EQ(connection.ask("SELECT n FROM t WHERE id = 1")->value(), "7");
}

const sql::Statement put{"INSERT INTO t VALUES (#, #) ON DUPLICATE KEY UPDATE n = n + VALUES(n)", "put"};
const sql::Statement add{"UPDATE t SET n = n + # WHERE id = #", "add"};

sql::Query put_and_add() {
  return {.commands = {{.statement = &put, .params = {"2", "20"}}, {.statement = &add, .params = {"2", "1"}}}};
}

TEST_F(MysqlConnectionTest, NoRoomForPreparedStatements_ExecutesTheirTexts) {
  for (const std::string room : {"0", "1"}) {
    SCOPED_TRACE(room);
    shared().run("SET GLOBAL max_prepared_stmt_count = " + room);
    LiveConnection& connection = open_with_table();
    for (const std::string sum : {"22", "44", "66"}) {
      EXPECT_EQ(connection.ask(put_and_add())->results().size(), 2U);
      EXPECT_EQ(connection.ask("SELECT SUM(n) FROM t")->value(), sum);
    }
    EXPECT_EQ(connection.ask(put, {"2", "-6"})->results().at(0).affected, 2U);
    shared().run("SET GLOBAL max_prepared_stmt_count = DEFAULT");
    EXPECT_EQ(connection.ask(put_and_add())->outcome().problem, Problem::none);
    EXPECT_EQ(connection.ask("SELECT SUM(n) FROM t")->value(), "82");
  }
}

TEST_F(MysqlConnectionTest, PreparedStatements_OutliveTheirTable) {
  LiveConnection& connection = open_with_table();
  EXPECT_EQ(connection.ask(put_and_add())->results().size(), 2U);
  LiveConnection& administrator = open();
  const auto change = [&](const std::string& sql) {
    EXPECT_EQ(administrator.ask(sql)->outcome().problem, Problem::none) << sql;
  };
  change("ALTER TABLE t MODIFY n BIGINT NOT NULL");
  EXPECT_EQ(connection.ask(put_and_add())->results().size(), 2U);
  EXPECT_EQ(connection.ask("SELECT CONCAT(SUM(n), ' ', @@in_transaction) FROM t")->value(), "44 0");
  change("DROP TABLE t");
  for (int i = 0; i < 2; ++i) {
    const auto missing = connection.ask(put_and_add());
    EXPECT_EQ(missing->outcome().problem, Problem::refused);
    EXPECT_EQ(missing->outcome().server_code, "1146");
    EXPECT_EQ(missing->outcome().failed_command, 0U);
  }
  change("CREATE TABLE t (id BIGINT PRIMARY KEY, n INT NOT NULL) ENGINE = InnoDB");
  EXPECT_EQ(connection.ask(put_and_add())->results().size(), 2U);
  EXPECT_EQ(connection.ask("SELECT CONCAT(SUM(n), ' ', @@in_transaction) FROM t")->value(), "20 0");
  EXPECT_EQ(connection.ask("SHOW SESSION STATUS LIKE 'Com_prepare_sql'")->results().at(0).text(0, 1), "2");
}

TEST_F(MysqlConnectionTest, LargeQueries_DoNotBlock) {
  expect_large_queries_pass(open());
}

// Shows: deadlines
TEST_F(MysqlConnectionTest, EndlessAnswer_EndsTheConnection) {
  MysqlServer server({.options = {"--max-allowed-packet=64M"}});
  LiveConnection& connection = open(server.url());
  const auto answer =
      connection.ask("SELECT REPEAT('x', 1000000) FROM information_schema.COLUMNS a, information_schema.COLUMNS b");
  EXPECT_EQ(answer->outcome().problem, Problem::unknown_outcome);
  EXPECT_NE(connection.lost().detail.find("without end"), std::string::npos) << connection.lost().detail;
}

// --- The end ---------------------------------------------------------------------------------------------------------

// Shows: nothing-guessed, hole mysql-connection-ends
TEST_F(MysqlConnectionTest, SessionOrServerKilled_AnswersWhatWasSentAndWhatWasNot) {
  MysqlServer server;
  for (const bool of_server : {false, true}) {
    LiveConnection& idle = open(server.url());
    LiveConnection& busy = open(server.url());
    const auto sent = busy.ask("DO SLEEP(60)");
    const auto unsent = busy.ask("SELECT 1");
    server.await("EXISTS (SELECT 1 FROM information_schema.PROCESSLIST WHERE INFO LIKE '%SLEEP(60)')");
    of_server ? server.kill() : server.kill_clients();
    EXPECT_EQ(idle.lost().code, errc::unavailable);
    EXPECT_EQ(idle.ask("SELECT 1")->outcome().problem, Problem::not_sent);
    EXPECT_EQ(sent->outcome().problem, Problem::unknown_outcome);
    EXPECT_EQ(sent->outcome().failure.code, errc::ambiguous);
    if (of_server) {
      EXPECT_EQ(sent->outcome().server_code, "");
    }
    EXPECT_EQ(busy.lost().code, errc::unavailable);
    EXPECT_EQ(unsent->outcome().problem, Problem::not_sent);
    EXPECT_EQ(unsent->outcome().failure.code, errc::unavailable);
  }
  server.start();
  EXPECT_EQ(open(server.url()).ask("SELECT 1")->value(), "1");
}

// MariaDB seldom says so when it kills a session; here a statement does.
TEST_F(MysqlConnectionTest, ErrorThatEndsTheSession_IsTheReasonOfAnUnknownOutcome) {
  for (const std::string error : {"1053", "1927", "4031"}) {
    LiveConnection& connection = open();
    const auto answer = connection.ask("SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = " + error);
    const auto behind = connection.ask("SELECT 1");
    EXPECT_EQ(answer->outcome().problem, Problem::unknown_outcome);
    EXPECT_EQ(answer->outcome().failure.code, errc::ambiguous);
    EXPECT_EQ(answer->outcome().server_code, error);
    EXPECT_EQ(behind->outcome().problem, Problem::not_sent);
    EXPECT_NE(connection.lost().detail.find("(error " + error + ")"), std::string::npos);
  }
}

// Hazard: a replica, or an old primary that is read-only now
TEST_F(MysqlConnectionTest, ServerThatBecomesReadOnly_RefusesWrites) {
  MysqlServer server;
  LiveConnection& connection = open(server.url());
  (void)connection.ask("CREATE TABLE t (n INT) ENGINE = InnoDB")->outcome();
  server.run("SET GLOBAL read_only = 1");
  const auto answer = connection.ask(commands({"SET @n = 1", "SET @m = 2"}));
  EXPECT_EQ(answer->outcome().problem, Problem::none);
  const auto refused = connection.ask(commands({"SET @n = 1", "INSERT INTO t VALUES (1)"}));
  EXPECT_EQ(refused->outcome().server_code, "1290");
  EXPECT_EQ(refused->outcome().failed_command, 1U);
}

TEST_F(MysqlConnectionTest, KilledQuery_IsRefused) {
  LiveConnection& connection = open();
  const auto answer = connection.ask("SELECT SLEEP(60) FROM DUAL UNION SELECT 2");
  shared().await("EXISTS (SELECT 1 FROM information_schema.PROCESSLIST WHERE INFO LIKE '%UNION SELECT 2')");
  shared().run("KILL QUERY " + std::to_string(connection.server().backend_pid));
  EXPECT_EQ(answer->outcome().server_code, "1317");
  EXPECT_EQ(connection.ask("SELECT 1")->value(), "1");
}

// Shows: crash-safety
TEST_F(MysqlConnectionTest, SilentLockSession_IsEndedByTheServer) {
  LiveConnection& connection = open(shared().url(), {.session_lease = 1s});
  EXPECT_EQ(connection.ask("SELECT GET_LOCK('silent', 0)")->value(), "1");
  EXPECT_EQ(connection.lost().code, errc::unavailable);
  shared().await("IS_FREE_LOCK('silent')");
}

// Shows: no-residue
TEST_F(MysqlConnectionTest, AbandonedWait_LeavesTheQueue) {
  LiveConnection& connection = open();
  shared().run("DO GET_LOCK('waited-for', 0)");
  const auto answer = connection.ask("SELECT GET_LOCK('waited-for', 60)");
  const std::string waits = "EXISTS (SELECT 1 FROM information_schema.PROCESSLIST WHERE STATE = 'User lock')";
  shared().await(waits);
  connection.break_off();
  EXPECT_EQ(answer->outcome().problem, Problem::unknown_outcome);
  shared().await("NOT " + waits);
  shared().run("DO RELEASE_LOCK('waited-for')");
  EXPECT_EQ(shared().value("SELECT IS_FREE_LOCK('waited-for')"), "1");
}

}  // namespace

}  // namespace dlock::test
