// What nodes are called, and what their names say.
#include "backends/zookeeper/nodes/node_name.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace dlock::zookeeper {

namespace {

using Kind = QueueNode::Kind;

constexpr auto uuid = "0e1cf9d8-5f6c-4a49-8f0a-1c0f0c3f1b2d";
constexpr auto hex = "0e1cf9d85f6c4a498f0a1c0f0c3f1b2d";

QueueNode curator(const std::string& name) {
  return parse_queue_node(Layout::curator, name);
}
QueueNode kazoo(const std::string& name) {
  return parse_queue_node(Layout::kazoo, name);
}

TEST(NodeNames, PlainNamesAreKept) {
  for (const std::string name : {"orders", "a b", "ä", "日本", "§1", "x.y", "...", "-", "lock-0000000001"}) {
    EXPECT_EQ(encode_name(name), name);
  }
  EXPECT_EQ(lock_path("/dlock", "orders"), "/dlock/orders");
  EXPECT_EQ(lock_path("", "orders"), "/orders");
}

TEST(NodeNames, EachKindOfLocksHasAPlaceOfItsOwnUnlessThatIsTheRoot) {
  EXPECT_EQ(lock_path("/a/dlock", "orders", LockKind::read_write), "/a/dlock.rw/orders");
  EXPECT_EQ(lock_path("/dlock", "orders", LockKind::semaphore), "/dlock.sem/orders");
  EXPECT_EQ(lock_path("/dlock", "orders", LockKind::election), "/dlock.elect/orders");
  for (const LockKind kind : {LockKind::lock, LockKind::read_write, LockKind::semaphore, LockKind::election}) {
    EXPECT_EQ(lock_path("", "orders", kind), "/orders");
  }
}

TEST(NodeNames, WhatAPathCannotSayIsEncoded) {
  EXPECT_EQ(encode_name("orders/42"), "orders%2F42");
  EXPECT_EQ(encode_name("100%"), "100%25");
  EXPECT_EQ(encode_name("."), "%2E");
  EXPECT_EQ(encode_name(".."), "%2E%2E");
  EXPECT_EQ(encode_name("\x7f"), "%7F");
  EXPECT_EQ(encode_name("\xc2\x85"), "%C2%85");  // a control character
  EXPECT_EQ(encode_name("\xc2\x85ä"), "%C2%85ä");
  EXPECT_EQ(encode_name("\xee\x80\x80"), "%EE%80%80");         // private use
  EXPECT_EQ(encode_name("\xef\xbf\xbd"), "%EF%BF%BD");         // U+FFFD
  EXPECT_EQ(encode_name("\xf0\x9f\x94\x92"), "%F0%9F%94%92");  // beyond 16 bits
  EXPECT_EQ(encode_name("\xef\xa4\x80"), "\xef\xa4\x80");      // U+F900, the first after what is refused
  EXPECT_EQ(encode_name("\xed\x9f\xbf"), "\xed\x9f\xbf");      // U+D7FF, the last before
  EXPECT_EQ(encode_name("\xed\xa0\x80"), "%ED%A0%80");         // U+D800
  EXPECT_EQ(encode_name("\xe0\xa4\x95"), "\xe0\xa4\x95");      // U+0915, whose lead byte is the lowest of three
}

// Two names never share a node.
TEST(NodeNames, EveryNameComesBack) {
  const std::vector<std::string> names = {"a/b", "a%2Fb", "%", "%%2F",      ".",      "..",   "%2E",
                                          "...", "a/",    "/", "\xc2\x80x", "日本/ä", "../x", "\xf0\x9f\x94\x92",
                                          "\x7f"};
  for (const std::string& name : names) {
    const std::string encoded = encode_name(name);
    EXPECT_EQ(encoded.find('/'), std::string::npos);
    EXPECT_EQ(decode_name(encoded), name);
  }
}

TEST(NodeNames, WhatOthersMadeIsNotTakenForAName) {
  for (const std::string component : {"100%", "%2", "%zz", "%41", "%2f"}) {
    EXPECT_EQ(decode_name(component), std::nullopt) << component;
  }
}

TEST(NodeNames, AGuidIsAVersionFourUuid) {
  const std::string guid = guid_text(Layout::curator, OwnerId(~std::uint64_t{0}, ~std::uint64_t{0}));
  EXPECT_EQ(guid, "ffffffff-ffff-4fff-bfff-ffffffffffff");
  EXPECT_EQ(guid_text(Layout::curator, OwnerId(0, 0)), "00000000-0000-4000-8000-000000000000");
  EXPECT_EQ(guid_text(Layout::kazoo, OwnerId(0, 0)), "00000000000040008000000000000000");
}

TEST(NodeNames, AreThoseOfTheLayout) {
  EXPECT_EQ(queue_node_prefix(Layout::curator, uuid), std::string("_c_") + uuid + "-lock-");
  EXPECT_EQ(queue_node_prefix(Layout::kazoo, hex), std::string(hex) + "__lock__");
}

TEST(NodeNames, OfEveryKindAreReadAsTheyAreWritten) {
  struct Row {
    Layout layout;
    Claim claim;
    std::string end;
  };
  const std::vector<Row> rows = {
      {Layout::curator, {.kind = LockKind::election}, "-lock-"},
      {Layout::curator, {.kind = LockKind::read_write}, "-__WRIT__"},
      {Layout::curator, {.kind = LockKind::read_write, .mode = Mode::shared}, "-__READ__"},
      {Layout::kazoo, {.kind = LockKind::election}, "__lock__"},
      {Layout::kazoo, {.kind = LockKind::read_write}, "__lock__"},
      {Layout::kazoo, {.kind = LockKind::read_write, .mode = Mode::shared}, "__rlock__"},
      {Layout::curator, {.kind = LockKind::semaphore, .permits = 1}, "-permit-of-1-"},
      {Layout::kazoo, {.kind = LockKind::semaphore, .permits = 4294967295}, "-permit-of-4294967295-"},
  };
  for (const auto& [layout, claim, end] : rows) {
    const std::string prefix = queue_node_prefix(layout, guid_text(layout, OwnerId(1, 2)), claim);
    EXPECT_TRUE(prefix.ends_with(end)) << prefix;
    const QueueNode node = parse_queue_node(layout, prefix + "0000000017", claim.kind);
    EXPECT_EQ(node.kind, Kind::member) << prefix;
    EXPECT_EQ(node.sequence, 17);
    EXPECT_EQ(node.mode, claim.mode);
    EXPECT_EQ(node.permits, claim.permits);
  }
}

TEST(QueueNodes, CuratorsAndGoZksAreMembers) {
  for (const std::string& start : {std::string("_c_") + uuid, std::string("_c_") + hex, std::string("guid")}) {
    const QueueNode node = curator(start + "-lock-0000000017");
    EXPECT_EQ(node.kind, Kind::member);
    EXPECT_EQ(node.sequence, 17);
  }
  EXPECT_EQ(kazoo(std::string("_c_") + uuid + "-lock-0000000017").kind, Kind::foreign);
}

TEST(QueueNodes, KazoosAreMembersOfItsLayoutOnly) {
  for (const std::string marker : {"__lock__", "__rlock__"}) {
    EXPECT_EQ(kazoo(hex + marker + "0000000003").kind, Kind::member);
    EXPECT_EQ(kazoo(hex + marker + "0000000003").sequence, 3);
    EXPECT_EQ(curator(hex + marker + "0000000003").kind, Kind::foreign);
  }
}

TEST(QueueNodes, WhatDoesNotExcludeOursIsForeignAndNamed) {
  for (const std::string name :
       {"_c_x-__READ__0000000001", "_c_x-__WRIT__0000000001", "_c_x-latch-0000000001", "_c_x-lease-0000000001",
        "lock-0000000001", "read-0000000001", "write-0000000001", "semaphore-0000000001",
        "x-0123456789abcdef-0000000001", "x-72057594037927936-0000000001", hex}) {
    for (const Layout layout : {Layout::curator, Layout::kazoo}) {
      const QueueNode node = parse_queue_node(layout, name);
      EXPECT_EQ(node.kind, Kind::foreign) << name;
      EXPECT_FALSE(node.layout.empty());
    }
  }
}

TEST(QueueNodes, ThoseOfAnotherKindAreForeign) {
  const std::string lock = std::string("_c_") + uuid + "-lock-0000000001";
  const std::string reader = std::string("_c_") + uuid + "-__READ__0000000001";
  const std::string permit = std::string("_c_") + uuid + "-permit-of-8-0000000001";
  const auto layout_of = [](const std::string& name, LockKind kind) {
    return parse_queue_node(Layout::curator, name, kind).layout;
  };
  EXPECT_EQ(layout_of(reader, LockKind::lock), "Curator's read-write lock");
  EXPECT_EQ(layout_of(reader, LockKind::semaphore), "Curator's read-write lock");
  EXPECT_EQ(layout_of(reader, LockKind::election), "Curator's read-write lock");
  EXPECT_EQ(layout_of(lock, LockKind::read_write), "Curator's and go-zk's (layout=curator)");
  EXPECT_EQ(layout_of(lock, LockKind::semaphore), "Curator's and go-zk's (layout=curator)");
  for (const LockKind kind : {LockKind::lock, LockKind::read_write, LockKind::election}) {
    EXPECT_EQ(layout_of(permit, kind), "dlock's semaphore");
  }
  EXPECT_EQ(layout_of(std::string(hex) + "__rlock__0000000001", LockKind::read_write), "kazoo's (layout=kazoo)");
}

TEST(QueueNodes, ASemaphoresNodeSaysHowManyPermitsThereAre) {
  for (const std::string name :
       {"_c_x-permit-of-0000000001", "_c_x-permit-of-0-0000000001", "_c_x-permit-of--0000000001",
        "_c_x-permit-of-x-0000000001", "_c_x-permit-of-4294967296-0000000001"}) {
    EXPECT_EQ(parse_queue_node(Layout::curator, name, LockKind::semaphore).kind, Kind::foreign) << name;
  }
}

TEST(QueueNodes, AForeignOneIsCalledByWhatItBelongsTo) {
  EXPECT_EQ(curator("_c_x-__READ__0000000001").layout, "Curator's read-write lock");
  EXPECT_EQ(curator("_c_x-__WRIT__0000000001").layout, "Curator's read-write lock");
  EXPECT_EQ(curator("_c_x-latch-0000000001").layout, "Curator's leader latch");
  EXPECT_EQ(curator("_c_x-lease-0000000001").layout, "Curator's semaphore");
  for (const std::string name :
       {"block-0000000001", "thread-0000000001", "rewrite-0000000001", "a-semaphore-0000000001", "ex-1-0000000001"}) {
    EXPECT_NE(curator(name).layout.find("unknown program"), std::string_view::npos) << name;
  }
}

// Whoever made it has a place in some queue, and may hold what the queue is for.
TEST(QueueNodes, ANumberThatTheServerGaveIsForeignWhateverStandsBeforeIt) {
  for (const std::string name : {"block-0000000001", "ex0000000000", "sh-2147483648", "0000000001"}) {
    for (const Layout layout : {Layout::curator, Layout::kazoo}) {
      EXPECT_EQ(parse_queue_node(layout, name).kind, Kind::foreign) << name;
    }
  }
}

TEST(QueueNodes, CuratorsSemaphoresAreKeptBelowTwoChildren) {
  for (const std::string name : {"locks", "leases"}) {
    for (const Layout layout : {Layout::curator, Layout::kazoo}) {
      EXPECT_EQ(parse_queue_node(layout, name).kind, Kind::semaphore) << name;
    }
  }
}

TEST(QueueNodes, AnythingElseIsUnknown) {
  for (const std::string name :
       {"", "config", "leader", "_c_x-lock-", "_c_x-lock-123", "_c_x-lock-00000000a1", "_c_x-lock-99999999999999999999",
        "lock", "lease", "sub/x", "backup-20261123", "0e1cf9d85f6c4a498f0a1c0f0c3f1b2",
        "0e1cf9d85f6c4a498f0a1c0f0c3f1b2d1", "0e1cf9d85f6c4a498f0a1c0f0c3f1b2g", "leases0", "12345678901"}) {
    EXPECT_EQ(curator(name).kind, Kind::unknown) << name;
  }
}

// Hazard 11.
TEST(QueueNodes, NumbersThatOverflowedAreReadAndPoisoned) {
  EXPECT_EQ(curator("_c_x-lock--2147483648").sequence, -2147483648LL);
  EXPECT_EQ(curator("_c_x-lock--000000001").sequence, -1);
  EXPECT_EQ(curator("_c_x-lock-2147483647").sequence, 2147483647);
  EXPECT_TRUE(is_poisoned(-2147483648LL));
  EXPECT_TRUE(is_poisoned(-1));
  EXPECT_TRUE(is_poisoned(2147483647));
  EXPECT_TRUE(is_poisoned(2147483648LL - 65536));
  EXPECT_FALSE(is_poisoned(2147483648LL - 65537));
  EXPECT_FALSE(is_poisoned(0));
}

TEST(QueueNodes, AreOrderedByNumberThenByTransaction) {
  EXPECT_LT((QueuePosition{1, 9}), (QueuePosition{2, 3}));
  EXPECT_LT((QueuePosition{2, 3}), (QueuePosition{2, 4}));
}

}  // namespace

}  // namespace dlock::zookeeper
