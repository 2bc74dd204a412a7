// A thread of a simulated process: takes locks, works under them, gives them back, and notes what it sees.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <system_error>

#include <dlock/token.hpp>

#include "tests/simulation/world.hpp"

namespace dlock::simulation {

class SimulatedProcess;

// The word of a denial in a history.
[[nodiscard]] std::string word_for(std::error_code ec, bool tried);

// The resource that a lock protects: takes writes and reads in the order of their tokens, and refuses those that come
// too late: a write that is older than anything taken, a read that is older than a write.
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
  std::map<std::string, std::pair<FencingToken, FencingToken>> newest_;  // of all, and of writes
};

class Worker {
 public:
  Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  virtual ~Worker() = default;
};
// Goes on until the process ends.
[[nodiscard]] std::unique_ptr<Worker> start_worker(SimulatedProcess& process, World& world, Resource& resource,
                                                   const Plan& plan);

}  // namespace dlock::simulation
