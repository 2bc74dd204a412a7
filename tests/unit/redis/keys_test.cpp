// The keys of a lock, and what stands in them and in messages. On a cluster all that a lock needs is in one slot,
// whatever its name is.
#include "backends/redis/requests/keys.hpp"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <string>
#include <vector>

#include "backends/redis/connection/reply.hpp"
#include "backends/redis/hash_slot.hpp"

namespace dlock::redis {

namespace {

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

TEST(RedisKeys, AreAsPromised) {
  const Keys plain = keys_of("dlock:", "orders/42");
  EXPECT_EQ(plain.lock, "dlock:orders/42");
  EXPECT_EQ(plain.queue, "{dlock:orders/42}:dlq");
  EXPECT_EQ(plain.alive, "{dlock:orders/42}:dla");
  EXPECT_EQ(plain.fence, "{dlock:orders/42}:dlf");

  const Keys tagged = keys_of("dlock:", "{orders}/42");
  EXPECT_EQ(tagged.lock, "dlock:{orders}/42");
  EXPECT_EQ(tagged.queue,
            "dlock:{orders}/42\x1f"
            "dlq");

  EXPECT_EQ(keys_of("", "orders").lock, "orders");
  EXPECT_EQ(keys_of("", "orders").fence, "{orders}:dlf");
}

TEST(RedisKeys, OfEachKindHaveAPrefixOfTheirOwn) {
  EXPECT_EQ(lock_key("dlock:", "x", LockKind::read_write), "dlock.rw:x");
  EXPECT_EQ(lock_key("a/", "x", LockKind::semaphore), "a.sem/x");
  EXPECT_EQ(lock_key("a", "x", LockKind::election), "a.electx");
  EXPECT_EQ(lock_key(":", "x", LockKind::election), ".elect:x");
  EXPECT_EQ(lock_key("", "x", LockKind::election), "x") << "the user keeps kinds apart";
  EXPECT_EQ(prefix_of("dlock:", LockKind::lock), "dlock:");
  const Keys keys = keys_of("dlock:", "x", LockKind::semaphore);
  EXPECT_EQ(keys.lock, "dlock.sem:x");
  EXPECT_EQ(keys.fence, "{dlock.sem:x}:dlf");
}

// Two locks that shared a key would exclude each other, or destroy each other's tokens.
TEST(RedisKeys, OfDifferentNamesAreDifferent) {
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

TEST(RedisKeys, ReserveNamesOnlyWhereThereIsNoPrefix) {
  EXPECT_TRUE(is_reserved("", "{x}:dlq"));
  EXPECT_TRUE(is_reserved("", "{x}:dla"));
  EXPECT_TRUE(is_reserved("", "{x}:dlf"));
  EXPECT_FALSE(is_reserved("", "x:dlf"));
  EXPECT_FALSE(is_reserved("", "{}:dlf"));
  for (const std::string& name : names) EXPECT_FALSE(is_reserved("dlock:", name)) << name;
}

// Except, without a cluster, names with a closing brace but no tag: nothing can be put beside those.
TEST(RedisKeys, OfOneLockAreInOneHashSlot) {
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

TEST(RedisKeys, LeadBackToTheLockAndTheName) {
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
  for (const std::string& name : names) {
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
  const auto [command, clients, lock] = publish_arguments(options, "dlock:x");
  EXPECT_EQ(command, "SPUBLISH");
  EXPECT_EQ(clients + "one", client_channel(options, "one", "dlock:x"));
  EXPECT_EQ(lock, lock_channel(options, "dlock:x"));
}

TEST(RedisKeys, PatternsAreTakenLiterally) {
  EXPECT_EQ(escape_pattern("dlock:"), "dlock:");
  EXPECT_EQ(escape_pattern("a*b?[c]\\"), "a\\*b\\?\\[c\\]\\\\");
}

TEST(RedisValues, NameTheClientAndTheOwner) {
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

TEST(RedisWakeUps, AreAGrantOrTheTimeUntilALook) {
  const OwnerId owner(1, 2);
  const std::string value = value_of("client", owner);
  const auto grant = wake_up_in(value, "client");
  ASSERT_TRUE(grant);
  EXPECT_EQ(grant->owner, owner);
  EXPECT_EQ(grant->free_in, std::nullopt);
  const auto look = wake_up_in(value + " 86400000", "client");
  ASSERT_TRUE(look);
  EXPECT_EQ(look->owner, owner);
  EXPECT_EQ(look->free_in, std::chrono::hours(24));
  EXPECT_EQ(owner_in(value + " 86400000", "client"), std::nullopt) << "older clients must not take it for a grant";
  for (const std::string rest : {" ", " x", " -1", " 1x", " 99999999999", " 1 2"}) {
    EXPECT_FALSE(wake_up_in(value + rest, "client")) << rest;
  }
  EXPECT_FALSE(wake_up_in(value, "other"));
}

}  // namespace

}  // namespace dlock::redis
