#include "backends/mysql/errors.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace dlock::mysql {

namespace {

using sql::Execution;
using sql::Meaning;
using sql::Outcome;
using sql::Problem;
using sql::Remedy;

Outcome refusal(unsigned error) {
  return {.problem = Problem::refused,
          .failure = failure_of("h:3306/db", error, "no"),
          .server_code = std::to_string(error)};
}

class MysqlErrors : public ::testing::Test {
 protected:
  Options options;
  const MysqlDialect dialect{options};
};

TEST_F(MysqlErrors, EachNumber_SaysWhetherToRetry) {
  const struct {
    Meaning meaning;
    std::vector<unsigned> errors;
  } rows[] = {
      {{Remedy::busy, Execution::no, errc::timed_out}, {1205, 3572}},
      {{Remedy::retry, Execution::no, errc::unavailable},
       {1213, 3058, 1317, 1969, 3024, 1062, 1050, 1007, 1020, 1412, 3101}},
      // The last ones are unknown.
      {{Remedy::retry_later, Execution::no, errc::unavailable}, {1040, 1203, 1226, 1021, 1114, 1105, 4000, 1, 0}},
      {{Remedy::reconnect, Execution::no, errc::unavailable}, {1290, 1836, 1792, 1047}},
      {{Remedy::reconnect, Execution::unknown, errc::ambiguous}, {1053, 1927, 4031, 3169, 2006, 2013, 1180}},
      {{Remedy::set_up, Execution::no, errc::invalid_argument}, {1049, 1146, 1054}},
      {{Remedy::final, Execution::no, errc::access_denied}, {1044, 1045, 1142, 1227, 1370, 1698}},
      {{Remedy::final, Execution::no, errc::invalid_argument}, {1059, 1366, 1406}},
      {{Remedy::final, Execution::no, errc::unsupported}, {1305, 1193, 1665}},
      {{Remedy::final, Execution::no, errc::protocol}, {1064, 1048, 1264}},
  };
  for (const auto& [meaning, errors] : rows) {
    for (const unsigned error : errors) {
      const Meaning found = dialect.meaning_of(refusal(error));
      EXPECT_EQ(found.remedy, meaning.remedy) << error;
      EXPECT_EQ(found.execution, meaning.execution) << error;
      EXPECT_EQ(found.code, meaning.code) << error;
      EXPECT_EQ(dialect.failure_of(refusal(error)).code, meaning.code) << error;
    }
  }
}

// Shows: nothing-guessed
TEST_F(MysqlErrors, Unanswered_IsAmbiguousUnlessUnsent) {
  const struct {
    Outcome outcome;
    Meaning meaning;
  } rows[] = {
      {{.problem = Problem::unknown_outcome, .failure = {errc::ambiguous, "no answer"}, .server_code = "1927"},
       {Remedy::reconnect, Execution::unknown, errc::ambiguous}},
      {{.problem = Problem::not_sent, .failure = {errc::unavailable, "no server"}},
       {Remedy::reconnect, Execution::no, errc::unavailable}},
      {{.problem = Problem::not_sent, .failure = {errc::access_denied, "wrong password"}},
       {Remedy::final, Execution::no, errc::access_denied}},
      {{.problem = Problem::not_sent, .failure = {errc::protocol, "nonsense"}},
       {Remedy::final, Execution::no, errc::protocol}},
  };
  for (const auto& [outcome, meaning] : rows) {
    const Meaning found = dialect.meaning_of(outcome);
    EXPECT_EQ(found.execution, meaning.execution) << outcome.failure.detail;
    EXPECT_EQ(found.remedy, meaning.remedy) << outcome.failure.detail;
    EXPECT_EQ(found.code, meaning.code) << outcome.failure.detail;
    EXPECT_EQ(dialect.failure_of(outcome).detail, outcome.failure.detail);
  }
}

TEST_F(MysqlErrors, SeveralRequests_OneIsSuspected) {
  for (const unsigned each : {1205U, 1406U, 1264U, 1105U})
    EXPECT_TRUE(dialect.may_be_ones_fault(refusal(each))) << each;
  for (const unsigned each : {1213U, 1142U, 1665U, 1021U, 1290U, 1146U}) {
    EXPECT_FALSE(dialect.may_be_ones_fault(refusal(each))) << each;
  }
  EXPECT_FALSE(dialect.may_be_ones_fault({.problem = Problem::unknown_outcome, .server_code = "1927"}));
}

TEST_F(MysqlErrors, EndOfPatience_IsALimitOfTimeOrAKill) {
  for (const unsigned each : {1317U, 1969U, 3024U}) EXPECT_TRUE(dialect.is_end_of_patience(refusal(each))) << each;
  EXPECT_FALSE(dialect.is_end_of_patience(refusal(1205)));
}

TEST_F(MysqlErrors, Error_NamesTheRemedy) {
  options.schema = "my-locks";
  const struct {
    std::vector<unsigned> errors;
    std::string help;
  } rows[] = {
      {{1044, 1142, 1227, 1370}, "; this user needs: GRANT SELECT, INSERT, UPDATE ON `my-locks`.* TO <user>"},
      {{1049, 1146, 1054}, "; database `my-locks` is missing or incomplete at this server: run \"dlock init\""},
      {{1290, 1836}, "; this server is read-only"},
      {{1047}, "no majority"},
      {{1665}, "binlog_format"},
      {{1213, 1045}, ""},
  };
  for (const auto& [errors, help] : rows) {
    for (const unsigned error : errors) {
      const std::string detail = dialect.failure_of(refusal(error)).detail;
      const std::string plain = "h:3306/db: no (error " + std::to_string(error) + ")";
      EXPECT_TRUE(detail.starts_with(plain)) << detail;
      EXPECT_EQ(detail == plain, help.empty()) << detail;
      EXPECT_NE(detail.find(help), std::string::npos) << detail;
    }
  }
}

TEST_F(MysqlErrors, FailedLogin_IsFinalOnlyIfAnotherWouldFail) {
  const struct {
    unsigned error;
    errc code;
  } rows[] = {{1045, errc::access_denied}, {1698, errc::access_denied}, {1049, errc::invalid_argument},
              {2026, errc::access_denied}, {2059, errc::access_denied}, {1040, errc::unavailable},
              {2002, errc::unavailable},   {2005, errc::unavailable},   {2013, errc::unavailable},
              {1053, errc::unavailable},   {9999, errc::unavailable}};
  for (const auto& [error, code] : rows) EXPECT_EQ(connect_failure("h:3306", error, "no").code, code) << error;
  EXPECT_EQ(connect_failure("h:3306", 2026, "TLS/SSL error: Connection reset by peer (104)").code, errc::unavailable);
  EXPECT_EQ(connect_failure("h:3306", 2004, "Can't create TCP/IP socket (24)").detail,
            "h:3306: Can't create TCP/IP socket (24) (error 2004): Too many open files");
  EXPECT_EQ(connect_failure("h:3306", 2003, "(Can't connect)").detail, "h:3306: (Can't connect) (error 2003)");
}

TEST_F(MysqlErrors, FullServer_IsRecognized) {
  for (const unsigned each : {1040U, 1203U, 1226U}) {
    EXPECT_TRUE(dialect.is_about_a_full_server(connect_failure("h", each, "Too many connections"))) << each;
  }
  EXPECT_FALSE(dialect.is_about_a_full_server(connect_failure("h:1040", 2002, "refused")));
  EXPECT_FALSE(dialect.is_about_a_full_server({errc::access_denied, "no (error 1040)"}));
}

// Shows: hole mysql-proxy
TEST_F(MysqlErrors, UnfitSession_SaysWhatToDo) {
  EXPECT_FALSE(dialect.unfit_for_locks({}));
  EXPECT_NE(dialect.unfit_for_locks({.pooled = true})->detail.find("pooler=session"), std::string::npos);
  const auto cluster = dialect.unfit_for_locks({.many_writers = true});
  EXPECT_EQ(cluster->code, errc::unsupported);
  EXPECT_NE(cluster->detail.find("single_writer=true"), std::string::npos);
  options.single_writer = true;
  EXPECT_FALSE(dialect.unfit_for_locks({.many_writers = true}));
}

}  // namespace

}  // namespace dlock::mysql
