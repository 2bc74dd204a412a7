// A lock service of a test's own, with all that can be done to it.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/server.hpp"
#include "torture/run/torture.hpp"

namespace dlock::torture {

class Arena {
 public:
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  virtual ~Arena() = default;

  // Of its servers, in the order in which a URL names them. None: there is nothing between it and its clients.
  [[nodiscard]] virtual std::vector<std::uint16_t> ports() const = 0;
  // Which proxies are in front of its servers now, in the same order. They outlive it.
  virtual void set_proxies(const std::vector<rig::TcpProxy*>& /*proxies*/) {}
  // With servers, or proxies in front of them, at these ports.
  [[nodiscard]] virtual std::string url(const std::vector<std::uint16_t>& ports) const = 0;
  [[nodiscard]] virtual std::vector<Fault> faults() { return {}; }
  // In the service, after all have quit: of these locks, which are of one kind.
  [[nodiscard]] virtual std::vector<std::string> leftovers(LockKind lock_kind,
                                                           const std::vector<std::string>& locks) = 0;
  // What is different about this service.
  virtual void adjust(Setup& /*setup*/) const {}
};

// A primary and a copy, which take turns. Replication is asynchronous: a grant that was not copied is forgotten.
class FailoverArena : public Arena {
 public:
  void set_proxies(const std::vector<rig::TcpProxy*>& proxies) override { way_ = proxies.front(); }
  [[nodiscard]] std::vector<std::string> leftovers(LockKind /*kind*/,
                                                   const std::vector<std::string>& /*locks*/) override {
    return {};
  }
  void adjust(Setup& setup) const override {
    // What a proxy holds up of the old primary's would come after what the new one says.
    setup.proxies.clear();
    setup.known_hole = {.rules = {Rule::exclusion}, .why = "a copy that is promoted may not know of the last grants"};
  }

 protected:
  // To whichever is the primary; nothing else is broken about this way.
  [[nodiscard]] std::uint16_t way() const { return way_->port(); }
  void lead_to(std::uint16_t port) const {
    way_->retarget(rig::Endpoint::loopback(port));
    way_->drop();
  }

 private:
  rig::TcpProxy* way_ = nullptr;
};

struct ArenaKind {
  std::string name;
  std::function<std::unique_ptr<Arena>()> make;
  // Of which kind the locks are, and how many permits each has.
  LockKind lock_kind = LockKind::lock;
  std::uint32_t permits = 1;
  std::string why_not{};  // it cannot be made on this machine
};
// The same arena with read-write locks, and with semaphores that have fewer permits than there are workers.
[[nodiscard]] inline ArenaKind read_write(std::string name, std::function<std::unique_ptr<Arena>()> make) {
  return {std::move(name), std::move(make), LockKind::read_write};
}
[[nodiscard]] inline ArenaKind semaphore(std::string name, std::function<std::unique_ptr<Arena>()> make) {
  return {std::move(name), std::move(make), LockKind::semaphore, 2};
}
inline void PrintTo(const ArenaKind& kind, std::ostream* out) {
  *out << kind.name;
}

[[nodiscard]] std::vector<ArenaKind> file_arenas();
[[nodiscard]] std::vector<ArenaKind> redis_arenas();
[[nodiscard]] std::vector<ArenaKind> zookeeper_arenas();
[[nodiscard]] std::vector<ArenaKind> postgres_arenas();
[[nodiscard]] std::vector<ArenaKind> mysql_arenas();
[[nodiscard]] std::vector<ArenaKind> etcd_arenas();
// Of all backends that are built.
[[nodiscard]] std::vector<ArenaKind> all_arenas();

using test::addresses_of;

// A fault that is over as soon as it was struck: what `strike` does.
[[nodiscard]] inline Fault brief_fault(std::string kind, std::string group, std::function<void()> strike,
                                       std::size_t weight = 1, Opens opens = Opens::nothing) {
  const auto act = [strike = std::move(strike)]() -> Heal {
    strike();
    return [] {};
  };
  return {std::move(kind), std::move(group), act, Linger::briefly, weight, opens};
}
// For Arena::leftovers(), where count(lock) is a number as a text: what the service keeps of the lock.
template <class Count>
[[nodiscard]] std::vector<std::string> held_of(const std::vector<std::string>& locks, Count&& count) {
  std::vector<std::string> found;
  for (const std::string& lock : locks) {
    if (count(lock) != "0") found.push_back("lock " + lock + " is held");
  }
  return found;
}

// One server is killed, restarted, stopped. It must outlive the faults.
template <class Server>
[[nodiscard]] std::vector<Fault> faults_of_server(Server& server) {
  return {{"server killed", "server",
           [&server]() -> Heal {
             server.kill();
             return [&server] { server.start(); };
           },
           Linger::within_lease, 1, Opens::when_struck},
          brief_fault(
              "server restarted", "server",
              [&server] {
                server.stop();
                server.start();
              },
              1, Opens::when_struck),
          {"server stopped", "server",
           [&server]() -> Heal {
             server.freeze();
             return [&server] { server.thaw(); };
           },
           Linger::beyond_lease}};
}

// The same for a test::Ensemble; of leaders that stop, what the service makes of it.
template <class Ensemble>
[[nodiscard]] std::vector<Fault> faults_of_ensemble(Ensemble& ensemble, Linger linger = Linger::within_lease,
                                                    Opens opens = Opens::nothing) {
  const auto killed = [&ensemble](const std::vector<std::size_t>& members) -> Heal {
    for (const std::size_t member : members) ensemble.server(member).kill();
    return [&ensemble] { ensemble.start(); };
  };
  const auto stopped = [&ensemble](std::size_t member) -> Heal {
    ensemble.server(member).freeze();
    return [&ensemble, member] {
      ensemble.server(member).thaw();
      ensemble.await_serving();
    };
  };
  const auto quorum_lost = [&ensemble, killed] {
    const std::size_t leader = ensemble.leader();
    return killed({leader, ensemble.follower()});
  };
  return {{"leader killed", "server", [&ensemble, killed] { return killed({ensemble.leader()}); }},
          {"quorum lost", "server", quorum_lost},
          {"leader stopped", "server", [&ensemble, stopped] { return stopped(ensemble.leader()); }, linger, 1, opens},
          {"follower stopped", "server", [&ensemble, stopped] { return stopped(ensemble.follower()); }}};
}

// --- A run of torture in an arena ------------------------------------------------------------------------------------
//
//   DLOCK_TORTURE_SECONDS    for how long things are broken (12)
//   DLOCK_TORTURE_SEED       the seed (from the clock)
//   DLOCK_TORTURE_DIRECTORY  where histories are kept, each in a directory of its own (they are kept for a violation)

// Whether this program may lose packets: it is in a network of its own. Otherwise the reason why not.
struct OwnNetwork {
  bool entered = false;
  std::string why_not = "the program did not ask for a network of its own";
};

// Seed and length as the environment says; what remains is the arena's, or run_in()'s.
[[nodiscard]] Setup usual_setup();
// In the rules: a session may take twice its time to end, and a connection one second to be set up.
inline void set_recovery(Setup& setup, std::chrono::nanoseconds recovery) {
  setup.rules.recovery = setup.rules.settled = recovery;
}
// keep: the history of a run with a violation.
[[nodiscard]] Outcome run_in(Arena& arena, const std::string& name, Setup setup, const OwnNetwork& network = {},
                             bool keep = true);

}  // namespace dlock::torture
