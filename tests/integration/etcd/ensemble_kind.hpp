// etcd as the tests of ensembles have it.
#pragma once

#include "etcd/etcd_test.hpp"

namespace dlock::test {

struct EnsembleKind {
  using Servers = EtcdCluster;
  static constexpr const char* long_session = test::long_session;
  static constexpr const char* short_session = test::short_session;
  static constexpr auto short_time = short_ttl;
  // For so long a client waits for a member that stands still.
  static ClientOptions options() { return {.response_timeout = 2s, .connect_timeout = 6s}; }
  static void clear(const Servers& servers) { Keys(servers.server(0)).remove_all(); }
  static std::size_t residue(const Servers& servers, const std::string& name) {
    return Keys(servers.server(servers.leader())).residue(name);
  }
};

}  // namespace dlock::test
