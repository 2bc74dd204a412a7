#include "backends/redis/requests/keys.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "backends/redis/cluster/hash_slot.hpp"

namespace dlock::redis {

namespace {

const std::vector<std::string> names = {
    "x",  "{x}",           "{x}:dlq", "{x}:dla",   "{x}:dlf", "x:dlq",     "x:dlf",    "{x",
    "x}", "{}x",           "a}b",     "a{}b{c}",   "{{x}}",   "{{x}}:dlq", "{{x}:dlq", "}",
    "{",  "{dlock:x}:dlf", "dlock:x", "{dlock:x}", "*",       "a b",
};

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
  for (const std::string prefix : {"dlock:", "", "{", "{{", "{t}", "a{b"}) {
    std::map<std::string, std::string> owner_of;
    for (const std::string& name : names) {
      if (is_reserved(prefix, name)) continue;
      const Keys keys = keys_of(prefix, name);
      for (const std::string& key : {keys.lock, keys.queue, keys.alive, keys.fence}) {
        const auto [found, fresh] = owner_of.emplace(key, name);
        EXPECT_TRUE(fresh) << "prefix \"" << prefix << "\": " << name << " and " << found->second << " share " << key;
      }
    }
  }
}

TEST(RedisKeys, ReserveNamesOnlyWhereThereIsNoPrefix) {
  EXPECT_TRUE(is_reserved("", "{x}:dlq"));
  EXPECT_TRUE(is_reserved("", "{x}:dla"));
  EXPECT_TRUE(is_reserved("", "{x}:dlf"));
  EXPECT_FALSE(is_reserved("", "x:dlf"));
  EXPECT_FALSE(is_reserved("", "{}:dlf"));
  for (const std::string& name : names) EXPECT_FALSE(is_reserved("dlock:", name)) << name;
}

// Except names with a closing brace but no tag: nothing can be put beside those.
TEST(RedisKeys, OfOneLockAreInOneHashSlot) {
  for (const std::string& name : names) {
    const Keys keys = keys_of("dlock:", name);
    const bool promised = name.find('}') == std::string::npos || has_hash_tag(keys.lock);
    for (const std::string& key : {keys.queue, keys.alive, keys.fence}) {
      EXPECT_EQ(hashed_part(key) == hashed_part(keys.lock), promised) << name;
    }
  }
}

TEST(RedisKeys, LeadBackToTheLock) {
  for (const std::string& name : names) {
    const Keys keys = keys_of("dlock:", name);
    EXPECT_EQ(lock_of_fence_key(keys.fence), keys.lock) << name;
    EXPECT_EQ(lock_of_fence_key(keys.queue), std::nullopt) << name;
    for (const std::string& key : {keys.queue, keys.alive, keys.fence}) EXPECT_TRUE(is_derived_key(key)) << key;
    EXPECT_FALSE(is_derived_key(keys.lock)) << name;
  }
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
