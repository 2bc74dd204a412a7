// What nodes are called, and what their names say.
#include "backends/zookeeper/nodes/node_name.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "backends/zookeeper/nodes/removals.hpp"

namespace dlock::zookeeper {

namespace {

using Kind = QueueNode::Kind;

// --- Paths -----------------------------------------------------------------------------------------------------------

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

// --- Children of a lock's node ---------------------------------------------------------------------------------------

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

}  // namespace

}  // namespace dlock::zookeeper
