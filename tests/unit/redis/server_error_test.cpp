#include "backends/redis/connection/server_error.hpp"

#include <gtest/gtest.h>

namespace dlock::redis {

namespace {

struct Case {
  const char* text;
  ServerError error;
  errc code;
};

// As Redis 7.0 words them, unless noted.
const Case cases[] = {
    {"NOSCRIPT No matching script. Please use EVAL.", ServerError::no_script, errc::unavailable},
    {"LOADING Redis is loading the dataset in memory", ServerError::loading, errc::unavailable},
    {"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.", ServerError::busy,
     errc::unavailable},
    {"READONLY You can't write against a read only replica.", ServerError::read_only, errc::unavailable},
    {"READONLY You can't write against a read only replica. script: 5a1c, on @user_script:4.", ServerError::read_only,
     errc::unavailable},
    // 6.2
    {"ERR Error running script (call to f_5a1c): @user_script:4: -READONLY You can't write against a read only "
     "replica.",
     ServerError::read_only, errc::unavailable},
    {"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", ServerError::master_down,
     errc::unavailable},
    {"NOREPLICAS Not enough good replicas to write.", ServerError::no_replicas, errc::unavailable},
    {"OOM command not allowed when used memory > 'maxmemory'.", ServerError::out_of_memory, errc::unavailable},
    // 6.2
    {"ERR Error running script (call to f_1): @user_script:1: @user_script: 1: -OOM command not allowed when used "
     "memory > 'maxmemory'.",
     ServerError::out_of_memory, errc::unavailable},
    {"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
     ServerError::misconfigured, errc::unavailable},
    {"ERR max number of clients reached", ServerError::too_many_clients, errc::unavailable},
    {"ERR max number of clients + cluster connections reached", ServerError::too_many_clients, errc::unavailable},
    {"UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)",
     ServerError::interrupted, errc::unavailable},
    {"ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if a replica is configured "
     "to be writable (which is not the default) writes to replicas are just local and are not propagated.",
     ServerError::read_only, errc::unavailable},
    // Valkey
    {"REDIRECT 127.0.0.1:6380", ServerError::read_only, errc::unavailable},
    {"MISCONF Errors writing to the AOF file: No space left on device", ServerError::misconfigured, errc::unavailable},
    {"BUSY Valkey is busy running a module command.", ServerError::busy, errc::unavailable},
    {"NOAUTH Authentication required.", ServerError::no_auth, errc::access_denied},
    {"WRONGPASS invalid username-password pair or user is disabled.", ServerError::wrong_password, errc::access_denied},
    {"ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration "
     "is correct?",
     ServerError::wrong_password, errc::access_denied},
    // 5.0
    {"ERR invalid password", ServerError::wrong_password, errc::access_denied},
    {"NOPERM this user has no permissions to run the 'evalsha' command", ServerError::no_permission,
     errc::access_denied},
    {"ERR The user executing the script can't run this command or subcommand script: db8d, on @user_script:1.",
     ServerError::no_permission, errc::access_denied},
    // 7.2
    {"ERR ACL failure in script: User locker has no permissions to run the 'set' command script: db8d, on "
     "@user_script:1.",
     ServerError::no_permission, errc::access_denied},
    {"DENIED Redis is running in protected mode because protected mode is enabled", ServerError::no_permission,
     errc::access_denied},
    {"WRONGTYPE Operation against a key holding the wrong kind of value script: 8f2, on @user_script:24.",
     ServerError::wrong_type, errc::protocol},
    {"MOVED 3999 127.0.0.1:6381", ServerError::moved, errc::unsupported},
    {"ASK 3999 127.0.0.1:6381", ServerError::ask, errc::unsupported},
    {"CLUSTERDOWN Hash slot not served", ServerError::cluster_down, errc::unsupported},
    {"CROSSSLOT Keys in request don't hash to the same slot", ServerError::cluster, errc::unsupported},
    {"TRYAGAIN Multiple keys request during rehashing of slot", ServerError::try_again, errc::unsupported},
    {"ERR SELECT is not allowed in cluster mode", ServerError::cluster, errc::unsupported},
    {"ERR This instance has cluster support disabled", ServerError::no_cluster, errc::unsupported},
    {"ERR DB index is out of range", ServerError::no_such_db, errc::invalid_argument},
    {"ERR unknown command 'EVALSHA', with args beginning with: 'x' ", ServerError::unknown_command, errc::unsupported},
    {"ERR something new", ServerError::other, errc::ambiguous},
    {"ERR Script killed by user with SCRIPT KILL.", ServerError::other, errc::ambiguous},
    {"BUSYGROUP Consumer Group name already exists", ServerError::other, errc::ambiguous},
    {"", ServerError::other, errc::ambiguous},
};

TEST(ServerError, IsToldByItsCodeWhereverThatStands) {
  for (const Case& each : cases) {
    EXPECT_EQ(classify(each.text), each.error) << each.text;
    EXPECT_EQ(to_failure(each.text).code, each.code) << each.text;
  }
}

TEST(ServerError, SaysWhatToDoAboutAClusterNode) {
  EXPECT_NE(to_failure("MOVED 3999 127.0.0.1:6381").detail.find("redis-cluster://"), std::string::npos);
}

TEST(ServerError, SaysWhatASentinelIsAndIsNot) {
  for (const char* command : {"'EVAL'", "'EVALSHA'", "'SCAN'", "'CLUSTER'", "`EVAL`"}) {
    const std::string text = std::string("ERR unknown command ") + command + ", with args beginning with: 'x' ";
    EXPECT_EQ(to_failure(text).detail, "perhaps this is a sentinel; use redis-sentinel://: " + text);
  }
  EXPECT_TRUE(to_failure("ERR unknown command 'SENTINEL'").detail.starts_with("this server is not a sentinel: "));
  for (const char* other : {"ERR unknown command 'SSUBSCRIBE'", "ERR unknown command", "ERR unknown command '"}) {
    EXPECT_EQ(to_failure(other).detail, std::string("Redis: ") + other);
  }
}

TEST(ServerError, IsShownWithoutControlCharactersAndNotAtAnyLength) {
  const std::string detail = to_failure("ERR \x1b[2J" + std::string(10'000, 'x')).detail;
  EXPECT_EQ(detail.find('\x1b'), std::string::npos);
  EXPECT_LT(detail.size(), 500U);
}

TEST(ServerError, OnlyAReplicaSuggestsAnotherServer) {
  for (const Case& each : cases) {
    const bool replica = each.error == ServerError::read_only || each.error == ServerError::master_down;
    EXPECT_EQ(suggests_other_server(classify(each.text)), replica) << each.text;
  }
}

}  // namespace

}  // namespace dlock::redis
