// The benchmarks of the Redis backend. Each prints its figures as it goes; floor and dlock alternate within one run, so
// that their ratio does not depend on what else the machine is doing.
#pragma once

#include <chrono>

#include "tests/support/redis_server.hpp"

namespace bench {

struct Plan {
  std::chrono::milliseconds round{500};  // of one measurement
  int rounds = 5;                        // how often it is repeated
};

// Uncontended acquire and release on one thread: percentiles and their ratio to the floor.
void measure_one_thread(dlock::test::RedisServer& server, const Plan& plan);
// The same on many threads with names of their own: throughput, against one connection a thread.
void measure_throughput(dlock::test::RedisServer& server, const Plan& plan);
// One name and many waiters: from a release to the next holder running, and what that costs the server.
void measure_hand_off(dlock::test::RedisServer& server, const Plan& plan);

}  // namespace bench
