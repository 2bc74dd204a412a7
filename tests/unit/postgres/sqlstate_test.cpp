#include "backends/postgres/sql/sqlstate.hpp"

#include <gtest/gtest.h>

#include <string>

namespace dlock::postgres {

namespace {

Outcome refusal(const std::string& sqlstate, const std::string& words = "h:5432/db: no") {
  return {.problem = Problem::refused, .failure = {errc::protocol, words}, .sqlstate = sqlstate};
}

struct Case {
  const char* sqlstate;
  Remedy remedy;
  Execution execution;
  errc code;
};

TEST(PostgresSqlstate, SaysWhatToDo) {
  const Case cases[] = {
      {"55P03", Remedy::busy, Execution::no, errc::timed_out},
      {"40001", Remedy::retry, Execution::no, errc::unavailable},
      {"40P01", Remedy::retry, Execution::no, errc::unavailable},
      {"40002", Remedy::retry, Execution::no, errc::unavailable},
      {"57014", Remedy::retry, Execution::no, errc::unavailable},
      {"53200", Remedy::retry_later, Execution::no, errc::unavailable},
      {"53300", Remedy::retry_later, Execution::no, errc::unavailable},
      {"53100", Remedy::retry_later, Execution::no, errc::unavailable},
      {"54000", Remedy::retry_later, Execution::no, errc::unavailable},
      {"54001", Remedy::retry_later, Execution::no, errc::unavailable},
      {"55000", Remedy::retry_later, Execution::no, errc::unavailable},
      {"57000", Remedy::retry, Execution::no, errc::unavailable},
      {"58030", Remedy::retry_later, Execution::no, errc::unavailable},
      {"25006", Remedy::reconnect, Execution::no, errc::unavailable},
      {"25P02", Remedy::reconnect, Execution::no, errc::unavailable},
      {"25001", Remedy::reconnect, Execution::no, errc::unavailable},
      {"26000", Remedy::reconnect, Execution::no, errc::unavailable},
      {"42P05", Remedy::reconnect, Execution::no, errc::unavailable},
      {"57P03", Remedy::reconnect, Execution::no, errc::unavailable},
      {"57P01", Remedy::reconnect, Execution::unknown, errc::ambiguous},
      {"57P02", Remedy::reconnect, Execution::unknown, errc::ambiguous},
      {"57P05", Remedy::reconnect, Execution::unknown, errc::ambiguous},
      {"25P03", Remedy::reconnect, Execution::unknown, errc::ambiguous},
      {"40003", Remedy::reconnect, Execution::unknown, errc::ambiguous},
      {"08006", Remedy::reconnect, Execution::unknown, errc::ambiguous},
      {"08P01", Remedy::reconnect, Execution::unknown, errc::ambiguous},
      {"3F000", Remedy::set_up, Execution::no, errc::invalid_argument},
      {"42P01", Remedy::set_up, Execution::no, errc::invalid_argument},
      {"42703", Remedy::set_up, Execution::no, errc::invalid_argument},
      {"42501", Remedy::final, Execution::no, errc::access_denied},
      {"28P01", Remedy::final, Execution::no, errc::access_denied},
      {"28000", Remedy::final, Execution::no, errc::access_denied},
      {"3D000", Remedy::final, Execution::no, errc::invalid_argument},
      {"0A000", Remedy::final, Execution::no, errc::unsupported},
      {"42883", Remedy::final, Execution::no, errc::unsupported},
      {"22021", Remedy::final, Execution::no, errc::invalid_argument},
      {"22P05", Remedy::final, Execution::no, errc::invalid_argument},
      {"22003", Remedy::final, Execution::no, errc::protocol},
      {"23514", Remedy::final, Execution::no, errc::protocol},
      {"42601", Remedy::final, Execution::no, errc::protocol},
      {"XX000", Remedy::retry_later, Execution::no, errc::unavailable},
      {"XX002", Remedy::retry_later, Execution::no, errc::unavailable},
      {"P0001", Remedy::retry_later, Execution::no, errc::unavailable},
      {"QQ123", Remedy::retry_later, Execution::no, errc::unavailable},
  };
  for (const Case& expected : cases) {
    const Meaning meaning = meaning_of(expected.sqlstate);
    EXPECT_EQ(meaning.remedy, expected.remedy) << expected.sqlstate;
    EXPECT_EQ(meaning.execution, expected.execution) << expected.sqlstate;
    EXPECT_EQ(meaning.code, expected.code) << expected.sqlstate;
    EXPECT_EQ(failure_of(refusal(expected.sqlstate), "dlock").code, expected.code) << expected.sqlstate;
  }
}

TEST(PostgresSqlstate, OfAnotherShapeIsUnknown) {
  for (const char* text : {"", "40", "4000", "400011", "08", "?????"}) {
    EXPECT_EQ(meaning_of(text).remedy, Remedy::retry_later) << text;
    EXPECT_EQ(meaning_of(text).code, errc::unavailable) << text;
  }
}

TEST(PostgresSqlstate, OneOfSeveralRequestsMayBeTheReason) {
  for (const char* each : {"55P03", "22021", "23514", "54001", "XX001", "P0001"}) {
    EXPECT_TRUE(may_be_ones_fault(refusal(each))) << each;
  }
  for (const char* each : {"40001", "42501", "0A000", "53100", "54000", "25006", "42P01"}) {
    EXPECT_FALSE(may_be_ones_fault(refusal(each))) << each;
  }
  EXPECT_FALSE(may_be_ones_fault({.problem = Problem::unknown_outcome, .sqlstate = "57P01"}));
}

TEST(PostgresSqlstate, WhatWasNotAnsweredMayHaveHappened) {
  const Outcome outcome{.problem = Problem::unknown_outcome, .failure = {errc::ambiguous, "no answer"}};
  EXPECT_EQ(meaning_of(outcome).execution, Execution::unknown);
  EXPECT_EQ(meaning_of(outcome).remedy, Remedy::reconnect);
  EXPECT_EQ(meaning_of(outcome).code, errc::ambiguous);
  EXPECT_EQ(failure_of(outcome, "dlock").detail, "no answer");
}

TEST(PostgresSqlstate, WhatWasNotSentDidNotHappen) {
  const Outcome away{.problem = Problem::not_sent, .failure = {errc::unavailable, "no server"}};
  EXPECT_EQ(meaning_of(away).execution, Execution::no);
  EXPECT_EQ(meaning_of(away).remedy, Remedy::reconnect);
  const Outcome refused{.problem = Problem::not_sent, .failure = {errc::access_denied, "wrong password"}};
  EXPECT_EQ(meaning_of(refused).execution, Execution::no);
  EXPECT_EQ(meaning_of(refused).remedy, Remedy::final);
  EXPECT_EQ(meaning_of(refused).code, errc::access_denied);
  EXPECT_EQ(failure_of(refused, "dlock").code, errc::access_denied);
}

TEST(PostgresSqlstate, AMissingPermissionNamesTheGrant) {
  const Failure failure = failure_of(refusal("42501", "permission denied for table lease"), "my locks");
  EXPECT_NE(failure.detail.find("permission denied for table lease"), std::string::npos) << failure.detail;
  EXPECT_NE(failure.detail.find("GRANT USAGE ON SCHEMA \"my locks\""), std::string::npos) << failure.detail;
  EXPECT_NE(failure.detail.find("GRANT SELECT, INSERT, UPDATE"), std::string::npos) << failure.detail;
}

TEST(PostgresSqlstate, AMissingSchemaSaysHowToGetOne) {
  for (const char* sqlstate : {"3F000", "42P01", "42703"}) {
    const Failure failure = failure_of(refusal(sqlstate), "dlock");
    EXPECT_NE(failure.detail.find("dlock init"), std::string::npos) << failure.detail;
  }
  EXPECT_EQ(failure_of(refusal("40001", "no"), "dlock").detail, "no");
}

TEST(PostgresSqlstate, OthersWhoCreateTheSameAreNoFailure) {
  for (const char* sqlstate : {"42P06", "42P07", "42710", "23505"}) {
    EXPECT_EQ(meaning_of(sqlstate).remedy, Remedy::retry) << sqlstate;
  }
}

}  // namespace

}  // namespace dlock::postgres
