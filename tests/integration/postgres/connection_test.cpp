// A connection keeps what the rest of the backend relies on: tests against real servers and scripted ones.
#include <sys/stat.h>

#include <chrono>
#include <clocale>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "live_connection.hpp"
#include "postgres/postgres_test.hpp"
#include "postgres/scripted_postgres.hpp"
#include "tests/support/hostile_server.hpp"
#include "torture/rig/scratch_directory.hpp"
#include "torture/rig/tcp_proxy.hpp"

namespace dlock::test {

namespace {

using postgres::Problem;
using postgres::Purpose;
using postgres::Statement;

class PostgresConnectionTest : public PostgresTest {
 protected:
  [[nodiscard]] std::string to(std::uint16_t port, const std::string& rest = "/locks") const {
    return "postgresql://locker:locker-secret@127.0.0.1:" + std::to_string(port) + rest;
  }
  // Throws unless it comes to stand.
  LiveConnection& open(const std::string& url, Purpose purpose = {}) {
    connections_.push_back(std::make_unique<LiveConnection>(url, purpose));
    if (!connections_.back()->open()) throw std::runtime_error(connections_.back()->lost().detail);
    return *connections_.back();
  }
  LiveConnection& open() { return open(server.url()); }

  rig::TcpProxy proxy{rig::Endpoint::loopback(server.port())};

 private:
  std::vector<std::unique_ptr<LiveConnection>> connections_;
};

// A connection that cannot be made.
void expect_refused(const std::string& url, errc code, const std::string& words) {
  LiveConnection connection(url);
  EXPECT_FALSE(connection.open()) << url;
  EXPECT_EQ(connection.lost().code, code) << url << ": " << connection.lost().detail;
  EXPECT_NE(connection.lost().detail.find(words), std::string::npos) << url << ": " << connection.lost().detail;
}

TEST_F(PostgresConnectionTest, Login_ReportsVersionRoleAndProcess) {
  std::string by_name = server.url();
  by_name.replace(by_name.find("127.0.0.1"), std::string("127.0.0.1").size(), "localhost");
  std::string socket = server.socket_directory();
  for (auto at = socket.find('/'); at != std::string::npos; at = socket.find('/', at + 3)) socket.replace(at, 1, "%2F");
  const std::string port = ":" + std::to_string(server.port()) + "/locks";
  for (const auto& [url, endpoint] :
       {std::pair{server.url(), "127.0.0.1" + port}, std::pair{by_name, "localhost" + port},
        std::pair{"postgresql://locker:locker-secret@" + socket + port, std::string()}}) {
    LiveConnection& connection = open(url, {.word = "listen"});
    EXPECT_GE(connection.server().version, 150000);
    EXPECT_FALSE(connection.server().pooled);
    EXPECT_FALSE(connection.server().standby);
    if (!endpoint.empty()) {
      EXPECT_EQ(connection.server().endpoint, endpoint);
    }
    EXPECT_EQ(connection.ask("SELECT pg_backend_pid()")->value(), std::to_string(connection.server().backend_pid));
    EXPECT_EQ(connection.ask("SHOW application_name")->value(), "dlock:host:1:test listen");
  }
  EXPECT_EQ(open(server.url("application_name=mine")).ask("SHOW application_name")->value(), "mine");
}

TEST_F(PostgresConnectionTest, PasswordRenewedInItsFile_IsUsedAtTheNextLogin) {
  const rig::ScratchDirectory directory;
  const std::string file = directory.path() + "/password";
  server.run("CREATE ROLE filed LOGIN PASSWORD 'first-secret'");
  for (const auto& [parameter, before] : {std::pair{"password_file=", ""}, std::pair{"passfile=", "*:*:*:filed:"}}) {
    const std::string url =
        "postgresql://filed@127.0.0.1:" + std::to_string(server.port()) + "/locks?" + parameter + file;
    const auto write = [&, start = before](const char* password) {
      std::ofstream(file, std::ios::trunc) << start << password << '\n';
      rig::require(::chmod(file.c_str(), S_IRUSR | S_IWUSR), "chmod");
    };
    write("first-secret");
    server.run("ALTER ROLE filed PASSWORD 'first-secret'");
    (void)open(url);
    server.run("ALTER ROLE filed PASSWORD 'renewed-secret'");
    expect_refused(url, errc::access_denied, "28P01");
    write("renewed-secret");
    (void)open(url);
  }
  server.run("DROP ROLE filed");
}

TEST_F(PostgresConnectionTest, WarningAtLogin_IsNotPrinted) {
  const PostgresServer old;
  PostgresConnection(old.admin_conninfo())
      .run("UPDATE pg_database SET datcollversion = 'none' WHERE datname = current_database()");
  testing::internal::CaptureStderr();
  (void)open(old.url());
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

// Hazard: the library resolves names without a limit
TEST_F(PostgresConnectionTest, UnknownHostOrDatabase_IsRefused) {
  expect_refused("postgresql://u@no-such-host.invalid/db", errc::unavailable, "");
  expect_refused(to(server.port(), "/nowhere"), errc::invalid_argument, "nowhere");
}

// Hazard: the library counts `connect_timeout` per address
TEST_F(PostgresConnectionTest, SilentAddress_LeavesTimeForTheNext) {
  proxy.set(black_hole);
  LiveConnection connection(to(proxy.port(), ",127.0.0.1:" + std::to_string(server.port()) + "/locks"));
  EXPECT_TRUE(connection.open(4s));
  LiveConnection lone(server.url_at(proxy.port()));
  EXPECT_FALSE(lone.open(200ms));
  EXPECT_EQ(lone.lost().code, errc::unavailable);
}

// Hazard: a server that is unresponsive after the login
TEST_F(PostgresConnectionTest, SilenceAfterLogin_EndsAtTheDeadline) {
  proxy.before_request("pg_backend_pid", [&] { proxy.set(black_hole); });
  LiveConnection connection(server.url_at(proxy.port()));
  EXPECT_FALSE(connection.open(2s));
  EXPECT_EQ(connection.lost().code, errc::unavailable);
}

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
};

// No code of a failure is derived from a word of the library or of the server.
// Hazard: the library's errors are in the user's language
TEST_F(PostgresConnectionTest, RefusalForTrust_IsFinalInEveryLanguage) {
  if (!German::is_installed()) GTEST_SKIP() << "libpq's messages in German are not installed";
  const German german;
  const rig::TcpProxy closed(rig::Endpoint::loopback(1));  // hangs up
  expect_refused(server.url("sslmode=require"), errc::access_denied, "unterstützt kein SSL");
  expect_refused(server.url("channel_binding=require"), errc::access_denied, "Channel-Binding");
  expect_refused("postgresql://locker@127.0.0.1:" + std::to_string(server.port()) + "/locks?passfile=/nowhere",
                 errc::access_denied, "Verbindung zum Server");
  expect_refused(server.url_at(closed.port()), errc::unavailable, "beendete die Verbindung");

  PostgresServer encrypted({.tls = true, .tls_names = "DNS:db.example"});
  encrypted.run("ALTER SYSTEM SET lc_messages = 'C.UTF-8'");
  encrypted.run("SELECT pg_reload_conf()");
  encrypted.await("current_setting('lc_messages') = 'C.UTF-8'");
  const ThrowawayCertificate other;
  const std::string url = to(encrypted.port(), "/locks?");
  expect_refused(url + "sslrootcert=" + other.authority(), errc::access_denied, "SSL-Fehler");
  expect_refused(url + "sslrootcert=" + encrypted.certificate().authority(), errc::access_denied,
                 "Verbindung zum Server");
  expect_refused(url + "sslrootcert=/nowhere", errc::access_denied, "existiert nicht");
  expect_refused(url + "sslmode=require&sslcert=" + other.certificate() + "&sslkey=/nowhere", errc::access_denied,
                 "keine private");
  expect_refused(url + "sslmode=disable", errc::access_denied, "kein pg_hba.conf-Eintrag");
  expect_refused(std::string(url).replace(url.find("locker-secret"), 13, "hunter2") + "sslmode=require",
                 errc::access_denied, "28P01: Passwort-Authentifizierung");
}

// The server takes connections with TLS and without. libpq by itself would fall back to one without.
TEST_F(PostgresConnectionTest, UnverifiedServer_IsNotReachedWithoutTls) {
  const PostgresServer both({.tls = true, .tls_names = "DNS:elsewhere.example,IP:127.0.0.2", .plain_too = true});
  const ThrowawayCertificate other;
  const std::string url = to(both.port(), "/locks?sslrootcert=");
  const std::string authority = both.certificate().authority();
  expect_refused(url + other.authority(), errc::access_denied, "certificate");
  for (const std::string mode : {"", "&sslmode=verify-full"}) {
    expect_refused(url + authority + mode, errc::access_denied, "does not match host name");
  }
  (void)open(url + authority + "&sslmode=verify-ca");
}

// Hazard: each statement is parsed again
TEST_F(PostgresConnectionTest, FirstUseOfAStatement_PreparesIt) {
  LiveConnection& connection = open();
  const Statement twice{"SELECT $1::int * 2"};
  std::vector<LiveConnection::Answer> answers;  // none of them waits until it is prepared
  for (int i = 0; i < 10; ++i) answers.push_back(connection.ask(twice, {std::to_string(i)}));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(answers[static_cast<std::size_t>(i)]->value(), std::to_string(2 * i));
  EXPECT_EQ(connection.ask("SELECT count(*) FROM pg_prepared_statements")->value(), "1");
}

TEST_F(PostgresConnectionTest, FailedPreparation_IsRepeatedAtTheNextUse) {
  LiveConnection& connection = open();
  const Statement read{"SELECT x FROM public.later"};
  const auto first = connection.ask(read);
  const auto second = connection.ask(read);
  EXPECT_EQ(first->outcome().server_code, "42P01");
  EXPECT_EQ(second->outcome().server_code, "42P01");
  EXPECT_EQ(connection.ask(read)->outcome().problem, Problem::refused);
  server.run("CREATE TABLE public.later AS SELECT 5 AS x");
  server.run("GRANT SELECT ON public.later TO locker");
  EXPECT_EQ(connection.ask(read)->value(), "5");
  // A plan that no longer fits is refused once.
  server.run("ALTER TABLE public.later ALTER COLUMN x TYPE text");
  EXPECT_EQ(connection.ask(read)->outcome().server_code, "0A000");
  EXPECT_EQ(connection.ask(read)->value(), "5");
  server.run("DROP TABLE public.later");
}

// Hazard: one error aborts all queries behind it in the pipeline
TEST_F(PostgresConnectionTest, ErrorInAQuery_StopsNoOtherQuery) {
  LiveConnection& connection = open();
  const auto before = connection.ask(
      {.commands = {{.text = "SELECT set_config('lock_timeout', '77ms', true)"}, {.text = "SHOW lock_timeout"}}});
  const auto bad = connection.ask({.commands = {{.text = "SELECT 1"}, {.text = "SELECT 1/0"}, {.text = "SELECT 3"}}});
  const auto after = connection.ask("SHOW lock_timeout");
  EXPECT_EQ(before->value(), "77ms") << "the commands of a query are a transaction";
  EXPECT_EQ(bad->outcome().problem, Problem::refused);
  EXPECT_EQ(bad->outcome().server_code, "22012");
  EXPECT_EQ(bad->outcome().failed_command, 1U);
  EXPECT_TRUE(bad->results().empty());
  EXPECT_EQ(after->value(), "0");
}

// Shows: nothing-guessed
TEST_F(PostgresConnectionTest, RefusedCommit_DiscardsItsRows) {
  LiveConnection& connection = open();
  (void)connection.ask("CREATE TEMPORARY TABLE once(i int UNIQUE DEFERRABLE INITIALLY DEFERRED)")->outcome();
  (void)connection.ask("INSERT INTO pg_temp.once VALUES (1)")->outcome();
  // Each of the commands is answered with its row; the commit checks the constraint.
  const auto twice =
      connection.ask({.commands = {{.text = "INSERT INTO pg_temp.once VALUES (1) RETURNING i"}, {.text = "SELECT 2"}}});
  const auto next = connection.ask("SELECT count(*) FROM pg_temp.once");
  EXPECT_EQ(twice->outcome().problem, Problem::refused);
  EXPECT_EQ(twice->outcome().server_code, "23505");
  EXPECT_EQ(twice->outcome().failed_command, 2U) << "no command of the two";
  EXPECT_TRUE(twice->results().empty());
  EXPECT_EQ(next->value(), "1");
}

// Hazard: a text that is cut off at a NUL
TEST_F(PostgresConnectionTest, Parameters_AreTextsWithoutZeroBytes) {
  LiveConnection& connection = open();
  EXPECT_EQ(connection.ask("SELECT $1::text", {"'; DROP TABLE x; -- \\"})->value(), "'; DROP TABLE x; -- \\");
  const auto null = connection.ask("SELECT $1::text", {std::nullopt});
  ASSERT_EQ(null->results().size(), 1U);
  EXPECT_TRUE(null->results()[0].is_null(0, 0));
  // libpq would end the text there: "lock" and "lock\0x" would be one name.
  const auto zero = connection.ask("SELECT $1::text", {std::string("lock\0x", 6)});
  EXPECT_EQ(zero->outcome().problem, Problem::not_sent);
  EXPECT_EQ(zero->outcome().failure.code, errc::invalid_argument);
  EXPECT_EQ(connection.ask("SELECT 1")->value(), "1");
}

// Hazard: both sides write, and neither reads
TEST_F(PostgresConnectionTest, LargeTrafficBothWays_DoesNotBlock) {
  const PostgresServer encrypted({.tls = true});
  const std::string large(1 << 20, 'y');
  for (const std::string& url : {server.url(), encrypted.url()}) {
    LiveConnection& connection = open(url);
    EXPECT_EQ(connection.ask("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")->value(),
              url == server.url() ? "f" : "t");
    std::vector<LiveConnection::Answer> answers;
    for (int i = 0; i < 30; ++i) answers.push_back(connection.ask("SELECT $1::text", {large}));
    for (const auto& answer : answers) EXPECT_EQ(answer->value().size(), large.size());
  }
}

// Shows: loss-signal
TEST_F(PostgresConnectionTest, EndByTheServer_IsReportedAtOnce) {
  LiveConnection& idle = open();
  LiveConnection& busy = open();
  const auto answer = busy.ask("SELECT pg_sleep(60)");
  EXPECT_EQ(server.terminate_clients(), 2);
  EXPECT_NE(idle.lost().detail.find("57P01"), std::string::npos) << idle.lost().detail;
  EXPECT_EQ(idle.lost().code, errc::unavailable);
  EXPECT_EQ(answer->outcome().problem, Problem::unknown_outcome);
  EXPECT_EQ(answer->outcome().failure.code, errc::ambiguous);
  EXPECT_EQ(answer->outcome().server_code, "57P01");
  EXPECT_NE(busy.lost().detail.find("57P01"), std::string::npos) << busy.lost().detail;
  EXPECT_EQ(idle.ask("SELECT 1")->outcome().problem, Problem::not_sent);
}

// Shows: crash-safety
TEST_F(PostgresConnectionTest, SilentLockSession_IsEndedByTheServer) {
  LiveConnection& connection = open(server.url(), {.session_lease = 1s});
  EXPECT_EQ(connection.ask("SELECT pg_try_advisory_lock(17)")->value(), "t");
  EXPECT_NE(connection.lost().detail.find("57P05"), std::string::npos);
}

// Hazard: a killed waiter stays in the server's queue
TEST_F(PostgresConnectionTest, AbandonedWait_LeavesTheQueue) {
  LiveConnection& connection = open();
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

TEST_F(PostgresConnectionTest, UnsentQuery_IsNeverExecuted) {
  LiveConnection& connection = open(server.url_at(proxy.port()));
  server.run("CREATE TABLE public.taken(x text)");
  server.run("GRANT INSERT ON public.taken TO locker");
  proxy.set(black_hole);
  const std::string large(1 << 20, 'x');
  std::vector<LiveConnection::Answer> answers;
  for (int i = 0; i < 30; ++i) answers.push_back(connection.ask("INSERT INTO public.taken VALUES ($1)", {large}));
  connection.break_off();
  EXPECT_EQ(answers.front()->outcome().problem, Problem::unknown_outcome);
  EXPECT_EQ(answers.back()->outcome().problem, Problem::not_sent);
  EXPECT_EQ(answers.back()->outcome().failure.code, errc::unavailable);
  server.run("DROP TABLE public.taken");
}

// The most that a client may take in before it gives up, the buffers of the kernel included; and from a server that
// does not let it in.
constexpr std::uint64_t most_accepted = std::uint64_t{256} << 20U;
constexpr std::uint64_t most_accepted_in_front = std::uint64_t{64} << 20U;

class EndlessPostgresTest : public ::testing::TestWithParam<Hostility> {};

// libpq would take it in for as long as it comes.
TEST_P(EndlessPostgresTest, DataWithoutEnd_EndsTheConnectionEarly) {
  const bool greeting = GetParam().name == std::string("greeting");
  const ScriptedServer server(greeting ? rude(GetParam().answer) : polite_until_asked(GetParam().answer));
  const auto start = std::chrono::steady_clock::now();
  const Failure failure = failure_of([&] {
    const Client client =
        connect("postgresql://u@127.0.0.1:" + std::to_string(server.port()) + "/db?sslmode=disable",
                {.lease = 10min, .response_timeout = 1min, .connect_timeout = 1min, .close_timeout = 300ms});
    (void)client.make_lock("hostile").try_acquire();
  });
  EXPECT_TRUE(is_error_of_hostile_server(failure.code)) << failure.detail;
  EXPECT_NE(failure.detail.find("sends data without end"), std::string::npos) << failure.detail;
  EXPECT_LT(std::chrono::steady_clock::now() - start, far_too_long);
  const auto counters = server.counters();
  EXPECT_GE(counters.accepted, 1U);
  EXPECT_LT(counters.sent, (greeting ? most_accepted_in_front : most_accepted) * counters.accepted);
}

const Hostility endless[] = {
    {"rows", {.bytes = message('2', "") + one_column(), .repeat = row(std::string(1000, 'x'))}},
    // No longer than that, because libpq looks up from a message only when no more of it is there.
    {"giant_row",
     {.bytes = message('2', "") + one_column() + beginning('D', 0x20000000),
      .repeat = std::string(4096, 'x'),
      .repeat_for = most_accepted / 2}},
    {"notices", {.repeat = notice('N', std::string(1000, 'x'))}},
    {"notifications", {.repeat = message('A', number(1, 4) + text_field("c") + text_field(std::string(1000, 'x')))}},
    {"parameters", {.repeat = message('S', text_field("client_encoding") + text_field(std::string(4000, 'x')))}},
    {"greeting", {.bytes = message('R', number(0, 4)), .repeat = notice('N', std::string(1000, 'x'))}},
};

INSTANTIATE_TEST_SUITE_P(, EndlessPostgresTest, ::testing::ValuesIn(endless),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace

}  // namespace dlock::test
