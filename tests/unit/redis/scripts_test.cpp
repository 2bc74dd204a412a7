#include "backends/redis/requests/scripts.hpp"

#include <gtest/gtest.h>

#include <string>

namespace dlock::redis {

namespace {

const Script* const scripts[] = {&acquire_script(),
                                 &renew_script(),
                                 &release_script(),
                                 &inspect_script(),
                                 &forget_script(),
                                 &acquire_script(LockKind::election),
                                 &acquire_script(LockKind::semaphore),
                                 &renew_script(LockKind::semaphore),
                                 &release_script(LockKind::semaphore),
                                 &inspect_script(LockKind::semaphore),
                                 &forget_script(LockKind::semaphore),
                                 &acquire_script(LockKind::lock, true),
                                 &release_script(LockKind::lock, true),
                                 &acquire_script(LockKind::election, true),
                                 &acquire_script(LockKind::semaphore, true),
                                 &release_script(LockKind::semaphore, true)};

// What was found to go wrong, and must not come back.
TEST(RedisScripts, UseNothingThatEndangersLocks) {
  for (const Script* script : scripts) {
    for (const char* forbidden :
         {"SETNX", "KEYS[5]", "os.time", "redis.call('PUBLISH'", "redis.call('SPUBLISH'", "FLUSH", "math.random"}) {
      EXPECT_EQ(script->text.find(forbidden), std::string_view::npos) << script->name << ": " << forbidden;
    }
  }
}

TEST(RedisScripts, AreKnownByDifferentHashes) {
  for (const Script* one : scripts) {
    EXPECT_EQ(one->sha1.size(), 40U);
    for (const Script* other : scripts) EXPECT_EQ(one->sha1 == other->sha1, one == other);
  }
}

}  // namespace

}  // namespace dlock::redis
