// Decides whether a history keeps the promises of a lock.
//
//   const std::vector<Event> history = read_histories(directory);
//   const Verdict verdict = check(history, {});
//   for (const Violation& v : verdict.violations) std::cerr << excerpt(history, v);
//
// Tokens are unique and grow, so they order the grants: no search is needed, and a history of n events is checked in
// O(n log n). If a service loses acknowledged data, its locks break some of these promises; each backend's document
// says which.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "torture/history/event.hpp"

namespace dlock::torture {

enum class Rule : std::uint8_t {
  exclusion,       // no two acquires of a lock were held() at one instant
  unique_tokens,   // no token was granted twice
  growing_tokens,  // the later grant has the greater token
  fencing,         // the resource accepted no older token after a newer one, and refused no newest one
  honest_release,  // a release returned "ours" once, only if the lock was not lost, and not yet granted to others
  timely_loss,     // after held() was false, the loss was signalled at once, and held() never became true again
  deadlines,       // each acquire ended once, by its deadline or its cancellation; each release ended
  progress,        // once all faults are over, no lock with a waiter stays free
  hand_over,       // in sound times, a released lock is granted to a waiter at once
  no_crash,        // no process ended that was not killed
  no_residue,      // nothing is left in the service after all workers have ended
};
inline constexpr std::array all_rules{Rule::exclusion,      Rule::unique_tokens, Rule::growing_tokens, Rule::fencing,
                                      Rule::honest_release, Rule::timely_loss,   Rule::deadlines,      Rule::progress,
                                      Rule::hand_over,      Rule::no_crash,      Rule::no_residue};
[[nodiscard]] std::string_view name_of(Rule rule) noexcept;

// A promise that a service is known not to keep: some faults take locks from their holders, which learn of it later. If
// a holder therefore overlaps with the next one for a bounded time, that breaks no rule.
struct Hole {
  std::set<Rule> rules{};             // of exclusion, growing tokens and honest release; empty: no hole
  std::set<std::string> strikes{};    // faults that take locks away at the moment they begin
  std::set<std::string> faults{};     // faults that may do so for as long as they last
  std::chrono::nanoseconds belief{};  // how long held() may be true for a lock that was taken away: a lease, or more
  // Unless its process is stopped, the holder learns of it within `loss_slack`.
  bool told_at_once = false;
};

struct Rules {
  std::chrono::nanoseconds slack = std::chrono::seconds(2);              // how late an acquire may end
  std::chrono::nanoseconds release = std::chrono::seconds(5);            // how long a release may take
  std::chrono::nanoseconds loss_slack = std::chrono::milliseconds(500);  // how late a loss may be signalled
  // How long after all faults are over a lock may be free in spite of waiters: the longest lease or session, and the
  // time to notice and to reconnect.
  std::chrono::nanoseconds recovery = std::chrono::seconds(15);
  // When times are sound again after all faults are over, and how long a hand-over may take then: much less than the
  // time after which a waiter checks without a wake-up.
  std::chrono::nanoseconds settled = std::chrono::seconds(20);
  std::chrono::nanoseconds hand_over = std::chrono::seconds(1);
  std::set<Rule> without{};  // promises that this service is known not to keep under these faults
  Hole hole{};
};

struct Violation {
  Rule rule;
  std::string what;
  std::vector<std::size_t> events;  // the evidence: indexes in the history, in the order of time
};

// Counts of events; a run with few of them proves little.
struct Counts {
  std::size_t acquires = 0;
  std::size_t grants = 0;
  std::size_t takeovers = 0;                    // grants of a lock that its last holder had not released
  std::size_t losses = 0;                       // signalled
  std::size_t stale_writes = 0;                 // refused by the resource
  std::size_t writes = 0;                       // accepted by the resource
  std::size_t hand_overs = 0;                   // grants to a process that was waiting when the lock was released
  std::map<std::string, std::size_t> denied{};  // by the reason
  std::map<std::string, std::size_t> faults{};  // by kind
  std::chrono::nanoseconds longest_wait{};      // of a granted acquire
  // The longest time that a lock with a waiter was free, in all, and since everything was healed.
  std::chrono::nanoseconds longest_stall{};
  std::chrono::nanoseconds longest_stall_after{};
};

struct Verdict {
  std::vector<Violation> violations;    // in the order of the rules; at most max_of_a_rule of each
  std::map<Rule, std::size_t> found;    // how many there are
  std::map<Rule, std::size_t> excused;  // how many there would be without Rules::without and Rules::hole
  Counts counts;
};
inline constexpr std::size_t max_of_a_rule = 10;

// The history must be in the order of time. Throws std::invalid_argument for one that no run can have written, such as
// a grant without an acquire.
[[nodiscard]] Verdict check(std::span<const Event> history, const Rules& rules);

// The violation, and the events that show it with what was done to their processes meanwhile, for people.
[[nodiscard]] std::string excerpt(std::span<const Event> history, const Violation& violation);

}  // namespace dlock::torture
