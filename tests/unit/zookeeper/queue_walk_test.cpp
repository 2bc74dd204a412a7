// The names of nodes, and their meaning; and the way of a waiter to the front of the queue, step by step:
// what scenarios reach only with a race, or not at all.
#include "backends/zookeeper/strategies/queue_walk.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "backends/zookeeper/nodes/node_name.hpp"
#include "backends/zookeeper/nodes/removals.hpp"
#include "backends/zookeeper/strategies/recent_names.hpp"

namespace dlock::zookeeper {
namespace {

using Kind = QueueNode::Kind;

// --- Names: paths ---

TEST(NodeNames, EachKindOfLock_HasItsPlaceUnlessThatIsTheRoot) {
  using enum LockKind;
  EXPECT_EQ(lock_path("/dlock", "orders"), "/dlock/orders");
  EXPECT_EQ(lock_path("/a/dlock", "orders", read_write), "/a/dlock.rw/orders");
  EXPECT_EQ(lock_path("/dlock", "orders", semaphore), "/dlock.sem/orders");
  EXPECT_EQ(lock_path("/dlock", "orders", election), "/dlock.elect/orders");
  for (const LockKind kind : {lock, read_write, semaphore, election}) {
    EXPECT_EQ(lock_path("", "orders", kind), "/orders");
  }
}

// So two names never share a node.
TEST(NodeNames, LockName_IsEncodedAndDecoded) {
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"orders/42", "orders%2F42"},
      {"orders%2F42", "orders%252F42"},
      {"100%", "100%25"},
      {"a/", "a%2F"},
      {"../x", "..%2Fx"},
      {".", "%2E"},
      {"..", "%2E%2E"},
      {"\x7f", "%7F"},
      {"\xc2\x85ä", "%C2%85ä"},              // a control character
      {"\xee\x80\x80", "%EE%80%80"},         // private use
      {"\xef\xbf\xbd", "%EF%BF%BD"},         // U+FFFD
      {"\xf0\x9f\x94\x92", "%F0%9F%94%92"},  // beyond 16 bits
      {"\xed\xa0\x80", "%ED%A0%80"},         // U+D800
      {"\xed\x9f\xbf", "\xed\x9f\xbf"},      // U+D7FF, the last before what is refused
      {"\xef\xa4\x80", "\xef\xa4\x80"},      // U+F900, the first after it
      {"\xef\xbf\xaf", "\xef\xbf\xaf"},      // U+FFEF, the last before the next
      {"\xe0\xa4\x95", "\xe0\xa4\x95"},      // U+0915, whose lead byte is the lowest of three
      {"\xc2\xa0", "\xc2\xa0"},              // U+00A0, the first behind the controls
  };
  for (const auto& [name, encoded] : rows) {
    EXPECT_EQ(encode_name(name), encoded);
    EXPECT_EQ(decode_name(encoded), name);
  }
  for (const std::string name : {"orders", "a b", "ä", "日本", "§1", "x.y", "...", "-", "lock-0000000001", "~"}) {
    EXPECT_EQ(encode_name(name), name);
  }
  for (const std::string others : {"100%", "%2", "%zz", "%41", "%2f"}) {
    EXPECT_EQ(decode_name(others), std::nullopt) << others;
  }
}

// --- Names: children of a lock's node ---

TEST(NodeNames, Guid_IsAVersionFourUuid) {
  const OwnerId ones(~std::uint64_t{0}, ~std::uint64_t{0});
  EXPECT_EQ(guid_text(Layout::curator, ones), "ffffffff-ffff-4fff-bfff-ffffffffffff");
  EXPECT_EQ(guid_text(Layout::kazoo, OwnerId(0, 0)), "00000000000040008000000000000000");
}

TEST(NodeNames, NodeOfEachKind_IsParsedAsItWasWritten) {
  using enum LockKind;
  struct Row {
    Layout layout;
    Claim claim;
    std::string is;
  };
  const std::vector<Row> rows = {
      {Layout::curator, {}, "_c_GUID-lock-"},
      {Layout::curator, {.kind = election}, "_c_GUID-lock-"},
      {Layout::curator, {.kind = read_write}, "_c_GUID-__WRIT__"},
      {Layout::curator, {.kind = read_write, .mode = Mode::shared}, "_c_GUID-__READ__"},
      {Layout::kazoo, {}, "GUID__lock__"},
      {Layout::kazoo, {.kind = election}, "GUID__lock__"},
      {Layout::kazoo, {.kind = read_write}, "GUID__lock__"},
      {Layout::kazoo, {.kind = read_write, .mode = Mode::shared}, "GUID__rlock__"},
      {Layout::curator, {.kind = semaphore, .permits = 1}, "_c_GUID-permit-of-1-"},
      {Layout::kazoo, {.kind = semaphore, .permits = 4294967295}, "_c_GUID-permit-of-4294967295-"},
  };
  for (const auto& [layout, claim, is] : rows) {
    const std::string prefix = queue_node_prefix(layout, "GUID", claim);
    EXPECT_EQ(prefix, is);
    // Hazard 11: numbers that overflowed, too.
    for (const auto& [text, number] : {std::pair{"0000000017", 17LL}, std::pair{"-2147483648", -2147483648LL}}) {
      const QueueNode node = parse_queue_node(layout, prefix + text, claim.kind);
      EXPECT_EQ(node.kind, Kind::member) << prefix;
      EXPECT_EQ(node.sequence, number) << prefix;
      EXPECT_EQ(node.mode, claim.mode) << prefix;
      EXPECT_EQ(node.permits, claim.permits) << prefix;
    }
  }
}

// A node that does not exclude ours is foreign, and named. Whoever made a node that the server numbered has a place in
// some queue, and may hold what the queue is for.
TEST(QueueNodes, NodeOfAnotherProgram_IsRecognized) {
  using enum LockKind;
  struct Row {
    LockKind kind;  // of our lock
    std::string node;
    std::string in_curator;  // the layout; empty: a member of our queue
    std::string in_kazoo;
  };
  const std::string curators = "Curator's and go-zk's (layout=curator)";
  const std::string curators_read_write = "Curator's read-write lock";
  const std::string kazoos = "kazoo's (layout=kazoo)";
  const std::string recipe = "of ZooKeeper's lock recipe (x-<session>-<number>)";
  const std::string read_or_write = "of nodes called read-<number> and write-<number>";
  const std::string numbered = "of nodes that the server numbered for an unknown program";
  const std::string member;  // in both layouts or in the named one
  const std::string hex = "0e1cf9d85f6c4a498f0a1c0f0c3f1b2d";
  const std::vector<Row> rows = {
      {lock, "_c_" + hex + "-lock-0000000017", member, curators},
      {lock, "guid-lock-0000000017", member, curators},
      {lock, hex + "__lock__0000000003", kazoos, member},
      {lock, hex + "__rlock__0000000003", kazoos, member},
      {lock, "_c_x-__READ__0000000001", curators_read_write, curators_read_write},
      {lock, "_c_x-__WRIT__0000000001", curators_read_write, curators_read_write},
      {lock, "_c_x-permit-of-8-0000000001", "dlock's semaphore", "dlock's semaphore"},
      {lock, "_c_x-latch-0000000001", "Curator's leader latch", "Curator's leader latch"},
      {lock, "_c_x-lease-0000000001", "Curator's semaphore", "Curator's semaphore"},
      {lock, "lock-0000000001", "of nodes called lock-<number>", "of nodes called lock-<number>"},
      {lock, "read-0000000001", read_or_write, read_or_write},
      {lock, "write-0000000001", read_or_write, read_or_write},
      {lock, "semaphore-0000000001", "of nodes called semaphore-<number>", "of nodes called semaphore-<number>"},
      {lock, "x-0123456789abcdef-0000000001", recipe, recipe},
      {lock, "x-72057594037927936-0000000001", recipe, recipe},
      {lock, hex, "kazoo's semaphore (32 hexadecimal digits)", "kazoo's semaphore (32 hexadecimal digits)"},
      {read_write, "_c_x-lock-0000000001", curators, curators},
      {read_write, hex + "__rlock__0000000001", kazoos, member},
      {read_write, "_c_x-permit-of-8-0000000001", "dlock's semaphore", "dlock's semaphore"},
      {semaphore, "_c_x-lock-0000000001", curators, curators},
      {semaphore, "_c_x-__READ__0000000001", curators_read_write, curators_read_write},
      {semaphore, "_c_x-permit-of-0000000001", numbered, numbered},
      {semaphore, "_c_x-permit-of-0-0000000001", numbered, numbered},
      {semaphore, "_c_x-permit-of--0000000001", numbered, numbered},
      {semaphore, "_c_x-permit-of-x-0000000001", numbered, numbered},
      {semaphore, "_c_x-permit-of-4294967296-0000000001", numbered, numbered},
      {election, "_c_x-__READ__0000000001", curators_read_write, curators_read_write},
      {election, "_c_x-permit-of-8-0000000001", "dlock's semaphore", "dlock's semaphore"},
      {lock, "block-0000000001", numbered, numbered},
      {lock, "thread-0000000001", numbered, numbered},
      {lock, "rewrite-0000000001", numbered, numbered},
      {lock, "a-semaphore-0000000001", numbered, numbered},
      {lock, "ex-1-0000000001", numbered, numbered},
      {lock, "ex0000000000", numbered, numbered},
      {lock, "sh-2147483648", numbered, numbered},
      {lock, "0000000001", numbered, numbered},
  };
  for (const auto& [kind, name, in_curator, in_kazoo] : rows) {
    for (const Layout layout : {Layout::curator, Layout::kazoo}) {
      const QueueNode node = parse_queue_node(layout, name, kind);
      const std::string& is = layout == Layout::curator ? in_curator : in_kazoo;
      EXPECT_EQ(node.kind, is.empty() ? Kind::member : Kind::foreign) << name;
      EXPECT_EQ(node.layout, is) << name;
    }
  }
}

TEST(QueueNodes, AnyOtherName_IsUnknown) {
  for (const std::string name :
       {"", "config", "leader", "_c_x-lock-", "_c_x-lock-123", "_c_x-lock-00000000a1", "_c_x-lock-99999999999999999999",
        "lock", "lease", "sub/x", "backup-20261123", "0e1cf9d85f6c4a498f0a1c0f0c3f1b2",
        "0e1cf9d85f6c4a498f0a1c0f0c3f1b2d1", "0e1cf9d85f6c4a498f0a1c0f0c3f1b2g", "leases0", "12345678901"}) {
    EXPECT_EQ(parse_queue_node(Layout::curator, name).kind, Kind::unknown) << name;
  }
  for (const std::string_view name : semaphore_children) {
    EXPECT_EQ(parse_queue_node(Layout::curator, name).kind, Kind::semaphore) << name;
  }
}

// Hazard 11.
TEST(QueueNodes, Nodes_AreOrderedByNumberThenTransaction) {
  EXPECT_LT((QueuePosition{1, 9}), (QueuePosition{2, 3}));
  EXPECT_LT((QueuePosition{2, 3}), (QueuePosition{2, 4}));
  for (const std::int64_t number : {-2147483648LL, -1LL, 2147483647LL, 2147483648LL - 65536}) {
    EXPECT_TRUE(is_poisoned(number)) << number;
  }
  EXPECT_FALSE(is_poisoned(2147483648LL - 65537));
  EXPECT_FALSE(is_poisoned(0));
}

TEST(OwnerInData, Owner_IsFoundBehindAnyHolder) {
  const OwnerId owner(1, 2);
  const std::string digits = owner.to_string();
  for (const std::string holder : {"", "host:1:x", "host:1:x\nvalue", "\n"}) {
    const std::string data = data_of(holder, owner);
    EXPECT_TRUE(is_of(data, owner));
    EXPECT_FALSE(is_of(data, {1, 3}));
    EXPECT_EQ(holder_of(data), holder);
  }
  EXPECT_EQ(data_of("host:1:x\nvalue", owner), "host:1:x " + digits + "\nvalue") << "older clients read the value";
  // From an earlier version, or from another program.
  for (const std::string& data : {std::string(), std::string("host:1:x\nvalue"), digits, "x" + digits,
                                  "host:1:x " + std::string(32, 'z'), "host:1:x\nvalue " + digits}) {
    EXPECT_EQ(holder_of(data), data);
  }
}

// --- The way through the queue ---

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
