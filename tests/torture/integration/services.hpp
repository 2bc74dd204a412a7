// The services that the tests of this directory disturb the clients of, each with a lease of two seconds or
// thereabouts.
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "tests/support/servers.hpp"
#include "torture/rig/scratch_directory.hpp"

namespace dlock::torture {

struct Service {
  std::shared_ptr<void> running;  // while this lives
  std::string url;
};

struct ServiceKind {
  std::string name;  // also of the test
  bool renews;       // each lock, one by one
  std::function<Service()> start;

  friend void PrintTo(const ServiceKind& kind, std::ostream* out) { *out << kind.name; }
};

template <class Server>
[[nodiscard]] Service start(const std::string& parameters) {
  const auto server = std::make_shared<Server>();
  return {server, server->url(parameters)};
}

// All that are built here.
[[nodiscard]] inline std::vector<ServiceKind> all_services() {
  std::vector<ServiceKind> all;
#ifdef DLOCK_FAULT_FILE
  all.push_back({"file", false, [] {
                   const auto directory = std::make_shared<rig::ScratchDirectory>();
                   return Service{directory, "file://" + directory->path()};
                 }});
#endif
#if DLOCK_TEST_WITH_REDIS
  all.push_back({"redis", true, [] { return start<test::RedisServer>("lease=2s"); }});
#endif
#if DLOCK_TEST_WITH_POSTGRES
  all.push_back({"postgres_table", true, [] { return start<test::PostgresServer>("lease=2s"); }});
  all.push_back({"postgres_advisory", false, [] { return start<test::PostgresServer>("strategy=advisory&lease=2s"); }});
#endif
#if DLOCK_TEST_WITH_ZOOKEEPER
  all.push_back({"zookeeper", false, [] { return start<test::ZooKeeperServer>("session_timeout=2s"); }});
#endif
#if DLOCK_TEST_WITH_ETCD
  all.push_back({"etcd", false, [] { return start<test::EtcdServer>("session_ttl=2s"); }});
#endif
  return all;
}

}  // namespace dlock::torture
