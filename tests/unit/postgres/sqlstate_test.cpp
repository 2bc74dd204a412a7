#include "backends/postgres/sql/sqlstate.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace dlock::postgres {

namespace {

Outcome refusal(const std::string& sqlstate, const std::string& words = "h:5432/db: no") {
  return {.problem = Problem::refused, .failure = {errc::protocol, words}, .sqlstate = sqlstate};
}

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
      EXPECT_EQ(meaning_of(state).remedy, meaning.remedy) << state;
      EXPECT_EQ(meaning_of(state).execution, meaning.execution) << state;
      EXPECT_EQ(meaning_of(state).code, meaning.code) << state;
      EXPECT_EQ(failure_of(refusal(state), "dlock").code, meaning.code) << state;
    }
  }
}

TEST(PostgresSqlstate, SeveralRequests_OneIsSuspected) {
  for (const char* each : {"55P03", "22021", "23514", "54001", "XX001", "P0001"}) {
    EXPECT_TRUE(may_be_ones_fault(refusal(each))) << each;
  }
  for (const char* each : {"40001", "42501", "0A000", "53100", "54000", "25006", "42P01"}) {
    EXPECT_FALSE(may_be_ones_fault(refusal(each))) << each;
  }
  EXPECT_FALSE(may_be_ones_fault({.problem = Problem::unknown_outcome, .sqlstate = "57P01"}));
}

TEST(PostgresSqlstate, Unanswered_IsAmbiguousUnlessUnsent) {
  const struct {
    Outcome outcome;
    Meaning meaning;
  } rows[] = {
      {{.problem = Problem::unknown_outcome, .failure = {errc::ambiguous, "no answer"}},
       {Remedy::reconnect, Execution::unknown, errc::ambiguous}},
      {{.problem = Problem::not_sent, .failure = {errc::unavailable, "no server"}},
       {Remedy::reconnect, Execution::no, errc::unavailable}},
      {{.problem = Problem::not_sent, .failure = {errc::access_denied, "wrong password"}},
       {Remedy::final, Execution::no, errc::access_denied}},
  };
  for (const auto& [outcome, meaning] : rows) {
    EXPECT_EQ(meaning_of(outcome).execution, meaning.execution);
    EXPECT_EQ(meaning_of(outcome).remedy, meaning.remedy);
    EXPECT_EQ(meaning_of(outcome).code, meaning.code);
    EXPECT_EQ(failure_of(outcome, "dlock").code, meaning.code);
    EXPECT_EQ(failure_of(outcome, "dlock").detail, outcome.failure.detail);
  }
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
      const std::string detail = failure_of(refusal(state, "denied"), "my locks").detail;
      EXPECT_TRUE(detail.starts_with("denied")) << detail;
      EXPECT_EQ(detail == "denied", help.empty()) << detail;
      EXPECT_NE(detail.find(help), std::string::npos) << detail;
    }
  }
}

}  // namespace

}  // namespace dlock::postgres
