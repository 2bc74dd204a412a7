// Histories as text, and tables of them with the rules that each breaks.
//
//   {"HeldAfterTheNextGrant", "1: asks a, granted 1; 2: asks a, granted 2, held; 1: held", "exclusion"}
//
// A history is a list of groups, separated by ";": what one process does, or ("kill 1", "heal") what is done to them.
// Events come a millisecond after each other, or as long after as "+2s" before an event says.
//
//   asks LOCK [for TIME] [as N]   LOCK: a, read:a, write:a, election:a, 2:a (a semaphore of two permits).
//                                 Without "as", its acquires have the numbers 1, 2, ...
//   granted TOKEN [for TIME]      valid for ten seconds, or so long
//   held, unheld                  it finds the lock held, or not
//   releases, released            the release begins; it was the process's lock ("disowned": it was not; "unreleased":
//                                 the release failed). "returns" is both
//   cancels, denied WORDS, lost, ends, starts
//   acquire N                     no event: the next ones are of that acquire of the process
//
//   stop N, resume N, kill N, crash N, probe LOCK got|not, residue WORDS, serve LOCK TOKEN taken|refused
//   strike FAULT [for TIME] [of LOCK] [on N]   "for": nothing else happens meanwhile
//   heal [FAULT] [of LOCK], sound              everything is healed; the same, and a minute goes by
//
// "{x|y}" stands for x in a first and for y in a second history; "|" separates what they
// break, unless it is the same.
#pragma once

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "torture/checker/checker.hpp"

namespace dlock::torture {

// Throws std::invalid_argument for other texts.
[[nodiscard]] std::vector<Event> history_of(std::string_view text);

struct Row {
  std::string name;
  std::string_view history;
  // The rules in their order, separated by "; ". After "rule: " comes what its violations say, one after the other.
  std::string_view broken{};
  Rules rules{};

  friend void PrintTo(const Row& row, std::ostream* out) { *out << row.history; }
};

class HistoryTest : public testing::TestWithParam<Row> {};

[[nodiscard]] inline std::string name_of_row(const testing::TestParamInfo<Row>& row) {
  return row.param.name;
}

}  // namespace dlock::torture
