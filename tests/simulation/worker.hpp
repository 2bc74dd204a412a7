// A thread of a simulated process: takes locks, works under them, gives them back, and notes what it sees.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>

#include <dlock/lease.hpp>

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
  Worker(SimulatedProcess& process, World& world, Resource& resource, const Plan& plan)
      : process_(process), world_(world), resource_(resource), plan_(plan) {}

  // Goes on until the process ends.
  void start();

 private:
  void rest();
  void ask();
  void answered(bool tried, std::error_code ec, Lease lease);
  void work();
  void lost();
  void hold_on();
  void look();
  void write();
  void let_go();
  void note(Kind kind, Event event = {});

  SimulatedProcess& process_;
  World& world_;
  Resource& resource_;
  const Plan& plan_;

  const SimulatedLock* lock_ = nullptr;
  Event acquire_;
  bool waiting_ = false;
  std::stop_source cancel_;
  Lease lease_;
  std::uint64_t steps_left_ = 0;
  std::chrono::nanoseconds longest_step_{};
  std::optional<std::stop_callback<std::function<void()>>> on_lost_;
};

}  // namespace dlock::simulation
