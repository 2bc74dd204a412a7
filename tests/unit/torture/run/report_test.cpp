#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "torture/run/torture.hpp"

namespace dlock::torture {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

Outcome sound_outcome() {
  Outcome outcome{.ran = std::chrono::seconds(60), .seed = 7, .directory = "/histories"};
  outcome.verdict.counts = {.acquires = 10, .grants = 8, .takeovers = 2, .losses = 1, .stale_writes = 3, .writes = 20};
  outcome.verdict.counts.denied = {{"busy", 2}};
  outcome.verdict.counts.faults = {{"black hole", 4}};
  return outcome;
}

TEST(ReportTest, SaysWhatHappenedAndEndsWithTheVerdict) {
  const std::string text = report(sound_outcome());
  EXPECT_THAT(text, HasSubstr("seed           7\n"));
  EXPECT_THAT(text, HasSubstr("things broken  for 60.0 s\n"));
  EXPECT_THAT(text, HasSubstr("faults         4 black hole\n"));
  EXPECT_THAT(text, HasSubstr("acquires       10, of which 8 granted; else: 2 busy\n"));
  EXPECT_THAT(text, HasSubstr("writes         20 taken, 3 stale ones refused\n"));
  EXPECT_THAT(text, HasSubstr("history        /histories\n"));
  EXPECT_THAT(text, EndsWith("verdict        all promises were kept\n"));
  EXPECT_THAT(text, Not(HasSubstr("missing")));
}

TEST(ReportTest, TooLittleIsNoVerdict) {
  Outcome outcome = sound_outcome();
  outcome.missing = {"losses: 0 instead of at least 1"};
  EXPECT_TRUE(outcome.inconclusive());
  EXPECT_THAT(report(outcome), HasSubstr("missing        losses: 0 instead of at least 1\n"));
  EXPECT_THAT(report(outcome), EndsWith("verdict        no violation, but too little happened to show anything\n"));
  outcome.interrupted = true;
  EXPECT_THAT(report(outcome), EndsWith("verdict        no violation, but the run was interrupted\n"));
}

TEST(ReportTest, AViolationComesFirst) {
  Outcome outcome = sound_outcome();
  outcome.missing = {"losses: 0 instead of at least 1"};
  outcome.verdict.violations = {{Rule::fencing, "an older write was taken", {}}};
  outcome.verdict.found = {{Rule::fencing, 12}};
  EXPECT_TRUE(outcome.violated());
  EXPECT_FALSE(outcome.inconclusive());
  EXPECT_THAT(report(outcome), testing::StartsWith("fencing: an older write was taken\n"));
  EXPECT_THAT(report(outcome), EndsWith("verdict        VIOLATED: fencing (12)\n"));
}

TEST(ReportTest, WhatAKnownHoleExcusesIsCounted) {
  Outcome outcome = sound_outcome();
  outcome.known_hole = {.rules = {Rule::exclusion}, .why = "the server forgets"};
  outcome.verdict.excused = {{Rule::exclusion, 3}};
  EXPECT_FALSE(outcome.violated());
  EXPECT_THAT(report(outcome), HasSubstr("known hole     the server forgets; exclusion: seen 3 times\n"));
}

TEST(ReportTest, AHistoryAloneHasNoRunToSpeakOf) {
  Outcome outcome = sound_outcome();
  outcome.ran = {};
  outcome.seed = 0;
  EXPECT_THAT(report(outcome), Not(HasSubstr("seed")));
  EXPECT_THAT(report(outcome), EndsWith("verdict        no violation\n"));
}

}  // namespace
}  // namespace dlock::torture
