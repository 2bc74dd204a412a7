// The way of a waiter to the front of the queue, step by step: what scenarios reach only with a race, or not at all.
#include "backends/zookeeper/strategies/queue_walk.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "backends/zookeeper/strategies/recent_names.hpp"

namespace dlock::zookeeper {

namespace {

using Names = std::vector<std::string>;

// The name of "r5" or "r5a": a reader (r), a writer (w), a member (m), or one of as many permits (2, 3) with that
// number.
std::string node(const std::string& word) {
  static const std::map<char, std::string> markers{
      {'m', "-lock-"}, {'r', "-__READ__"}, {'w', "-__WRIT__"}, {'2', "-permit-of-2-"}, {'3', "-permit-of-3-"}};
  std::array<char, 16> digits{};
  (void)std::snprintf(digits.data(), digits.size(), "%010d", word[1] - '0');
  return "_c_" + word + markers.at(word[0]) + digits.data();
}

LockKind kind_of(char claim) {
  if (claim == 'm') return LockKind::lock;
  return claim == 'r' || claim == 'w' ? LockKind::read_write : LockKind::semaphore;
}

std::string text_of(const QueueWalk::Step& step) {
  static constexpr std::array names{"list", "watch_list", "watch", "compare", "recheck_predecessor", "recheck_own",
                                    "wait", "announce",   "grant", "refuse",  "start_over"};
  const std::string text = names.at(static_cast<std::size_t>(step.next));
  if (step.permits != 0) return text + " " + std::to_string(step.permits);
  return step.node.empty() ? text : text + " " + step.node.substr(3, step.node.find('-') - 3);
}

// Events of a walk, and the step that must follow. Ours is the node of number 7, made by transaction 700.
struct Walk {
  const char* name;
  char claim;          // as in node()
  const char* script;  // EVENT [ARGUMENT]...: STEP; ...
};

void PrintTo(const Walk& row, std::ostream* out) {
  *out << row.name;
}

constexpr Walk walks[] = {
    {"LowestNumber_HoldsTheLock", 'm', "list m9 own m8: grant"},
    {"Waiter_WatchesTheNearestBeforeIt", 'm', "list m5 own m8 m3: watch m5"},
    // Hazard 8: an event is no grant.
    {"OnlyOneBefore_Changed_IsLookedAt", 'm',
     "list m3 own: watch m3; changed: recheck_predecessor m3; still 700: wait; away 700: grant; gone: recheck_own"},
    {"OthersBefore_AreListedAgain_ButNotToMakeSure", 'm',
     "list m3 m5 own: watch m5; changed: list; gone: list; check: watch m5; list m3 own: watch m3"},
    {"OwnNode_Gone_HoldsNothing", 'm',
     "list m9: start_over; list: start_over; list m3 own: watch m3; away 0: start_over; away 701: start_over"},
    // Hazard 11: of one number, the earlier transaction is first.
    {"Twin_IsComparedByItsTransaction", 'm',
     "list m7a own: compare m7a; compared 701: grant; list m7a own: compare m7a; compared 699: watch m7a; gone: "
     "recheck_own; list m7a own: compare m7a; compared 0: grant; compared 0: list"},
    {"Twins_AreComparedOneByOne_AndTheNearestIsWatched", 'm',
     "list m7a m7b own m2: compare m7b; compared 650: compare m7a; compared 660: watch m7a; gone: list; "
     "list m7a m7b own: compare m7b; compared 660: compare m7a; compared 650: watch m7b"},
    {"Reader_WaitsForTheNearestWriterBeforeIt", 'r',
     "list w1 r2 w3 r5 own w8: watch w3; changed: list; list r2 r5 own w8: grant; list r2 w3 r5 own: watch w3; "
     "changed: "
     "recheck_predecessor w3; away 700: grant"},
    // Curator's holder goes on to read by a node with the old number, which is not in the list that the writer has.
    {"Writer_ListsAgainTheNodesBeforeIt", 'w',
     "list w3 own r9: watch w3; changed: list; gone: list; list r3 own r9: watch r3; list r3 r5 own: watch r5"},
    {"Permits_AreHeldByAsMany", '2', "list own: grant; list 23 own: grant; list 23 own 28: announce"},
    {"FirstInLine_WatchesAllChildren", '2',
     "list 23 25 own 29: watch_list; watched 23 25 own 29: wait; changed: watch_list; check: watch_list"},
    {"BehindTheFirst_WatchesTheOneBefore", '2',
     "list 23 24 25 own: watch 25; seen x: wait; entered x: watch_list; gone: watch_list; list 22 23 24 25 own: watch "
     "25; "
     "gone: list"},
    {"OtherNumberOfPermits_IsRefusedByTheFirst", '2',
     "list 33 own: refuse 3; list own 38: announce; behind 33: refuse 3; behind 23: grant; behind 23 24: wait"},
    {"NodeToBeRefused_RefusesNoOther", '2',
     "list 35 23 own: watch 35; check: watch 35; gone: watch_list; watched 35 23 own: wait 35; behind 35 23: wait; "
     "list 35 own: refuse 3; list 23 own: grant"},
};

class QueueWalkTest : public testing::TestWithParam<Walk> {};

TEST_P(QueueWalkTest, Holds) {
  const char claim = GetParam().claim;
  const LockKind kind = kind_of(claim);
  const std::string own = node(claim + std::string("7"));
  QueueWalk walk(
      {.kind = kind, .mode = claim == 'r' ? Mode::shared : Mode::exclusive, .permits = claim == '2' ? 2U : 1U});
  walk.placed(own, {7, 700});
  std::istringstream script(GetParam().script);
  for (std::string statement; std::getline(script, statement, ';');) {
    SCOPED_TRACE(statement);
    const auto colon = statement.find(':');
    std::istringstream words(statement.substr(0, colon));
    std::string event;
    words >> event;
    Names children;
    std::int64_t number = 0;
    std::string argument;
    while (words >> argument) {
      if (event == "list" || event == "watched" || event == "behind") {
        children.push_back(argument == "own" ? own : node(argument));
      } else if (event != "seen" && event != "entered") {
        number = std::stoi(argument);
      }
    }
    const Queue queue = judge_queue(Layout::curator, "/dlock/lock", children, kind);
    const auto created = number == 0 ? std::nullopt : std::optional(number);
    const auto step = event == "list"       ? walk.listed(queue)
                      : event == "watched"  ? walk.listed(queue, true)
                      : event == "behind"   ? walk.behind(queue)
                      : event == "compared" ? walk.compared(created)
                      : event == "changed"  ? walk.changed()
                      : event == "check"    ? walk.check()
                      : event == "gone"     ? walk.gone()
                      : event == "seen"     ? walk.seen("other:2:x")
                      : event == "entered"  ? walk.seen(QueueWalk::entered("other:2:x"))
                                            : walk.rechecked(event == "still", created);
    EXPECT_EQ(text_of(step), statement.substr(colon + 2));
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, QueueWalkTest, testing::ValuesIn(walks),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(QueueTest, Holders_AreTheFirstReadersWriterOrPermits) {
  const auto holders = [](LockKind kind, const Names& words) {
    Names children;
    for (const std::string& word : words) children.push_back(node(word));
    Names found;
    for (const auto& each : judge_queue(Layout::curator, "/l", children, kind).holders()) {
      found.emplace_back(each.node.substr(3, each.node.find('-') - 3));
    }
    return found;
  };
  EXPECT_EQ(holders(LockKind::read_write, {"r5", "r3", "w6", "r8"}), (Names{"r3", "r5"}));
  EXPECT_EQ(holders(LockKind::read_write, {"r5", "w3", "w6"}), Names{"w3"});
  EXPECT_EQ(holders(LockKind::read_write, {"r3", "w3"}), Names{"w3"});
  EXPECT_EQ(holders(LockKind::semaphore, {"25", "23", "27"}), (Names{"23", "25"}));
  EXPECT_EQ(holders(LockKind::lock, {"m5", "m3"}), Names{"m3"});
  EXPECT_EQ(holders(LockKind::lock, {}), Names());
}

TEST(RecentNamesTest, Names_BeyondTheLimit_BeginAnew) {
  RecentNames names;
  names.remove("0");
  for (int i = 0; i < 1000; ++i) names.add(std::to_string(i));
  names.remove("7");
  names.add("7");
  EXPECT_TRUE(names.contains("0"));
  EXPECT_TRUE(names.contains("7"));
  names.remove("7");
  EXPECT_FALSE(names.contains("7"));
  for (int i = 0; i < 2; ++i) names.add(std::to_string(1000 + i));
  EXPECT_FALSE(names.contains("0"));
  EXPECT_TRUE(names.contains("1001"));
}

}  // namespace

}  // namespace dlock::zookeeper
