#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <string>

#include "torture/run/torture.hpp"

namespace dlock::torture {

namespace {

std::string list(const std::map<std::string, std::size_t>& items) {
  std::string text;
  for (const auto& [what, count] : items) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, what);
  return text.empty() ? "none" : text;
}

std::string verdict_line(const Outcome& outcome) {
  if (outcome.violated()) {
    std::string rules;
    for (const auto& [rule, times] : outcome.verdict.found) {
      rules += fmt::format("{}{} ({})", rules.empty() ? "" : ", ", name_of(rule), times);
    }
    return "VIOLATED: " + rules;
  }
  if (outcome.interrupted) return "no violation, but the run was interrupted";
  if (!outcome.missing.empty()) return "no violation, but too little happened to show anything";
  return outcome.ran.count() == 0 ? "no violation" : "all promises were kept";
}

}  // namespace

std::string report(const Outcome& outcome) {
  const Counts& c = outcome.verdict.counts;
  std::string text;
  for (const Violation& violation : outcome.verdict.violations) text += excerpt(outcome.history, violation) + "\n";
  const auto line = [&](const char* name, const std::string& value) { text += fmt::format("{:<15}{}\n", name, value); };
  if (outcome.seed != 0) line("seed", std::to_string(outcome.seed));
  if (outcome.ran.count() != 0) line("things broken", fmt::format("for {:.1f} s", in_seconds(outcome.ran)));
  line("faults", list(c.faults));
  line("acquires", fmt::format("{}, of which {} granted; else: {}", c.acquires, c.grants, list(c.denied)));
  line("changes",
       fmt::format("{} hand-overs to waiters, {} takeovers, {} losses", c.hand_overs, c.takeovers, c.losses));
  line("writes", fmt::format("{} taken, {} stale ones refused", c.writes, c.stale_writes));
  line("longest wait", fmt::format("{:.3f} s", in_seconds(c.longest_wait)));
  line("longest stall", fmt::format("{:.3f} s; {:.3f} s once nothing was broken any more", in_seconds(c.longest_stall),
                                    in_seconds(c.longest_stall_after)));
  if (!outcome.known_hole.why.empty()) {
    std::string seen;
    for (const auto& [rule, times] : outcome.verdict.excused)
      seen += fmt::format("; {}: seen {} times", name_of(rule), times);
    line("known hole", outcome.known_hole.why + seen);
  }
  for (const std::string& what : outcome.missing) line("missing", what);
  line("history", outcome.directory.string());
  line("verdict", verdict_line(outcome));
  return text;
}

}  // namespace dlock::torture
