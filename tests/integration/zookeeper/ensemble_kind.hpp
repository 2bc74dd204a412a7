// ZooKeeper as the tests of ensembles have it.
#pragma once

#include "zookeeper/zookeeper_test.hpp"

namespace dlock::test {

struct EnsembleKind {
  using Servers = ZooKeeperEnsemble;
  static constexpr const char* long_session = test::long_session;
  static constexpr const char* short_session = "session_timeout=2s";
  static constexpr auto short_time = 2s;
  static ClientOptions options() { return {.response_timeout = 10s, .connect_timeout = 10s}; }
  static void clear(const Servers& servers) { Tree(servers.addresses()).remove_all(); }
  static std::size_t residue(const Servers& servers, const std::string& name) {
    return Tree(servers.addresses()).residue(name);
  }
};

}  // namespace dlock::test
