// The keys of a lock and their hash slots, what stands in them and in messages, and which node of a cluster has which
// slot. On a cluster all that a lock needs is in one slot, whatever its name is.
#include "backends/redis/requests/keys.hpp"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <optional>
#include <tuple>

#include "backends/redis/cluster/slot_map.hpp"
#include "backends/redis/hash_slot.hpp"
#include "fake_server.hpp"

namespace dlock::redis {
namespace {

using namespace std::string_literals;

// The values are those of the cluster specification, and of CLUSTER KEYSLOT.
TEST(RedisHashSlot, Key_HasTheSlotOfItsHashedPart) {
  struct Row {
    std::string_view key;
    std::string_view hashed;
    bool usable;  // its braces: one that closes ends a tag, or comes behind one
  };
  const std::vector<Row> rows = {{"{user1000}.following", "user1000", true},
                                 {"foo{}{bar}", "foo{}{bar}", false},
                                 {"foo{{bar}}zap", "{bar", true},
                                 {"foo{bar}{zap}", "bar", true},
                                 {"", "", true},
                                 {"{}", "{}", false},
                                 {"{", "{", true},
                                 {"}", "}", false},
                                 {"a}b{c}", "c", true},
                                 {"}{", "}{", false},
                                 {"a{b", "a{b", true},
                                 {"a{b}", "b", true},
                                 {"{ }", " ", true},
                                 {"{t}}", "t", true},
                                 {"{t}{}", "t", true},
                                 {"a{}b{c}", "a{}b{c}", false},
                                 {"a}b", "a}b", false},
                                 {"}{t}", "t", true}};
  for (const Row& row : rows) {
    EXPECT_EQ(hashed_part(row.key), row.hashed) << row.key;
    EXPECT_EQ(slot_of(row.key), slot_of(row.hashed)) << row.key;
    EXPECT_EQ(has_usable_braces(row.key), row.usable) << row.key;
  }
  const std::map<std::string, int> known = {{"123456789", 0x31c3 % slots}, {"foo", 12182}, {"bar", 5061}, {"", 0}};
  for (const auto& [key, slot] : known) EXPECT_EQ(slot_of(key), slot) << key;
  EXPECT_NE(slot_of("\xc3\xa4"), slot_of("\xc3\xb6"));
  EXPECT_NE(slot_of(std::string_view("a\0", 2)), slot_of("a"));
  EXPECT_NE(slot_of(std::string_view("a\0b", 3)), slot_of(std::string_view("a\0c", 3)));
  for (int i = 0; i < 1000; ++i) EXPECT_LT(slot_of("lock/" + std::to_string(i)), slots);
}

const std::vector<std::string> names = {
    "x",       "a}b",    "}",         "}}",        "a{}b{c}",       "{",           "{{",        "{}",
    "{}{}",    "%7D",    "%7B",       "%25",       "%257D",         "%25257D",     "%7d",       "a%25",
    "%2",      "%",      "%%",        "{t}%7B",    "{t}",           "{t}}",        "}{t}",      "x{y}z",
    "{y}",     "a{b",    "b}c",       "{x}:dlq",   "x:dlq",         "}:dlq",       "%7D:dlq",   "a%7Db",
    "a%7Bb",   "%7B%7D", "%7Bt%7D",   "dlock:a}b", "{dlock",        "schön",       "sch}ön",    "\xf0\x9f\x94\x92",
    "{ö}x",    " ",      "a b",       "*",         "orders/42",     "{orders}/42", "a{%7D",     "{%7D}",
    "{a%25}}", "a}%7D",  "{x}",       "{x}:dla",   "{x}:dlf",       "x:dlf",       "{x",        "x}",
    "{}x",     "{{x}}",  "{{x}}:dlq", "{{x}:dlq",  "{dlock:x}:dlf", "dlock:x",     "{dlock:x}",
};
const std::vector<std::string> prefixes = {"dlock:", "",    "{app}:", "{app}", "a{",  "{",
                                           "a/",     "%7D", "}{t}:",  "{{",    "{t}", "a{b"};
constexpr std::array kinds = {LockKind::lock, LockKind::read_write, LockKind::semaphore, LockKind::election};

Options on_a_cluster(const std::string& prefix) {
  Options options;
  options.prefix = prefix;
  options.cluster.emplace();
  return options;
}

// The words of a script that are keys.
std::vector<std::string> keys_in(const Command& command) {
  ReplyReader reader;
  reader.feed(command.bytes());
  const auto words = reader.next();
  std::vector<std::string> keys;
  for (std::size_t i = 1; words && i < words->elements.size(); ++i) keys.push_back(words->elements[i].text);
  return keys;
}

// Calls check(options, name, lock's key, kind) for all of these, with and without a cluster.
template <class Check>
void for_all(const Check& check) {
  for (const std::string& prefix : prefixes) {
    ASSERT_TRUE(has_usable_braces(prefix)) << prefix;
    Options alone;
    alone.prefix = prefix;
    for (const Options& options : {on_a_cluster(prefix), alone}) {
      for (const std::string& name : names) {
        SCOPED_TRACE("prefix \"" + prefix + "\", name \"" + name + '"');
        for (const LockKind kind : kinds) check(options, name, lock_key(options, name, kind), kind);
      }
    }
  }
}

TEST(RedisKeys, EachKind_HasTheDocumentedKeys) {
  struct Row {
    const char* prefix;
    const char* name;
    LockKind kind;
    std::string lock;
    std::string others;  // how the other keys begin
  };
  for (const Row& row : {
           Row{"dlock:", "orders/42", LockKind::lock, "dlock:orders/42", "{dlock:orders/42}:"},
           Row{"dlock:", "{orders}/42", LockKind::lock, "dlock:{orders}/42", "dlock:{orders}/42\037"},
           Row{"", "orders", LockKind::lock, "orders", "{orders}:"},
           // Each kind has a prefix of its own.
           Row{"dlock:", "x", LockKind::read_write, "dlock.rw:x", "{dlock.rw:x}:"},
           Row{"a/", "x", LockKind::semaphore, "a.sem/x", "{a.sem/x}:"},
           Row{"a", "x", LockKind::election, "a.electx", "{a.electx}:"},
           Row{":", "x", LockKind::election, ".elect:x", "{.elect:x}:"},
           Row{"", "x", LockKind::election, "x", "{x}:"},  // the user keeps kinds apart
       }) {
    const Keys keys = keys_of(row.prefix, row.name, row.kind);
    EXPECT_EQ(keys.lock, row.lock);
    EXPECT_EQ(keys.queue, row.others + "dlq");
    EXPECT_EQ(keys.alive, row.others + "dla");
    EXPECT_EQ(keys.fence, row.others + "dlf");
  }
}

// Two locks that shared a key would exclude each other, or destroy each other's tokens.
// Hazard: H29, H30 undeclared keys, hash tags: the layout of keys
TEST(RedisKeys, DifferentNames_ShareNoKey) {
  std::map<std::string, std::string> owner_of;
  for_all([&](const Options& options, const std::string& name, const std::string& lock, LockKind kind) {
    if (kind != LockKind::lock || is_reserved(options.prefix, name)) return;
    if (name == names.front()) owner_of.clear();
    for (const std::string& key : keys_in(with_keys(lock, {Key::lock, Key::queue, Key::alive, Key::fence}))) {
      const auto [found, fresh] = owner_of.emplace(key, name);
      EXPECT_TRUE(fresh) << name << " and " << found->second << " share " << key;
    }
  });
}

TEST(RedisKeys, NoPrefix_ReservesNames) {
  EXPECT_TRUE(is_reserved("", "{x}:dlq"));
  EXPECT_TRUE(is_reserved("", "{x}:dla"));
  EXPECT_TRUE(is_reserved("", "{x}:dlf"));
  EXPECT_FALSE(is_reserved("", "x:dlf"));
  EXPECT_FALSE(is_reserved("", "{}:dlf"));
  EXPECT_FALSE(is_reserved("", "{{t}x}:dlf")) << "those of a name with a tag are others";
  for (const std::string& name : names) EXPECT_FALSE(is_reserved("dlock:", name)) << name;
}

// Except, without a cluster, names with a closing brace but no tag: nothing can be put beside those.
// Hazard: H29, H30 undeclared keys, hash tags: the layout of keys
TEST(RedisKeys, OneLock_IsInOneHashSlot) {
  for_all([](const Options& options, const std::string& name, const std::string& lock, LockKind) {
    const auto keys = keys_in(with_keys(lock, {Key::lock, Key::queue, Key::alive, Key::fence}));
    ASSERT_EQ(keys.size(), 4U);
    EXPECT_EQ(keys.front(), lock);
    const bool promised = options.cluster || name.find('}') == std::string::npos || has_hash_tag(lock);
    for (const std::string& key : keys) EXPECT_TRUE(!promised || slot_of(key) == slot_of(lock)) << key;
    if (!options.cluster) return;
    for (const std::string& channel : {client_channel(options, "client", lock), lock_channel(options, lock)}) {
      EXPECT_EQ(slot_of(channel), slot_of(lock)) << channel;
    }
  });
}

TEST(RedisKeys, Key_LeadsBackToTheLock) {
  for_all([](const Options& options, const std::string& name, const std::string& lock, LockKind kind) {
    const std::string prefix = prefix_of(options.prefix, kind);
    ASSERT_TRUE(lock.starts_with(prefix)) << lock;
    EXPECT_EQ(name_in(options, lock.substr(prefix.size())), name) << lock;
    const auto keys = keys_in(with_keys(lock, {Key::fence, Key::queue, Key::alive}));
    EXPECT_EQ(lock_of_fence_key(keys.at(0)), lock);
    EXPECT_EQ(lock_of_fence_key(keys.at(1)), std::nullopt);
    for (const std::string& key : keys) EXPECT_TRUE(is_derived_key(key)) << key;
    if (options.prefix == "dlock:") {
      EXPECT_FALSE(is_derived_key(lock)) << lock;
    }
  });
}

TEST(RedisClusterKeys, NameWithBraces_IsEncodedWhereNeeded) {
  for (const auto& [prefix, name, key] : {std::tuple("dlock:", "orders/42", "dlock:orders/42"),
                                          {"dlock:", "{orders}/42", "dlock:{orders}/42"},
                                          {"dlock:", "100%", "dlock:100%"},
                                          {"dlock:", "a{b", "dlock:a{b"},
                                          {"dlock:", "a}b", "dlock:a%7Db"},
                                          {"dlock:", "a{}b{c}", "dlock:a%7B%7Db%7Bc%7D"},
                                          {"dlock:", "a%7Db", "dlock:a%257Db"},
                                          {"dlock:", "{t}%7B", "dlock:{t}%257B"},
                                          {"{app}:", "a}b", "{app}:a}b"}}) {
    EXPECT_EQ(lock_key(on_a_cluster(prefix), name, LockKind::lock), key);
  }
}

// Other lockers know these keys.
TEST(RedisClusterKeys, NoCluster_NothingIsEncoded) {
  for (const std::string& name : names) {
    Options options;
    EXPECT_EQ(lock_key(options, name, LockKind::lock), "dlock:" + name);
    EXPECT_EQ(name_in(options, name), name);
    options.prefix = "a{";
    EXPECT_EQ(lock_key(options, name, LockKind::lock), "a{" + name);
    EXPECT_EQ(client_channel(options, "client", "a{" + name), client_channel("client"));
  }
}

TEST(RedisClusterKeys, EachClient_HasItsOwnChannel) {
  const Options options = on_a_cluster("dlock:");
  EXPECT_NE(client_channel(options, "one", "dlock:x"), client_channel(options, "two", "dlock:x"));
  EXPECT_NE(client_channel(options, "one", "dlock:x"), lock_channel(options, "dlock:x"));
  EXPECT_NE(client_channel(options, "one", "dlock:x"), client_channel(options, "one", "dlock:y"));
  const auto [command, clients, lock] = publish_arguments(options, "dlock:x");
  EXPECT_EQ(command, "SPUBLISH");
  EXPECT_EQ(clients + "one", client_channel(options, "one", "dlock:x"));
  EXPECT_EQ(lock, lock_channel(options, "dlock:x"));
}

TEST(RedisKeys, Pattern_IsTakenLiterally) {
  EXPECT_EQ(escape_pattern("dlock:"), "dlock:");
  EXPECT_EQ(escape_pattern("a*b?[c]\\"), "a\\*b\\?\\[c\\]\\\\");
}

TEST(RedisValues, Value_NamesTheClientAndTheOwner) {
  const OwnerId owner(1, 2);
  const std::string value = value_of("client", owner);
  EXPECT_EQ(value, "client:" + owner.to_string());
  EXPECT_EQ(owner_in(value, "client"), owner);
  EXPECT_EQ(owner_in(value, "clien"), std::nullopt);
  EXPECT_EQ(owner_in(value, "other"), std::nullopt);
  EXPECT_EQ(owner_in("client:", "client"), std::nullopt);
  EXPECT_TRUE(is_value(value_of(owner.to_string(), owner)));
  for (const std::string& other : {value, owner.to_string(), owner.to_string() + ":x", std::string()}) {
    EXPECT_FALSE(is_value(other)) << other;
  }
  EXPECT_EQ(owner_in("client", "client"), std::nullopt);
  EXPECT_EQ(owner_in(value + "0", "client"), std::nullopt);
}

TEST(RedisWakeUps, Message_IsAGrantOrATimeToCheck) {
  const OwnerId owner(1, 2);
  const std::string value = value_of("client", owner);
  const auto grant = wake_up_in(value, "client");
  ASSERT_TRUE(grant);
  EXPECT_EQ(grant->owner, owner);
  EXPECT_EQ(grant->free_in, std::nullopt);
  const auto check = wake_up_in(value + " 86400000", "client");
  ASSERT_TRUE(check);
  EXPECT_EQ(check->owner, owner);
  EXPECT_EQ(check->free_in, std::chrono::hours(24));
  EXPECT_EQ(owner_in(value + " 86400000", "client"), std::nullopt) << "older clients must not take it for a grant";
  for (const std::string rest : {" ", " x", " -1", " 1x", " 99999999999", " 1 2"}) {
    EXPECT_FALSE(wake_up_in(value + rest, "client")) << rest;
  }
  EXPECT_FALSE(wake_up_in(value, "other"));
}

// In bytes '|' is the end of a line.
std::string node_in_bytes(const std::string& name, std::int64_t port) {
  return "*4|" + bulk(name) + number(port) + "$6|its id|*0|";
}
Result<std::vector<SlotRange>> slots_in(const std::string& bytes) {
  return read_slots(parsed(bytes), {.name = "asked", .port = 6379});
}

// Hazard: H33 a cluster's redirections, moving slots, pushes
TEST(RedisSlotMap, Reply_NamesTheMasterOfEachRange) {
  const auto map = slots_in("*3|*5|:0|:8191|" + node_in_bytes("one", 7000) + node_in_bytes("two", 7001) +
                            node_in_bytes("three", 7002) + "*3|:8192|:16382|" + node_in_bytes("::1", 65535) +
                            "*3|:16383|:16383|" + node_in_bytes("", 1));
  ASSERT_TRUE(map.ok());
  std::string text;
  for (const SlotRange& each : map.value()) {
    text += std::to_string(each.first) + "-" + std::to_string(each.last) + " " + each.master.to_string() + " ";
  }
  EXPECT_EQ(text, "0-8191 one:7000 8192-16382 [::1]:65535 16383-16383 asked:1 ");
  EXPECT_TRUE(slots_in("*0|").value().empty());
  for (const std::string name : {"$0||", "$1|?|", "$-1|"}) {
    const auto range = slots_in("*1|*3|:0|:1|*2|" + name + ":7000|");
    ASSERT_TRUE(range.ok()) << name;
    EXPECT_EQ(range.value().front().master.to_string(), "asked:7000") << name << " is the node that was asked";
  }
}

TEST(RedisSlotMap, SenselessReply_IsRefused) {
  const std::string good = node_in_bytes("one", 7000);
  const std::string at = "*1|*3|:0|:1|";
  std::vector<std::string> maps = {"*2|*3|:0|:0|" + good + "$1|x|",
                                   "*2|*3|:0|:16383|" + good + "*3|:0|:0|" + good};  // more slots than there are
  for (const char* text : {"+OK|", ":1|", "$-1|", "$2|hi|", "*1|:1|", "*1|*2|:0|:1|", "*1|*1|:0|", "*1|*0|"}) {
    maps.emplace_back(text);
  }
  for (const char* range :
       {":0|:16384|", ":16384|:16384|", ":-1|:1|", ":65536|:65536|", ":2|:1|", "$1|0|:1|", ":0|$1|1|"}) {
    maps.push_back("*1|*3|" + std::string(range) + good);
  }
  for (const char* node : {"$3|one|", "*0|", "*1|$3|one|", "*2|:1|:7000|", "*2|$3|one|$4|7000|"})
    maps.push_back(at + node);
  for (const int port : {0, -1, 65536}) maps.push_back(at + node_in_bytes("one", port));
  for (const std::string& name : {"o ne"s, "one,two"s, "/tmp/socket"s, "one\r\n"s, "\x1b[2J"s, "one\0"s}) {
    maps.push_back(at + node_in_bytes(name, 7000));
  }
  for (const std::string& bytes : maps) {
    const auto map = slots_in(bytes);
    ASSERT_FALSE(map.ok()) << bytes;
    EXPECT_EQ(map.failure().code, errc::protocol) << bytes;
    const bool names_the_node = map.failure().detail.find("asked:6379") != std::string::npos;
    EXPECT_TRUE(names_the_node || !bytes.starts_with('*')) << bytes;
  }
  EXPECT_EQ(slots_in("-ERR This instance has cluster support disabled|").failure().code, errc::unsupported);
}

}  // namespace
}  // namespace dlock::redis
