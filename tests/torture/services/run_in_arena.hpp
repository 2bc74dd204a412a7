// A run of torture in an arena.
//
//   DLOCK_TORTURE_SECONDS    for how long things are broken (12)
//   DLOCK_TORTURE_SEED       the seed (from the clock)
//   DLOCK_TORTURE_DIRECTORY  where histories are kept, each in a directory of its own (they are kept for a violation)
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "arena.hpp"

namespace dlock::torture {

// Whether this program may lose packets: it is in a network of its own. Otherwise the reason why not.
struct OwnNetwork {
  bool entered = false;
  std::string why_not = "the program did not ask for a network of its own";
};

struct RunOptions {
  std::string worker = DLOCK_TORTURE_WORKER;  // the program
  std::optional<std::chrono::nanoseconds> length{};
  std::optional<std::uint64_t> seed{};
  bool keep = true;                     // the history of a run with a violation
  int repetitions = 5;                  // as in Setup
  std::vector<std::string> locks{};     // as in Setup; empty: those of Setup
  LockKind lock_kind = LockKind::lock;  // as in Setup
  std::uint32_t permits = 1;            // as in Setup
  std::set<std::string> only{};         // as in Setup
  std::set<Rule> until_found{};         // as in Setup
  // As in the rules: a session may take twice its time to end, and a connection one second to be set up.
  std::chrono::nanoseconds recovery = std::chrono::seconds(8);
  OwnNetwork network{};
};

[[nodiscard]] Outcome run_in(Arena& arena, const std::string& name, const RunOptions& options = {});

}  // namespace dlock::torture
