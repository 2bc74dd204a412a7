// Three MariaDB servers for a test that form a Galera cluster. Each is a MysqlServer with a copy of the data of one
// that has run before, so that a node that joins needs only the changes that it lacks.
//
//   if (!GaleraCluster::is_installed()) GTEST_SKIP() << GaleraCluster::not_installed;
//   GaleraCluster cluster;
//   cluster.server(2).kill();
//   cluster.start();                              // it fetches the changes of that time
#pragma once

#include <string>
#include <vector>

#include "tests/support/ensemble.hpp"
#include "tests/support/mysql_server.hpp"

namespace dlock::test {

class GaleraNode final : public MysqlServer {
 public:
  explicit GaleraNode(const Membership& membership);

  // It has all changes, and is in a component with a majority.
  [[nodiscard]] bool serves() const override { return status("ready") == "ON"; }
  // Blocks the network between this node and the others, both ways. Waits until it does not serve.
  void isolate(bool on);
  // Every serving node may write; the "leader" is the first one in the order of the cluster.
  [[nodiscard]] bool leads() const { return serves() && status("local_index") == "0"; }
  // SHOW STATUS LIKE 'wsrep_<name>'; empty: it does not answer.
  [[nodiscard]] std::string status(const std::string& name) const;

 private:
  [[nodiscard]] std::vector<std::string> configure() override;

  const Membership membership_;
  bool launched_ = false;
};

class GaleraCluster final : public Ensemble<GaleraNode> {
 public:
  static constexpr const char* not_installed = "Debian's package galera-4 is not installed";

  [[nodiscard]] static bool is_installed();
  // Waits until all nodes serve.
  GaleraCluster();
};

}  // namespace dlock::test
