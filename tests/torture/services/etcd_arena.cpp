#include <chrono>
#include <utility>

#include "arena.hpp"
#include "backends/etcd/locks/keys.hpp"
#include "tests/support/etcd_server.hpp"

namespace dlock::torture {
namespace {

using test::EtcdCluster;
using test::EtcdServer;

class EtcdArena : public Arena {
 public:
  [[nodiscard]] std::string url(const std::vector<std::uint16_t>& ports) const override {
    return "etcd://" + addresses_of(ports) + "?session_ttl=2s&response_timeout=500ms&connect_timeout=1s";
  }
  [[nodiscard]] std::vector<std::string> leftovers(LockKind lock_kind, const std::vector<std::string>& locks) override {
    std::vector<std::string> found;
    for (const std::string& lock : locks) {
      const std::string prefix = etcd::lock_prefix({}, lock_kind, lock);
      for (const std::string& key : one_that_serves().keys(prefix)) found.push_back("the key " + key);
    }
    return found;
  }
  // No session is shorter, so faults are to last longer for somebody else to have the lock by then.
  void adjust(Setup& setup) const override { setup.lease = std::chrono::seconds(2); }

 protected:
  [[nodiscard]] virtual EtcdServer& one_that_serves() = 0;

  // What clients watch from may be gone when they come back.
  [[nodiscard]] Fault history_forgotten() {
    return brief_fault("history forgotten", "server", [this] { one_that_serves().compact(); });
  }
};

class OneMemberArena final : public EtcdArena {
 public:
  [[nodiscard]] std::vector<std::uint16_t> ports() const override { return {server_.port()}; }
  [[nodiscard]] std::vector<Fault> faults() override {
    std::vector<Fault> faults = faults_of_server(server_);
    faults.push_back(history_forgotten());
    return faults;
  }

 private:
  [[nodiscard]] EtcdServer& one_that_serves() override {
    server_.await_serving();
    return server_;
  }

  EtcdServer server_;
};

class MembersArena final : public EtcdArena {
 public:
  [[nodiscard]] std::vector<std::uint16_t> ports() const override { return cluster_.ports(); }
  [[nodiscard]] std::vector<Fault> faults() override {
    std::vector<Fault> faults = faults_of_ensemble(cluster_, Linger::beyond_lease, Opens::while_it_lasts);
    faults.push_back(brief_fault(
        "leader moved", "server", [this] { cluster_.move_leader(cluster_.follower()); }, 2));
    faults.push_back(history_forgotten());
    return faults;
  }
  void adjust(Setup& setup) const override {
    EtcdArena::adjust(setup);
    setup.known_hole = {.rules = {Rule::exclusion},
                        .told_at_once = true,
                        .why = "before 3.4.31 a leader that stood still ends good leases when it wakes"};
  }

 private:
  [[nodiscard]] EtcdServer& one_that_serves() override { return cluster_.server(cluster_.leader()); }

  EtcdCluster cluster_;
};

}  // namespace

std::vector<ArenaKind> etcd_arenas() {
  const auto one = [] { return std::make_unique<OneMemberArena>(); };
  return {{"etcd", one},
          read_write("etcd_read_write", one),
          semaphore("etcd_semaphore", one),
          // Shows: hole etcd-deposed-leader
          {"etcd_cluster", [] { return std::make_unique<MembersArena>(); }}};
}

}  // namespace dlock::torture
