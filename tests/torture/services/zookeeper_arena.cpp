#include <utility>

#include "arena.hpp"
#include "backends/zookeeper/nodes/node_name.hpp"
#include "tests/support/zookeeper_client.hpp"
#include "tests/support/zookeeper_server.hpp"

namespace dlock::torture {
namespace {

using test::ZooKeeperEnsemble;
using test::ZooKeeperServer;

class ZooKeeperArena : public Arena {
 public:
  explicit ZooKeeperArena(std::string strategy) : strategy_(std::move(strategy)) {}

  [[nodiscard]] std::string url(const std::vector<std::uint16_t>& ports) const override {
    return "zookeeper://" + addresses_of(ports) + "/?strategy=" + strategy_ +
           "&session_timeout=1s&response_timeout=500ms&connect_timeout=1s";
  }
  [[nodiscard]] std::vector<std::string> leftovers(LockKind lock_kind, const std::vector<std::string>& locks) override {
    test::ZooKeeperClient client(addresses_of(ports()));
    std::vector<std::string> found;
    for (const std::string& lock : locks) {
      const std::string path = zookeeper::lock_path("/dlock", lock, lock_kind);
      const auto node = client.get(path);
      if (!node) continue;
      if (node->owner != 0) found.push_back("the node " + path);
      for (const std::string& child : client.children(path).value_or(std::vector<std::string>())) {
        found.push_back("the node " + path + "/" + child);
      }
    }
    return found;
  }

 private:
  std::string strategy_;
};

class StandaloneArena final : public ZooKeeperArena {
 public:
  using ZooKeeperArena::ZooKeeperArena;
  [[nodiscard]] std::vector<std::uint16_t> ports() const override { return {server_.port()}; }
  [[nodiscard]] std::vector<Fault> faults() override { return faults_of_server(server_); }

 private:
  ZooKeeperServer server_;
};

class EnsembleArena final : public ZooKeeperArena {
 public:
  using ZooKeeperArena::ZooKeeperArena;
  [[nodiscard]] std::vector<std::uint16_t> ports() const override { return ensemble_.ports(); }
  [[nodiscard]] std::vector<Fault> faults() override { return faults_of_ensemble(ensemble_); }

 private:
  ZooKeeperEnsemble ensemble_;
};

}  // namespace

std::vector<ArenaKind> zookeeper_arenas() {
  const auto sequential = [] { return std::make_unique<StandaloneArena>("sequential"); };
  return {{"zookeeper_sequential", sequential},
          read_write("zookeeper_read_write", sequential),
          semaphore("zookeeper_semaphore", sequential),
          {"zookeeper_herd", [] { return std::make_unique<StandaloneArena>("sequential-herd"); }},
          {"zookeeper_ephemeral", [] { return std::make_unique<StandaloneArena>("ephemeral"); }},
          {"zookeeper_ensemble", [] { return std::make_unique<EnsembleArena>("sequential"); }}};
}

}  // namespace dlock::torture
