// What the rest of the backend relies on in a connection, against real servers.
#include <gtest/gtest.h>

#include <chrono>
#include <clocale>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "live_connection.hpp"
#include "postgres/shared_server.hpp"
#include "tests/support/pgbouncer.hpp"
#include "torture/rig/scratch_directory.hpp"
#include "torture/rig/tcp_proxy.hpp"

namespace dlock::test {

namespace {

using postgres::Problem;
using postgres::Purpose;
using postgres::Statement;

class PostgresConnectionTest : public OnSharedServer<> {
 protected:
};

// The client library speaks German. With C.UTF-8 gettext goes by LANGUAGE, and no locale needs to be installed.
class German {
 public:
  German() {
    (void)::setenv("LANGUAGE", "de", 1);
    (void)std::setlocale(LC_ALL, "C.UTF-8");
  }
  German(const German&) = delete;
  German& operator=(const German&) = delete;
  ~German() {
    (void)std::setlocale(LC_ALL, "C");
    (void)::unsetenv("LANGUAGE");
  }
  // Images of containers often leave the catalogues out.
  static bool is_installed() { return std::filesystem::exists("/usr/share/locale/de/LC_MESSAGES/libpq5-15.mo"); }
  // A server that was started meanwhile does so, too.
  static void teach(PostgresServer& server) {
    server.run("ALTER SYSTEM SET lc_messages = 'C.UTF-8'");
    server.run("SELECT pg_reload_conf()");
    server.await("current_setting('lc_messages') = 'C.UTF-8'");
  }
};

// A failure whose code is derived from no word of the library's or of the server's.
void expect_failure(const std::string& url, errc code, const std::string& in_german) {
  LiveConnection connection(url);
  EXPECT_FALSE(connection.open()) << url;
  EXPECT_EQ(connection.lost().code, code) << url << ": " << connection.lost().detail;
  EXPECT_NE(connection.lost().detail.find(in_german), std::string::npos) << url << ": " << connection.lost().detail;
}

TEST_F(PostgresConnectionTest, KnowsWhatItIsConnectedTo) {
  LiveConnection connection(server.url());
  ASSERT_TRUE(connection.open());
  EXPECT_GE(connection.server().version, 150000);
  EXPECT_FALSE(connection.server().pooled);
  EXPECT_FALSE(connection.server().standby);
  EXPECT_EQ(connection.server().endpoint, "127.0.0.1:" + std::to_string(server.port()) + "/locks");
  EXPECT_EQ(connection.ask("SELECT pg_backend_pid()")->value(), std::to_string(connection.server().backend_pid));
}

TEST_F(PostgresConnectionTest, IsNamedAfterItsHolderAndItsPurpose) {
  LiveConnection connection(server.url(), {.word = "listen"});
  ASSERT_TRUE(connection.open());
  EXPECT_EQ(connection.ask("SHOW application_name")->value(), "dlock:host:1:test listen");
  LiveConnection named(server.url("application_name=mine"), {.word = "listen"});
  ASSERT_TRUE(named.open());
  EXPECT_EQ(named.ask("SHOW application_name")->value(), "mine");
}

TEST_F(PostgresConnectionTest, APasswordRenewedInItsFile_IsUsedAtTheNextLogin) {
  const rig::ScratchDirectory directory;
  const std::string file = directory.path() + "/password";
  std::ofstream(file) << "first-secret\n";
  server.run("CREATE ROLE filed LOGIN PASSWORD 'first-secret'");
  const std::string url =
      "postgresql://filed@127.0.0.1:" + std::to_string(server.port()) + "/locks?password_file=" + file;
  EXPECT_TRUE(LiveConnection(url).open());
  server.run("ALTER ROLE filed PASSWORD 'renewed-secret'");
  LiveConnection late(url);
  EXPECT_FALSE(late.open());
  EXPECT_EQ(late.lost().code, errc::access_denied) << late.lost().detail;
  std::ofstream(file) << "renewed-secret\n";
  EXPECT_TRUE(LiveConnection(url).open());
  server.run("DROP ROLE filed");
}

TEST_F(PostgresConnectionTest, NamesAreResolved) {
  std::string url = server.url();
  url.replace(url.find("127.0.0.1"), std::string("127.0.0.1").size(), "localhost");
  LiveConnection connection(url);
  EXPECT_TRUE(connection.open());
}

TEST_F(PostgresConnectionTest, ANameThatDoesNotResolveIsUnavailable) {
  LiveConnection connection("postgresql://u@no-such-host.invalid/db");
  EXPECT_FALSE(connection.open());
  EXPECT_EQ(connection.lost().code, errc::unavailable);
}

TEST_F(PostgresConnectionTest, AUnixSocketDoes) {
  std::string directory = server.socket_directory();
  for (auto at = directory.find('/'); at != std::string::npos; at = directory.find('/', at + 3)) {
    directory.replace(at, 1, "%2F");
  }
  LiveConnection connection("postgresql://locker:locker-secret@" + directory + ":" + std::to_string(server.port()) +
                            "/locks");
  ASSERT_TRUE(connection.open()) << connection.lost().detail;
  EXPECT_EQ(connection.ask("SELECT 1")->value(), "1");
}

TEST_F(PostgresConnectionTest, SettingsOfTheRoleDoNotMatter) {
  server.run("ALTER ROLE locker SET default_transaction_isolation = 'serializable'");
  server.run("ALTER ROLE locker SET statement_timeout = '5s'");
  LiveConnection connection(server.url(), {.session_lease = 7s});
  const bool opened = connection.open();
  server.run("ALTER ROLE locker RESET ALL");
  ASSERT_TRUE(opened);
  EXPECT_TRUE(connection.server().ends_silent_sessions);
  EXPECT_EQ(connection.ask("SHOW transaction_isolation")->value(), "read committed");
  EXPECT_EQ(connection.ask("SHOW statement_timeout")->value(), "0");
  EXPECT_EQ(connection.ask("SHOW idle_session_timeout")->value(), "7s");
  EXPECT_EQ(connection.ask("SHOW tcp_user_timeout")->value(), "7000");
  EXPECT_EQ(connection.ask("SHOW client_connection_check_interval")->value(), "500ms");
  EXPECT_EQ(connection.ask("SHOW search_path")->value(), "pg_catalog");
}

TEST_F(PostgresConnectionTest, PreparesAStatementAtItsFirstUse) {
  LiveConnection connection(server.url());
  ASSERT_TRUE(connection.open());
  const Statement add{"SELECT $1::int + $2::int"};
  EXPECT_EQ(connection.ask(add, {"1", "2"})->value(), "3");
  EXPECT_EQ(connection.ask(add, {"20", "22"})->value(), "42");
  EXPECT_EQ(connection.ask("SELECT count(*) FROM pg_prepared_statements")->value(), "1");
}

TEST_F(PostgresConnectionTest, UsesOfAStatementThatIsBeingPreparedDoNotWait) {
  LiveConnection connection(server.url());
  ASSERT_TRUE(connection.open());
  const Statement twice{"SELECT $1::int * 2"};
  std::vector<LiveConnection::Answer> answers;
  for (int i = 0; i < 10; ++i) answers.push_back(connection.ask(twice, {std::to_string(i)}));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(answers[static_cast<std::size_t>(i)]->value(), std::to_string(2 * i));
}

TEST_F(PostgresConnectionTest, AStatementThatCannotBePreparedIsRefusedEachTimeAndPreparedOnceItCan) {
  LiveConnection connection(server.url());
  ASSERT_TRUE(connection.open());
  const Statement read{"SELECT x FROM public.later"};
  const auto first = connection.ask(read);
  const auto second = connection.ask(read);
  EXPECT_EQ(first->outcome().sqlstate, "42P01");
  EXPECT_EQ(second->outcome().sqlstate, "42P01");
  EXPECT_EQ(connection.ask(read)->outcome().problem, Problem::refused);
  server.run("CREATE TABLE public.later AS SELECT 5 AS x");
  server.run("GRANT SELECT ON public.later TO locker");
  EXPECT_EQ(connection.ask(read)->value(), "5");
  // A plan that no longer fits is refused once.
  server.run("ALTER TABLE public.later ALTER COLUMN x TYPE text");
  EXPECT_EQ(connection.ask(read)->outcome().sqlstate, "0A000");
  EXPECT_EQ(connection.ask(read)->value(), "5");
  server.run("DROP TABLE public.later");
}

TEST_F(PostgresConnectionTest, CommandsOfAQueryAreATransaction) {
  LiveConnection connection(server.url());
  ASSERT_TRUE(connection.open());
  const auto good = connection.ask(
      {.commands = {{.text = "SELECT set_config('lock_timeout', '77ms', true)"}, {.text = "SHOW lock_timeout"}}});
  ASSERT_EQ(good->results().size(), 2U);
  EXPECT_EQ(good->value(), "77ms");
  EXPECT_EQ(connection.ask("SHOW lock_timeout")->value(), "0");
}

TEST_F(PostgresConnectionTest, AnErrorStopsItsOwnQueryOnly) {
  LiveConnection connection(server.url());
  ASSERT_TRUE(connection.open());
  const auto before = connection.ask("SELECT 'before'");
  const auto bad = connection.ask({.commands = {{.text = "SELECT 1"}, {.text = "SELECT 1/0"}, {.text = "SELECT 3"}}});
  const auto after = connection.ask("SELECT 'after'");
  EXPECT_EQ(before->value(), "before");
  EXPECT_EQ(bad->outcome().problem, Problem::refused);
  EXPECT_EQ(bad->outcome().sqlstate, "22012");
  EXPECT_EQ(bad->outcome().failed_command, 1U);
  EXPECT_TRUE(bad->results().empty());
  EXPECT_EQ(after->value(), "after");
}

TEST_F(PostgresConnectionTest, AnOpenTransactionThatFailedWantsARollback) {
  LiveConnection connection(server.url());
  ASSERT_TRUE(connection.open());
  EXPECT_EQ(connection.ask({.commands = {{.text = "BEGIN"}, {.text = "SELECT 1/0"}}})->outcome().sqlstate, "22012");
  EXPECT_EQ(connection.ask("SELECT 1")->outcome().sqlstate, "25P02");
  EXPECT_EQ(connection.ask("ROLLBACK")->outcome().problem, Problem::none);
  EXPECT_EQ(connection.ask("SELECT 1")->value(), "1");
}

TEST_F(PostgresConnectionTest, ParametersAreTextsAndMayBeNull) {
  LiveConnection connection(server.url());
  ASSERT_TRUE(connection.open());
  EXPECT_EQ(connection.ask("SELECT $1::text", {"'; DROP TABLE x; -- \\"})->value(), "'; DROP TABLE x; -- \\");
  const auto null = connection.ask("SELECT $1::text", {std::nullopt});
  ASSERT_EQ(null->results().size(), 1U);
  EXPECT_TRUE(null->results()[0].is_null(0, 0));
  const auto zero = connection.ask("SELECT $1::text", {std::string("a\0b", 3)});
  EXPECT_EQ(zero->outcome().problem, Problem::not_sent);
  EXPECT_EQ(zero->outcome().failure.code, errc::invalid_argument);
  EXPECT_EQ(connection.ask("SELECT 1")->value(), "1");
}

TEST_F(PostgresConnectionTest, TellsOfNotificationsAlsoWhileNothingIsAsked) {
  LiveConnection connection(server.url());
  ASSERT_TRUE(connection.open());
  EXPECT_EQ(connection.ask("LISTEN \"a channel\"")->outcome().problem, Problem::none);
  server.run("NOTIFY \"a channel\", 'orders/42'");
  EXPECT_EQ(connection.notification(), "a channel:orders/42");
}

TEST_F(PostgresConnectionTest, TellsAtOnceThatTheServerEndsIt) {
  LiveConnection idle(server.url());
  LiveConnection busy(server.url());
  ASSERT_TRUE(idle.open());
  ASSERT_TRUE(busy.open());
  const auto answer = busy.ask("SELECT pg_sleep(60)");
  EXPECT_EQ(server.terminate_clients(), 2);
  EXPECT_NE(idle.lost().detail.find("57P01"), std::string::npos) << idle.lost().detail;
  EXPECT_EQ(idle.lost().code, errc::unavailable);
  EXPECT_EQ(answer->outcome().problem, Problem::unknown_outcome);
  EXPECT_EQ(answer->outcome().failure.code, errc::ambiguous);
  EXPECT_EQ(answer->outcome().sqlstate, "57P01");
  EXPECT_NE(busy.lost().detail.find("57P01"), std::string::npos) << busy.lost().detail;
  const auto late = idle.ask("SELECT 1");
  EXPECT_EQ(late->outcome().problem, Problem::not_sent);
}

TEST_F(PostgresConnectionTest, ASilentLockSessionIsEndedByTheServer) {
  LiveConnection connection(server.url(), {.session_lease = 1s});
  ASSERT_TRUE(connection.open());
  EXPECT_EQ(connection.ask("SELECT pg_try_advisory_lock(17)")->value(), "t");
  EXPECT_NE(connection.lost().detail.find("57P05"), std::string::npos);
}

TEST_F(PostgresConnectionTest, AWaiterThatIsGivenUpLeavesTheQueue) {
  LiveConnection connection(server.url());
  ASSERT_TRUE(connection.open());
  server.run("SELECT pg_advisory_lock(18)");
  const auto answer = connection.ask("SELECT pg_advisory_lock(18)");
  server.await("EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted)");
  connection.break_off();
  EXPECT_EQ(answer->outcome().problem, Problem::unknown_outcome);
  EXPECT_EQ(connection.lost().detail, "given up");
  server.await("NOT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted)");
  server.run("SELECT pg_advisory_unlock(18)");
  server.await("NOT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory')");
}

TEST_F(PostgresConnectionTest, AWrongPasswordIsRefusedAndNotShown) {
  LiveConnection connection(server.url_as("locker", "hunter2"));
  EXPECT_FALSE(connection.open());
  EXPECT_EQ(connection.lost().code, errc::access_denied);
  EXPECT_NE(connection.lost().detail.find("28P01"), std::string::npos) << connection.lost().detail;
  EXPECT_EQ(connection.lost().detail.find("hunter2"), std::string::npos);
}

TEST_F(PostgresConnectionTest, WhatIsAboutTrustIsFinalInEveryLanguage) {
  if (!German::is_installed()) GTEST_SKIP() << "libpq's messages in German are not installed";
  const German german;
  expect_failure(server.url("sslmode=require"), errc::access_denied, "unterstützt kein SSL");
  expect_failure(server.url("channel_binding=require"), errc::access_denied, "Channel-Binding");
  expect_failure("postgresql://locker@127.0.0.1:" + std::to_string(server.port()) + "/locks?passfile=/nowhere",
                 errc::access_denied, "Verbindung zum Server");
  const rig::TcpProxy closed(rig::Endpoint::loopback(1));  // hangs up
  expect_failure(server.url_at(closed.port()), errc::unavailable, "beendete die Verbindung");
}

TEST_F(PostgresConnectionTest, ADatabaseThatDoesNotExistIsNamed) {
  LiveConnection connection("postgresql://locker:locker-secret@127.0.0.1:" + std::to_string(server.port()) +
                            "/nowhere");
  EXPECT_FALSE(connection.open());
  EXPECT_EQ(connection.lost().code, errc::invalid_argument);
}

TEST_F(PostgresConnectionTest, AnAddressThatDoesNotAnswerLeavesTimeForTheNext) {
  rig::TcpProxy silent(rig::Endpoint::loopback(server.port()));
  silent.set({.mode = rig::Traffic::Mode::hold});
  LiveConnection connection("postgresql://locker:locker-secret@127.0.0.1:" + std::to_string(silent.port()) +
                            ",127.0.0.1:" + std::to_string(server.port()) + "/locks");
  EXPECT_TRUE(connection.open(4s));
  LiveConnection lone(server.url_at(silent.port()));
  EXPECT_FALSE(lone.open(200ms));
  EXPECT_EQ(lone.lost().code, errc::unavailable);
}

TEST_F(PostgresConnectionTest, AServerThatFallsSilentBehindTheLoginIsGivenUp) {
  rig::TcpProxy proxy(rig::Endpoint::loopback(server.port()));
  proxy.before_request("pg_backend_pid", [&] { proxy.set({.mode = rig::Traffic::Mode::hold}); });
  LiveConnection connection(server.url_at(proxy.port()));
  EXPECT_FALSE(connection.open(2s));
  EXPECT_EQ(connection.lost().code, errc::unavailable);
}

TEST_F(PostgresConnectionTest, ALostAnswerIsAnUnknownOutcome) {
  rig::TcpProxy proxy(rig::Endpoint::loopback(server.port()));
  LiveConnection connection(server.url_at(proxy.port()));
  ASSERT_TRUE(connection.open());
  proxy.lose_reply_to("pg_advisory_lock_shared");
  EXPECT_EQ(connection.ask("SELECT pg_advisory_lock_shared(19)")->outcome().problem, Problem::unknown_outcome);
  EXPECT_EQ(connection.lost().code, errc::unavailable);
}

TEST_F(PostgresConnectionTest, WhatTheNetworkDidNotTakeIsNeverCarriedOut) {
  rig::TcpProxy proxy(rig::Endpoint::loopback(server.port()));
  LiveConnection connection(server.url_at(proxy.port()));
  ASSERT_TRUE(connection.open());
  server.run("CREATE TABLE public.taken(x text)");
  server.run("GRANT INSERT ON public.taken TO locker");
  proxy.set({.mode = rig::Traffic::Mode::hold});
  const std::string large(1 << 20, 'x');
  std::vector<LiveConnection::Answer> answers;
  for (int i = 0; i < 30; ++i) answers.push_back(connection.ask("INSERT INTO public.taken VALUES ($1)", {large}));
  connection.break_off();
  EXPECT_EQ(answers.front()->outcome().problem, Problem::unknown_outcome);
  EXPECT_EQ(answers.back()->outcome().problem, Problem::not_sent);
  EXPECT_EQ(answers.back()->outcome().failure.code, errc::unavailable);
  server.run("DROP TABLE public.taken");
}

TEST_F(PostgresConnectionTest, LargeTrafficBothWaysDoesNotStick) {
  LiveConnection connection(server.url());
  ASSERT_TRUE(connection.open());
  const std::string large(1 << 20, 'y');
  std::vector<LiveConnection::Answer> answers;
  for (int i = 0; i < 30; ++i) answers.push_back(connection.ask("SELECT $1::text", {large}));
  for (const auto& answer : answers) EXPECT_EQ(answer->value().size(), large.size());
}

TEST_F(PostgresConnectionTest, BehindATransactionPoolerNothingIsLeftInTheServersSessions) {
  const PgBouncer pooler(server);
  LiveConnection connection(server.url_at(pooler.port()), {.session_lease = 9s});
  ASSERT_TRUE(connection.open());
  EXPECT_TRUE(connection.server().pooled);
  EXPECT_FALSE(connection.server().ends_silent_sessions);
  EXPECT_EQ(connection.ask("SHOW idle_session_timeout")->value(), "0");
  const Statement twice{"SELECT $1::int * 2"};
  EXPECT_EQ(connection.ask(twice, {"4"})->value(), "8");
  EXPECT_EQ(connection.ask(twice, {"5"})->value(), "10");
  EXPECT_EQ(connection.ask("SELECT count(*) FROM pg_prepared_statements")->value(), "0");
}

TEST_F(PostgresConnectionTest, ASessionPoolerIsFineIfTheUserSaysSo) {
  const PgBouncer pooler(server, {.pool_mode = "session"});
  LiveConnection connection(server.url_at(pooler.port(), "pooler=session"), {.session_lease = 9s});
  ASSERT_TRUE(connection.open());
  EXPECT_FALSE(connection.server().pooled);
  EXPECT_EQ(connection.ask("SHOW idle_session_timeout")->value(), "9s");
  EXPECT_EQ(connection.ask("SELECT pg_backend_pid()")->value(), std::to_string(connection.server().backend_pid));
}

TEST(PostgresConnectionToOthers, TheServerKilledIsNoticed) {
  PostgresServer server;
  LiveConnection connection(server.url());
  ASSERT_TRUE(connection.open());
  const auto answer = connection.ask("SELECT pg_sleep(60)");
  server.kill();
  EXPECT_EQ(answer->outcome().problem, Problem::unknown_outcome);
  EXPECT_EQ(connection.lost().code, errc::unavailable);
  LiveConnection again(server.url());
  EXPECT_FALSE(again.open());
  EXPECT_EQ(again.lost().code, errc::unavailable);
}

TEST(PostgresConnectionToOthers, OfSeveralHostsThePrimaryIsTaken) {
  const PostgresServer primary;
  const PostgresServer standby({.primary = &primary});
  const auto list = [](std::uint16_t first, std::uint16_t second) {
    return "postgresql://locker:locker-secret@127.0.0.1:" + std::to_string(first) +
           ",127.0.0.1:" + std::to_string(second) + "/locks";
  };
  LiveConnection connection(list(standby.port(), primary.port()));
  ASSERT_TRUE(connection.open());
  EXPECT_EQ(connection.server().endpoint, "127.0.0.1:" + std::to_string(primary.port()) + "/locks");
  LiveConnection alone(standby.url());
  EXPECT_FALSE(alone.open());
  EXPECT_EQ(alone.lost().code, errc::unavailable);
  EXPECT_NE(alone.lost().detail.find("standby"), std::string::npos);
  LiveConnection any(standby.url("target_session_attrs=any"));
  ASSERT_TRUE(any.open());
  EXPECT_TRUE(any.server().standby);
}

TEST(PostgresConnectionToOthers, TlsIsUsedAndTheServerIsVerified) {
  const PostgresServer server({.tls = true});
  LiveConnection connection(server.url());
  ASSERT_TRUE(connection.open());
  EXPECT_EQ(connection.ask("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")->value(), "t");
  const std::string large(1 << 20, 'z');
  std::vector<LiveConnection::Answer> answers;
  for (int i = 0; i < 10; ++i) answers.push_back(connection.ask("SELECT $1::text", {large}));
  for (const auto& answer : answers) EXPECT_EQ(answer->value().size(), large.size());

  const ThrowawayCertificate other;
  const std::string to = "postgresql://locker:locker-secret@127.0.0.1:" + std::to_string(server.port()) + "/locks";
  LiveConnection distrustful(to + "?sslmode=verify-full&sslrootcert=" + other.authority());
  EXPECT_FALSE(distrustful.open());
  EXPECT_EQ(distrustful.lost().code, errc::access_denied) << distrustful.lost().detail;
  LiveConnection plain(to + "?sslmode=disable");
  EXPECT_FALSE(plain.open());
  EXPECT_EQ(plain.lost().code, errc::access_denied) << plain.lost().detail;
}

TEST(PostgresConnectionToOthers, WhatIsWrongAboutTlsIsFinalInEveryLanguage) {
  if (!German::is_installed()) GTEST_SKIP() << "libpq's messages in German are not installed";
  const German german;
  PostgresServer server({.tls = true, .tls_names = "DNS:db.example"});
  German::teach(server);
  const ThrowawayCertificate other;
  const std::string to = "postgresql://locker:locker-secret@127.0.0.1:" + std::to_string(server.port()) + "/locks?";
  expect_failure(to + "sslrootcert=" + other.authority(), errc::access_denied, "SSL-Fehler");
  expect_failure(to + "sslrootcert=" + server.certificate().authority(), errc::access_denied, "Verbindung zum Server");
  expect_failure(to + "sslrootcert=/nowhere", errc::access_denied, "existiert nicht");
  expect_failure(to + "sslmode=require&sslcert=" + other.certificate() + "&sslkey=/nowhere", errc::access_denied,
                 "keine private");
  expect_failure(to + "sslmode=disable", errc::access_denied, "kein pg_hba.conf-Eintrag");
  expect_failure(std::string(to).replace(to.find("locker-secret"), 13, "hunter2") + "sslmode=require",
                 errc::access_denied, "28P01: Passwort-Authentifizierung");
}

TEST(PostgresConnectionToOthers, AServerThatIsFullIsUnavailable) {
  PostgresServer server({.max_connections = 5});
  std::vector<std::unique_ptr<PostgresConnection>> others;
  for (int i = 0; i < 2; ++i) others.push_back(std::make_unique<PostgresConnection>(server.url()));
  LiveConnection connection(server.url());
  EXPECT_FALSE(connection.open());
  EXPECT_EQ(connection.lost().code, errc::unavailable);
  EXPECT_NE(connection.lost().detail.find("53300"), std::string::npos) << connection.lost().detail;
}

}  // namespace

}  // namespace dlock::test
