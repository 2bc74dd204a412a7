#include "backends/postgres/sql/connect_failure.hpp"

#include <gtest/gtest.h>

namespace dlock::postgres {

namespace {

TEST(PostgresConnectFailure, TellsWhatAnotherAttemptMayChange) {
  const auto code = [](std::string_view text) { return connect_failure("h:5432/db", text).code; };
  EXPECT_EQ(code("connection to server at \"h\", port 5432 failed: Connection refused\n"), errc::unavailable);
  EXPECT_EQ(code("connection failed: FATAL:  57P03: the database system is starting up\n"), errc::unavailable);
  EXPECT_EQ(code("connection failed: FATAL:  53300: sorry, too many clients already\n"), errc::unavailable);
  EXPECT_EQ(code("connection failed: FATAL:  28P01: password authentication failed for user \"u\"\n"),
            errc::access_denied);
  EXPECT_EQ(code("connection failed: FATAL:  28000: no pg_hba.conf entry for host\n"), errc::access_denied);
  EXPECT_EQ(code("connection failed: FATAL:  3D000: database \"db\" does not exist\n"), errc::invalid_argument);
  EXPECT_EQ(code("connection failed: fe_sendauth: no password supplied\n"), errc::access_denied);
  EXPECT_EQ(code("connection failed: SSL error: certificate verify failed\n"), errc::access_denied);
  EXPECT_EQ(code(""), errc::unavailable);
}

TEST(PostgresConnectFailure, TheLastOfSeveralAttemptsCounts) {
  EXPECT_EQ(connect_failure("h", "failed: FATAL:  28000: no encryption\nfailed: FATAL:  57P03: starting up\n").code,
            errc::unavailable);
}

TEST(PostgresConnectFailure, SaysItInOneLine) {
  EXPECT_EQ(connect_failure("h:1/db", "FATAL:  57P03: starting\nDETAIL:  recovery\nLOCATION:  main, a.c:3\n").detail,
            "h:1/db: FATAL:  57P03: starting; DETAIL:  recovery");
  EXPECT_EQ(in_one_line("server closed the connection unexpectedly\n\tThis probably means the server terminated "
                        "abnormally\n\tbefore or while processing the request.\n"),
            "server closed the connection unexpectedly");
  EXPECT_EQ(in_one_line("\n"), "");
}

TEST(PostgresConnectFailure, SaysNoMoreThanPeopleRead) {
  EXPECT_EQ(in_one_line(std::string(100'000'000, 'x')), std::string(2000, 'x') + "...");
  std::string lines;
  for (int i = 0; i < 10'000; ++i) lines += "one of very many lines\n";
  EXPECT_LT(in_one_line(lines).size(), 2100U);
  EXPECT_LT(connect_failure("h:1/db", lines).detail.size(), 2100U);
}

TEST(PostgresConnectFailure, KnowsAFullServer) {
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
