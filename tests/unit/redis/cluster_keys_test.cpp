// On a cluster: all that a lock needs is in one slot, whatever its name is, and names stay apart.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "backends/redis/cluster/hash_slot.hpp"
#include "backends/redis/connection/reply.hpp"
#include "backends/redis/requests/keys.hpp"

namespace dlock::redis {

namespace {

const std::vector<std::string> hostile_names = {
    "x",       "a}b",    "}",       "}}",        "a{}b{c}",   "{",           "{{",      "{}",
    "{}{}",    "%7D",    "%7B",     "%25",       "%257D",     "%25257D",     "%7d",     "a%25",
    "%2",      "%",      "%%",      "{t}%7B",    "{t}",       "{t}}",        "}{t}",    "x{y}z",
    "{y}",     "a{b",    "b}c",     "{x}:dlq",   "x:dlq",     "}:dlq",       "%7D:dlq", "a%7Db",
    "a%7Bb",   "%7B%7D", "%7Bt%7D", "dlock:a}b", "{dlock",    "schön",       "sch}ön",  "\xf0\x9f\x94\x92",
    "{ö}x",    " ",      "a b",     "*",         "orders/42", "{orders}/42", "a{%7D",   "{%7D}",
    "{a%25}}", "a}%7D",
};
const std::vector<std::string> prefixes = {"dlock:", "", "{app}:", "{app}", "a{", "{", "a/", "%7D", "}{t}:"};
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

// Calls check(options, name, space) for all of these.
template <class Check>
void for_all(const Check& check) {
  for (const std::string& prefix : prefixes) {
    ASSERT_TRUE(has_usable_braces(prefix)) << prefix;
    for (const std::string& name : hostile_names) {
      SCOPED_TRACE("prefix \"" + prefix + "\", name \"" + name + '"');
      for (const LockKind kind : kinds) check(on_a_cluster(prefix), name, kind);
    }
  }
}

TEST(RedisClusterKeys, OfOneLockAreInOneSlotWithItsChannels) {
  for_all([](const Options& options, const std::string& name, LockKind kind) {
    const std::string lock = lock_key(options, name, kind);
    const auto keys = keys_in(with_keys(lock, {Key::lock, Key::queue, Key::alive, Key::fence}));
    ASSERT_EQ(keys.size(), 4U);
    EXPECT_EQ(keys.front(), lock);
    for (const std::string& key : keys) EXPECT_EQ(slot_of(key), slot_of(lock)) << key;
    for (const std::string& channel : {client_channel(options, "client", lock), lock_channel(options, lock)}) {
      EXPECT_EQ(slot_of(channel), slot_of(lock)) << channel;
    }
  });
}

TEST(RedisClusterKeys, LeadBackToTheName) {
  for_all([](const Options& options, const std::string& name, LockKind kind) {
    const std::string lock = lock_key(options, name, kind);
    const std::string prefix = prefix_of(options.prefix, kind);
    ASSERT_TRUE(lock.starts_with(prefix)) << lock;
    EXPECT_EQ(name_in(options, lock.substr(prefix.size())), name) << lock;
  });
}

TEST(RedisClusterKeys, LeadBackToTheLock) {
  for_all([](const Options& options, const std::string& name, LockKind kind) {
    const std::string lock = lock_key(options, name, kind);
    const auto keys = keys_in(with_keys(lock, {Key::fence, Key::queue}));
    EXPECT_EQ(lock_of_fence_key(keys.at(0)), lock);
    EXPECT_EQ(lock_of_fence_key(keys.at(1)), std::nullopt);
  });
}

// Two locks that shared a key would exclude each other, or destroy each other's tokens.
TEST(RedisClusterKeys, OfDifferentNamesAreDifferent) {
  for (const std::string& prefix : prefixes) {
    const Options options = on_a_cluster(prefix);
    std::map<std::string, std::string> owner_of;
    for (const std::string& name : hostile_names) {
      if (is_reserved(prefix, name)) continue;
      const std::string lock = lock_key(options, name, LockKind::lock);
      for (const std::string& key : keys_in(with_keys(lock, {Key::lock, Key::queue, Key::alive, Key::fence}))) {
        const auto [found, fresh] = owner_of.emplace(key, name);
        EXPECT_TRUE(fresh) << "prefix \"" << prefix << "\": " << name << " and " << found->second << " share " << key;
      }
    }
  }
}

TEST(RedisClusterKeys, OnlyBracesThatAreInTheWayAndWhatLooksEncodedAreEncoded) {
  const auto key_of = [](const std::string& prefix, const std::string& name) {
    return lock_key(on_a_cluster(prefix), name, LockKind::lock);
  };
  EXPECT_EQ(key_of("dlock:", "orders/42"), "dlock:orders/42");
  EXPECT_EQ(key_of("dlock:", "{orders}/42"), "dlock:{orders}/42");
  EXPECT_EQ(key_of("dlock:", "100%"), "dlock:100%");
  EXPECT_EQ(key_of("dlock:", "a{b"), "dlock:a{b");
  EXPECT_EQ(key_of("dlock:", "a}b"), "dlock:a%7Db");
  EXPECT_EQ(key_of("dlock:", "a{}b{c}"), "dlock:a%7B%7Db%7Bc%7D");
  EXPECT_EQ(key_of("dlock:", "a%7Db"), "dlock:a%257Db");
  EXPECT_EQ(key_of("dlock:", "{t}%7B"), "dlock:{t}%257B");
  EXPECT_EQ(key_of("{app}:", "a}b"), "{app}:a}b");
}

// Other lockers know these keys.
TEST(RedisClusterKeys, WithoutAClusterNothingIsEncoded) {
  for (const std::string& name : hostile_names) {
    Options options;
    EXPECT_EQ(lock_key(options, name, LockKind::lock), "dlock:" + name);
    EXPECT_EQ(name_in(options, name), name);
    options.prefix = "a{";
    EXPECT_EQ(lock_key(options, name, LockKind::lock), "a{" + name);
    EXPECT_EQ(client_channel(options, "client", "a{" + name), client_channel("client"));
  }
}

TEST(RedisClusterKeys, EachClientHasAChannelOfItsOwn) {
  const Options options = on_a_cluster("dlock:");
  EXPECT_NE(client_channel(options, "one", "dlock:x"), client_channel(options, "two", "dlock:x"));
  EXPECT_NE(client_channel(options, "one", "dlock:x"), lock_channel(options, "dlock:x"));
  EXPECT_NE(client_channel(options, "one", "dlock:x"), client_channel(options, "one", "dlock:y"));
}

}  // namespace

}  // namespace dlock::redis
