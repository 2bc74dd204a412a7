// The benchmarks of the PostgreSQL backend. Each prints its figures as it goes; floor and dlock alternate within one
// run, so that their ratio does not depend on what else the machine is doing.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "tests/support/postgres_server.hpp"

namespace bench {

struct Plan {
  std::chrono::milliseconds round{500};  // of one measurement
  int rounds = 5;                        // how often it is repeated
  std::vector<std::string> strategies = {"table", "optimistic", "for-update", "advisory"};
};

// A server that waits for the disk, with dlock's tables and room for all the connections of a measurement. Further
// lines are for its configuration file.
[[nodiscard]] dlock::test::PostgresConfig durable_server(std::vector<std::string> lines = {});

// Of a client that may keep so many connections.
[[nodiscard]] std::string url_of(const dlock::test::PostgresServer& server, const std::string& strategy,
                                 std::size_t connections);

// Uncontended acquire and release on one thread: percentiles and their ratio to the floor.
void measure_one_thread(dlock::test::PostgresServer& server, const Plan& plan);
// The same on many threads with names of their own: throughput, against one connection a thread.
void measure_throughput(dlock::test::PostgresServer& server, const Plan& plan);
// One name and many waiters: from a release to the next holder running, and what that writes.
void measure_hand_off(dlock::test::PostgresServer& server, const Plan& plan);
// What a try costs the server that finds the lock busy, and what a lock costs that is free. Starts a server of its own,
// which counts statements.
void measure_busy(const Plan& plan);

}  // namespace bench
