#include "bench/targets/redis/info.hpp"

#include <gtest/gtest.h>

namespace dlock::bench {
namespace {

constexpr const char* commandstats =
    "# Commandstats\r\n"
    "cmdstat_set:calls=7,usec=21,usec_per_call=3.00,rejected_calls=0,failed_calls=0\r\n"
    "cmdstat_evalsha:calls=40,usec=400,usec_per_call=10.00,rejected_calls=0,failed_calls=0\r\n"
    "cmdstat_eval:calls=2,usec=20,usec_per_call=10.00,rejected_calls=0,failed_calls=0\r\n"
    "cmdstat_client|setname:calls=1,usec=1,usec_per_call=1.00,rejected_calls=0,failed_calls=0\r\n"
    "cmdstat_publish:calls=5,usec=5,usec_per_call=1.00,rejected_calls=0,failed_calls=0\r\n"
    "cmdstat_info:calls=9,usec=5,usec_per_call=1.00,rejected_calls=0,failed_calls=0\r\n";

TEST(BenchRedisInfo, AFieldIsFoundByItsWholeName) {
  const char* info = "# Server\r\nmy_redis_version:1\r\nredis_version:7.0.15\r\nredis_version_next:8\r\n";
  EXPECT_EQ(info_field(info, "redis_version"), "7.0.15");
  EXPECT_EQ(info_field(info, "redis"), "");
  EXPECT_EQ(info_field(info, "port"), "");
}

TEST(BenchRedisInfo, TheLastLineNeedNotEnd) {
  EXPECT_EQ(info_field("a:1\r\nb:2", "b"), "2");
}

TEST(BenchRedisInfo, CallsAreReadCommandByCommand) {
  EXPECT_EQ(command_calls(commandstats, "evalsha"), 40);
  EXPECT_EQ(command_calls(commandstats, "eval"), 2);
  EXPECT_EQ(command_calls(commandstats, "get"), 0);
}

TEST(BenchRedisInfo, WhatScriptsCallIsNoRequestOfAClient) {
  EXPECT_EQ(client_requests(commandstats), 40 + 2 + 1);
}

TEST(BenchRedisInfo, WhatMakesNoSenseCountsNothing) {
  EXPECT_EQ(command_calls("cmdstat_eval:calls=many\r\n", "eval"), 0);
  EXPECT_EQ(command_calls("cmdstat_eval:usec=1\r\n", "eval"), 0);
  EXPECT_EQ(client_requests(""), 0);
}

}  // namespace
}  // namespace dlock::bench
