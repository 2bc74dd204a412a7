// Whole clients on a memory store whose messages get lost, late and doubled, under a seed and a manual clock: thousands
// of runs of the real acquire, renew, lose and release code in a second, and any of them can be repeated.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <random>
#include <stop_token>
#include <string>
#include <vector>

#include "backends/memory/memory_backend.hpp"
#include "core/client_core.hpp"
#include "tests/unit/memory/client_engine.hpp"

namespace dlock::memory {

// What happened, so that a test can tell whether its seeds reached what they were meant to reach.
struct SimulationCounts {
  std::uint64_t grants = 0;
  std::uint64_t contended_grants = 0;  // after the attempt was busy for a while
  std::uint64_t timeouts = 0;
  std::uint64_t failures = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t losses = 0;
  std::uint64_t killed_sessions = 0;
  std::uint64_t faults = 0;
};

class Simulation {
 public:
  Simulation(std::uint64_t seed, Strategy strategy);
  ~Simulation();

  // Runs it all; failures are reported to GoogleTest. Answers what happened.
  SimulationCounts run();

 private:
  struct RandomFaults;

  // A client, until it is killed or closed.
  struct Process {
    std::shared_ptr<detail::ClientCore> core;
    bool killed = false;
  };
  struct Wait {
    std::shared_ptr<Process> process;
    std::string name;
    TimePoint end_by;  // the latest that the contract allows
    std::stop_source cancel;
    bool ended = false;
    bool was_long = false;
  };
  struct Held {
    std::shared_ptr<Process> process;
    std::shared_ptr<detail::LeaseState> lease;
    bool released = false;
  };

  void step();
  void start_wait();
  void ended(const std::shared_ptr<Wait>& wait, const detail::AcquireResult& result);
  void release_some();
  void cancel_some();
  void kill_some();
  void pass_time();
  void check();
  void heal_and_close();
  void probe_all_names();

  [[nodiscard]] std::shared_ptr<Process> start_process();
  [[nodiscard]] std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
  [[nodiscard]] bool chance(std::uint64_t percent) { return below(100) < percent; }
  [[nodiscard]] std::chrono::nanoseconds up_to(std::chrono::nanoseconds limit);
  [[nodiscard]] std::string random_name() { return below(3) == 0 ? "b" : "a"; }

  const Strategy strategy_;
  std::mt19937_64 random_;
  test::ManualEngine engine_;
  const std::shared_ptr<MemoryStore> store_ = std::make_shared<MemoryStore>();
  const std::shared_ptr<RandomFaults> faults_;
  std::vector<std::shared_ptr<Process>> processes_;
  std::list<std::shared_ptr<Wait>> waits_;
  std::list<Held> held_;
  std::map<std::string, FencingToken> last_token_;
  std::uint64_t processes_started_ = 0;
  SimulationCounts counts_;
};

}  // namespace dlock::memory
