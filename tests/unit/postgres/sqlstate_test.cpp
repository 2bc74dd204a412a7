#include "backends/postgres/sql/sqlstate.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "backends/postgres/sql/connect_failure.hpp"

namespace dlock::postgres {

namespace {

Outcome refusal(const std::string& sqlstate, const std::string& words = "h:5432/db: no") {
  return {.problem = Problem::refused, .failure = {errc::protocol, words}, .server_code = sqlstate};
}

const PostgresDialect dialect("my locks");

TEST(PostgresSqlstate, EachState_SaysWhetherToRetry) {
  const struct {
    Meaning meaning;
    std::vector<std::string> states;
  } rows[] = {
      {{Remedy::busy, Execution::no, errc::timed_out}, {"55P03"}},
      {{Remedy::retry, Execution::no, errc::unavailable},
       {"40001", "40P01", "40002", "57014", "57000", "42P06", "42P07", "42710", "23505"}},
      // The last ones are unknown, or none.
      {{Remedy::retry_later, Execution::no, errc::unavailable},
       {"53200", "53300", "53100", "54000", "54001", "55000", "58030", "XX000", "XX002", "P0001", "QQ123", "", "40",
        "4000", "400011", "08", "?????"}},
      {{Remedy::reconnect, Execution::no, errc::unavailable}, {"25006", "25P02", "25001", "26000", "42P05", "57P03"}},
      {{Remedy::reconnect, Execution::unknown, errc::ambiguous},
       {"57P01", "57P02", "57P05", "25P03", "40003", "08006", "08P01"}},
      {{Remedy::set_up, Execution::no, errc::invalid_argument}, {"3F000", "42P01", "42703"}},
      {{Remedy::final, Execution::no, errc::access_denied}, {"42501", "28P01", "28000"}},
      {{Remedy::final, Execution::no, errc::invalid_argument}, {"3D000", "22021", "22P05"}},
      {{Remedy::final, Execution::no, errc::unsupported}, {"0A000", "42883"}},
      {{Remedy::final, Execution::no, errc::protocol}, {"22003", "23514", "42601"}},
  };
  for (const auto& [meaning, states] : rows) {
    for (const std::string& state : states) {
      const Meaning found = dialect.meaning_of(refusal(state));
      EXPECT_EQ(found.remedy, meaning.remedy) << state;
      EXPECT_EQ(found.execution, meaning.execution) << state;
      EXPECT_EQ(found.code, meaning.code) << state;
      EXPECT_EQ(dialect.failure_of(refusal(state)).code, meaning.code) << state;
    }
  }
}

TEST(PostgresSqlstate, SeveralRequests_OneIsSuspected) {
  for (const char* each : {"55P03", "22021", "23514", "54001", "XX001", "P0001"}) {
    EXPECT_TRUE(dialect.may_be_ones_fault(refusal(each))) << each;
  }
  for (const char* each : {"40001", "42501", "0A000", "53100", "54000", "25006", "42P01"}) {
    EXPECT_FALSE(dialect.may_be_ones_fault(refusal(each))) << each;
  }
  EXPECT_FALSE(dialect.may_be_ones_fault({.problem = Problem::unknown_outcome, .server_code = "57P01"}));
}

// Words of the server, and behind them what to do.
TEST(PostgresSqlstate, Error_NamesTheRemedy) {
  const struct {
    std::vector<std::string> states;
    std::string help;
  } rows[] = {
      {{"42501"}, "GRANT USAGE ON SCHEMA \"my locks\" TO <role>; GRANT SELECT, INSERT, UPDATE"},
      {{"3F000", "42P01", "42703"}, "dlock init"},
      {{"40001"}, ""},
  };
  for (const auto& [states, help] : rows) {
    for (const std::string& state : states) {
      const std::string detail = dialect.failure_of(refusal(state, "denied")).detail;
      EXPECT_TRUE(detail.starts_with("denied")) << detail;
      EXPECT_EQ(detail == "denied", help.empty()) << detail;
      EXPECT_NE(detail.find(help), std::string::npos) << detail;
    }
  }
}

TEST(PostgresConnectFailure, Error_SaysWhetherToRetry) {
  const auto code = [](std::string_view text) { return connect_failure("h:5432/db", text).code; };
  EXPECT_EQ(code("connection to server at \"h\", port 5432 failed: Connection refused\n"), errc::unavailable);
  EXPECT_EQ(code("connection failed: FATAL:  57P03: the database system is starting up\n"), errc::unavailable);
  EXPECT_EQ(code("connection failed: FATAL:  53300: sorry, too many clients already\n"), errc::unavailable);
  EXPECT_EQ(code("connection failed: FATAL:  28P01: password authentication failed for user \"u\"\n"),
            errc::access_denied);
  EXPECT_EQ(code("connection failed: FATAL:  28000: no pg_hba.conf entry for host\n"), errc::access_denied);
  EXPECT_EQ(code("connection failed: FATAL:  3D000: database \"db\" does not exist\n"), errc::invalid_argument);
  EXPECT_EQ(code(""), errc::unavailable);
}

std::string record(char type, std::size_t length, const std::string& content = {}) {
  const std::string header{type, 3, 3, static_cast<char>(length >> 8U), static_cast<char>(length & 0xffU)};
  return header + (content.empty() ? std::string(length, 'x') : content);
}

// The client library's words are those of the user's language.
TEST(PostgresConnectFailure, LibraryError_IsJudgedByTheStateOfTheLogin) {
  using Stage = LoginState::Stage;
  struct Situation {
    const char* what;
    LoginState state;
    errc code;
  };
  const std::string handshake = record(0x16, 90);
  const std::string alert = record(0x15, 2, {2, 40});
  const std::string message = record(0x17, 60);
  const std::string hidden_alert = record(0x17, 19);
  const std::string to_authenticate = {'R', 0, 0, 0, 8, 0, 0, 0, 7};
  const std::vector<Situation> situations = {
      {"no state is known", {}, errc::unavailable},
      {"the server wants a password, and there is none", {.needs_password = true}, errc::access_denied},
      {"a socket that was not accepted", {.hung_up = true, .unread = "R"}, errc::unavailable},
      {"the server has no TLS", {.stage = Stage::offering_tls, .unread = "N"}, errc::access_denied},
      {"it has, and a file of ours cannot be read", {.stage = Stage::offering_tls, .unread = "S"}, errc::access_denied},
      {"an error of the server's", {.stage = Stage::offering_tls, .unread = "E"}, errc::unavailable},
      {"another service", {.stage = Stage::offering_tls, .unread = "HTTP/1.1 400"}, errc::unavailable},
      {"the server hangs up", {.stage = Stage::offering_tls, .hung_up = true}, errc::unavailable},
      {"a certificate", {.stage = Stage::tls_handshake, .unread = handshake}, errc::access_denied},
      {"half a handshake", {.stage = Stage::tls_handshake, .hung_up = true, .unread = handshake}, errc::unavailable},
      {"the server hangs up in it", {.stage = Stage::tls_handshake, .hung_up = true}, errc::unavailable},
      {"the server refuses", {.stage = Stage::tls_handshake, .hung_up = true, .unread = alert}, errc::access_denied},
      {"it cannot just now", {.stage = Stage::tls_handshake, .unread = record(0x15, 2, {2, 80})}, errc::unavailable},
      {"it ends", {.stage = Stage::tls_handshake, .unread = record(0x15, 2, {1, 0})}, errc::unavailable},
      {"half an alert", {.stage = Stage::tls_handshake, .unread = alert.substr(0, 5)}, errc::unavailable},
      {"no TLS after all", {.stage = Stage::tls_handshake, .unread = "what?"}, errc::unavailable},
      {"a way to authenticate", {.stage = Stage::login, .unread = to_authenticate}, errc::access_denied},
      {"the same, and the end", {.stage = Stage::login, .hung_up = true, .unread = "R"}, errc::unavailable},
      {"an error without a code", {.stage = Stage::login, .unread = "Ecould not fork"}, errc::unavailable},
      {"the server hangs up at the login", {.stage = Stage::login, .hung_up = true}, errc::unavailable},
      {"a hidden message", {.stage = Stage::login, .encrypted = true, .unread = message}, errc::access_denied},
      {"a hidden end", {.stage = Stage::login, .encrypted = true, .unread = hidden_alert}, errc::unavailable},
      {"both", {.stage = Stage::login, .encrypted = true, .unread = message + hidden_alert}, errc::unavailable},
      {"an end", {.stage = Stage::login, .encrypted = true, .unread = alert}, errc::unavailable},
  };
  for (const Situation& each : situations) {
    EXPECT_EQ(connect_failure("h", "irgendein Fehler\n", each.state).code, each.code) << each.what;
    EXPECT_EQ(connect_failure("h", "FATAL:  57P03: fährt hoch\n", each.state).code, errc::unavailable) << each.what;
  }
}

TEST(PostgresConnectFailure, SeveralAttempts_TheLastCounts) {
  EXPECT_EQ(connect_failure("h", "failed: FATAL:  28000: no encryption\nfailed: FATAL:  57P03: starting up\n").code,
            errc::unavailable);
}

TEST(PostgresConnectFailure, Message_IsOneLine) {
  EXPECT_EQ(connect_failure("h:1/db", "FATAL:  57P03: starting\nDETAIL:  recovery\nLOCATION:  main, a.c:3\n").detail,
            "h:1/db: FATAL:  57P03: starting; DETAIL:  recovery");
  EXPECT_EQ(in_one_line("FATAL:  57P03: fährt hoch\nORT:  ProcessStartupPacket, postmaster.c:2401\n"),
            "FATAL:  57P03: fährt hoch");
  EXPECT_EQ(in_one_line("server closed the connection unexpectedly\n\tThis probably means the server terminated "
                        "abnormally\n\tbefore or while processing the request.\n"),
            "server closed the connection unexpectedly");
  EXPECT_EQ(in_one_line("\n"), "");
}

TEST(PostgresConnectFailure, LongMessage_IsCut) {
  EXPECT_EQ(in_one_line(std::string(100'000'000, 'x')), std::string(2000, 'x') + "...");
  std::string lines;
  for (int i = 0; i < 10'000; ++i) lines += "one of very many lines\n";
  EXPECT_LT(in_one_line(lines).size(), 2100U);
  EXPECT_LT(connect_failure("h:1/db", lines).detail.size(), 2100U);
}

TEST(PostgresConnectFailure, FullServer_IsRecognized) {
  const auto is_full = [](const std::string& text) {
    return is_about_a_full_server(connect_failure("h:5432/db", text));
  };
  EXPECT_TRUE(is_full("FATAL:  53300: sorry, too many clients already\nLOCATION:  ProcSleep, proc.c:1\n"));
  EXPECT_TRUE(is_full("FATAL:  53300: too many connections for role \"app\""));
  EXPECT_FALSE(is_full("FATAL:  57P03: the database system is starting up"));
  EXPECT_FALSE(is_full("connection to server at \"h\", port 53300 failed: Connection refused"));
  EXPECT_FALSE(is_about_a_full_server({errc::access_denied, "53300: no"}));
}

}  // namespace

}  // namespace dlock::postgres
