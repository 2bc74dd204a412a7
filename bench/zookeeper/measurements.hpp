// The benchmarks of the ZooKeeper backend. Each prints its figures as it goes; floor and dlock alternate within one
// run, so that their ratio does not depend on what else the machine is doing.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "tests/support/zookeeper_server.hpp"

namespace bench {

struct Plan {
  std::chrono::milliseconds round{1000};  // of one measurement
  int rounds = 5;                         // how often it is repeated
};

// What is measured: a standalone server, or an ensemble.
struct Service {
  std::string addresses;
  std::vector<const dlock::test::ZooKeeperServer*> servers;

  [[nodiscard]] std::string url(const std::string& strategy) const {
    return "zookeeper://" + addresses + "?strategy=" + strategy;
  }
  // The sum of a figure of mntr over all servers.
  [[nodiscard]] double figure(const std::string& name) const;
};

// Uncontended acquire and release on one thread: percentiles and their ratio to the floor.
void measure_one_thread(const Service& service, const Plan& plan);
// The same on 64 threads with names of their own: throughput.
void measure_throughput(const Service& service, const Plan& plan);
// One name and many waiters: what a hand-over costs the servers, how many there are in a second and how long one takes.
void measure_herd(const Service& service, const Plan& plan);

}  // namespace bench
