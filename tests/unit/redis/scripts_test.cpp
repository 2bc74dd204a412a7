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
                                 &acquire_script(Space::election),
                                 &acquire_script(Space::semaphore),
                                 &renew_script(Space::semaphore),
                                 &release_script(Space::semaphore),
                                 &inspect_script(Space::semaphore),
                                 &forget_script(Space::semaphore),
                                 &acquire_script(Space::lock, true),
                                 &release_script(Space::lock, true),
                                 &acquire_script(Space::election, true),
                                 &acquire_script(Space::semaphore, true),
                                 &release_script(Space::semaphore, true)};

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
