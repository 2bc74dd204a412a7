// The resource that a lock protects: takes writes and reads in the order of their tokens, and refuses those that come
// too late: a write that is older than anything taken, a read that is older than a write.
#pragma once

#include <algorithm>
#include <map>
#include <string>

#include "tests/simulation/plan.hpp"
#include "tests/simulation/world.hpp"

namespace dlock::simulation {

class Resource {
 public:
  // blind: takes everything.
  Resource(World& world, bool blind) : world_(world), blind_(blind) {}

  void serve(const SimulatedLock& lock, Mode mode, FencingToken token) {
    auto& [newest, newest_write] = newest_[lock.name];
    const bool reads = mode == Mode::shared;
    const bool takes = blind_ || token >= (reads ? newest_write : newest);
    if (takes) newest = std::max(newest, token);
    if (takes && !reads) newest_write = std::max(newest_write, token);
    world_.note({.kind = Kind::served,
                 .lock = lock.name,
                 .lock_kind = lock.lock_kind,
                 .mode = mode,
                 .token = token,
                 .yes = takes});
  }

 private:
  World& world_;
  const bool blind_;
  struct Newest {
    FencingToken of_all;
    FencingToken of_writes;
  };
  std::map<std::string, Newest> newest_;
};

}  // namespace dlock::simulation
