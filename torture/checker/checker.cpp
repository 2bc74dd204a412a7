#include "torture/checker/checker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "torture/checker/findings.hpp"

namespace dlock::torture {
namespace {

// The most lines about faults of the processes in an excerpt, which has to remain readable.
constexpr std::size_t max_circumstances = 20;

bool concerns(const Event& event, const std::set<int>& processes) {
  switch (event.kind) {
    case Kind::stopped:
    case Kind::resumed:
    case Kind::killed:
      return processes.contains(event.subject);
    case Kind::struck:
    case Kind::healed:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string_view name_of(Rule rule) noexcept {
  constexpr std::array<std::string_view, all_rules.size()> names{
      "exclusion", "unique tokens", "growing tokens", "fencing",  "honest release", "timely loss",
      "deadlines", "progress",      "hand-over",      "no crash", "no residue"};
  return names.at(static_cast<std::size_t>(rule));
}

void Findings::add(Rule rule, std::string what, std::vector<std::size_t> events) {
  if (rules_.without.contains(rule)) return excuse(rule);
  if (++verdict_.found[rule] > max_of_a_rule) return;
  std::sort(events.begin(), events.end());
  events.erase(std::unique(events.begin(), events.end()), events.end());
  verdict_.violations.push_back({.rule = rule, .what = std::move(what), .events = std::move(events)});
}

Verdict Findings::take() {
  std::stable_sort(verdict_.violations.begin(), verdict_.violations.end(),
                   [](const Violation& a, const Violation& b) { return a.rule < b.rule; });
  return std::move(verdict_);
}

Verdict check(std::span<const Event> history, const Rules& rules) {
  const Attempts attempts(history);
  Findings findings(rules);
  const HoleTimes hole(attempts, rules);
  check_exclusion(attempts, hole, findings);
  check_tokens(attempts, hole, findings);
  check_fencing(attempts, findings);
  check_releases(attempts, hole, findings);
  check_losses(attempts, rules, findings);
  check_deadlines(attempts, rules, findings);
  check_progress(attempts, rules, findings);
  check_residue(attempts, findings);
  Verdict verdict = findings.take();
  verdict.counts = count(attempts);
  return verdict;
}

std::string excerpt(std::span<const Event> history, const Violation& violation) {
  std::string text = fmt::format("{}: {}\n", name_of(violation.rule), violation.what);
  if (violation.events.empty()) return text;
  std::set<int> processes;
  for (const std::size_t place : violation.events) processes.insert(history[place].process);
  const TimePoint origin = history[violation.events.front()].at;
  std::size_t circumstances = 0;
  for (std::size_t place = violation.events.front(); place <= violation.events.back(); ++place) {
    const bool shows = std::binary_search(violation.events.begin(), violation.events.end(), place);
    if (!shows && !concerns(history[place], processes)) continue;
    if (!shows && ++circumstances > max_circumstances) continue;
    text += "  " + describe(history[place], origin) + "\n";
  }
  if (circumstances > max_circumstances) {
    text += fmt::format("  ... and {} more things were done meanwhile\n", circumstances - max_circumstances);
  }
  return text;
}

}  // namespace dlock::torture
