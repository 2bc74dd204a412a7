// What people are shown of a violation.
#include <algorithm>

#include "tests/unit/torture/checker/history_builder.hpp"

namespace dlock::torture {
namespace {

std::string only_excerpt(const History& h) {
  const Verdict verdict = check(h.events(), {});
  EXPECT_EQ(verdict.violations.size(), 1U);
  return verdict.violations.empty() ? "" : excerpt(h.events(), verdict.violations.front());
}

TEST(Excerpt, ShowsTheEventsAndWhatWasDoneToTheirProcesses) {
  History h;
  h.process(1).asks("a").is_granted(1, 2s).looks(true);
  h.process(3).asks("b", 5s);
  h.strikes("partition");
  h.stops(1).after(2500ms).stops(3);
  h.process(2).asks("a").is_granted(2).looks(true);
  h.resumes(1);
  h.process(1).looks(true);
  h.kills(1);
  EXPECT_EQ(only_excerpt(h),
            "exclusion: process 1 found lock a held after process 2 had been granted it\n"
            "      +0.000000 s  process 1: is granted the lock, token 1, valid for 2.000000 s  [lock a, acquire 1]\n"
            "      +0.003000 s  fault: partition\n"
            "      +0.004000 s  process 1 is stopped\n"
            "      +2.506000 s  process 2: is granted the lock, token 2, valid for 10.000000 s  [lock a, acquire 1]\n"
            "      +2.508000 s  process 1 goes on\n"
            "      +2.509000 s  process 1: looks: held  [lock a, acquire 1]\n");
}

TEST(Excerpt, LeavesOutWhatIsTooMuch) {
  History h;
  h.process(1).asks("a").is_granted(1);
  for (int i = 0; i < 12; ++i) h.strikes("partition").heals("partition");
  h.process(2).asks("a").is_granted(2).looks(true);
  h.process(1).looks(true);
  const std::string text = only_excerpt(h);
  EXPECT_NE(text.find("  ... and 4 more things were done meanwhile\n"), std::string::npos) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1 + 3 + 20 + 1) << text;
}

TEST(Excerpt, OfAnEventByItself) {
  History h;
  h.heals().probes("a", false);
  EXPECT_EQ(only_excerpt(h),
            "progress: a new process did not get lock a\n"
            "      +0.000000 s  a new process does not get the lock: timed out  [lock a]\n");
}

TEST(Excerpt, OfAViolationWithoutEventsIsWhatItSays) {
  EXPECT_EQ(excerpt({}, {.rule = Rule::no_residue, .what = "a key", .events = {}}), "no residue: a key\n");
}

}  // namespace
}  // namespace dlock::torture
