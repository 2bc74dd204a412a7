// Tests a lock service under faults: workers contend, a nemesis injects faults, and a checker decides from the history
// whether the locks kept their promises.
//
//   Outcome outcome = run(setup, {}, stop);
//   std::cout << report(outcome);
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include <dlock/lock_kind.hpp>

#include "torture/checker/checker.hpp"
#include "torture/nemesis/nemesis.hpp"
#include "torture/rig/tcp_proxy.hpp"
#include "torture/run/known_holes.hpp"

namespace dlock::torture {

// The least that must have happened for the run to prove something. Each kind of fault must also have been struck.
// Losses and stale writes are required only if they are possible.
struct Demands {
  std::size_t grants = 100;
  std::size_t takeovers = 1;
  std::size_t losses = 1;
  std::size_t stale_writes = 1;
};

struct Setup {
  std::vector<std::string> worker{};          // the command; the name of a plan's file is appended
  std::vector<std::string> variables{};       // of the workers' environment, "NAME=value"
  std::function<void(pid_t)> worker_ended{};  // called for each one that was killed, or has crashed
  std::string url{};                          // for the workers: through the proxies, if there are any
  std::string direct_url{};                   // for this process, when all faults are over
  std::vector<rig::TcpProxy*> proxies{};
  std::set<std::string> only{};         // kinds of faults; empty: all
  std::vector<Fault> service_faults{};  // in addition to those of processes and proxies
  std::function<std::vector<std::string>()>
      leftovers{};                    // in the service, after all workers have ended; besides what list() reports
  std::filesystem::path directory{};  // an empty one, which keeps histories and rules
  std::uint64_t seed = 1;
  std::chrono::nanoseconds length = std::chrono::seconds(60);  // how long faults are injected
  std::size_t workers = 4;
  std::size_t threads = 2;  // of each
  std::vector<std::string> locks{"torture/a", "torture/b"};
  LockKind lock_kind = LockKind::lock;  // one that the backend has, and no election
  std::uint32_t permits = 1;            // of each semaphore
  std::chrono::nanoseconds lease = std::chrono::seconds(2);
  bool fixed_leases = true;
  // How long the workers continue in sound times, after the rules' `settled`.
  std::chrono::nanoseconds sound = std::chrono::seconds(4);
  Rules rules{};  // without the hole, which is known_hole
  Demands demands{};
  KnownHole known_hole{};  // instead of the strategy's own
  // How often the faults are repeated if too little has happened.
  int repetitions = 3;
  std::set<Rule> until_found{};  // a violation of one of these ends the run at once
};

struct Outcome {
  Verdict verdict{};
  std::vector<Event> history{};
  std::map<std::string, std::size_t> struck{};
  std::vector<std::string> missing{};  // what did not happen; without it, a run proves little
  std::chrono::nanoseconds ran{};      // how long faults were injected
  std::uint64_t seed = 0;
  std::filesystem::path directory{};
  KnownHole known_hole{};
  bool interrupted = false;

  [[nodiscard]] bool violated() const noexcept { return !verdict.violations.empty(); }
  [[nodiscard]] bool inconclusive() const noexcept { return !violated() && (interrupted || !missing.empty()); }
};

// Called with the current phase, for people.
using Progress = std::function<void(const std::string&)>;

// Blocks until the run has ended. A stop ends the faults early. Throws std::exception if the run itself fails, for
// example because its files cannot be written. Call it on a thread that lives as long as the program, or the run.
[[nodiscard]] Outcome run(const Setup& setup, const Progress& progress = {}, const std::stop_token& stop = {});

// The verdict, figures and excerpts, for people. Ends with a new line.
[[nodiscard]] std::string report(const Outcome& outcome);

// Checks the history of an earlier run in this directory again, by the same rules. Throws std::runtime_error if there
// is none.
[[nodiscard]] Outcome recheck(const std::filesystem::path& directory);

}  // namespace dlock::torture
