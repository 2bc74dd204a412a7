// Puts a lock service through it: workers contend, a nemesis breaks things, and the history says whether the locks kept
// their promises.
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

// What must have happened at least, so that the run shows something. Each kind of fault must have been struck as well.
// Losses and stale writes are asked for only where there can be any.
struct Demands {
  std::size_t grants = 100;
  std::size_t takeovers = 1;
  std::size_t losses = 1;
  std::size_t stale_writes = 1;
};

struct Setup {
  std::vector<std::string> worker{};          // the command; the name of a plan's file follows
  std::vector<std::string> variables{};       // of the workers' environment, "NAME=value"
  std::function<void(pid_t)> worker_ended{};  // told of each that was killed, or has crashed
  std::string url{};                          // for the workers: past the proxies, if there are any
  std::string direct_url{};                   // for us, when nothing is broken any more
  std::vector<rig::TcpProxy*> proxies{};
  std::set<std::string> only{};         // of all faults, by kind; empty: all
  std::vector<Fault> service_faults{};  // on top of those of processes and proxies
  std::function<std::vector<std::string>()>
      leftovers{};                    // in the service, when all have quit; besides what list() says
  std::filesystem::path directory{};  // an empty one; histories and rules stay there
  std::uint64_t seed = 1;
  std::chrono::nanoseconds length = std::chrono::seconds(60);  // for which things are broken
  std::size_t workers = 4;
  std::size_t threads = 2;  // of each
  std::vector<std::string> locks{"torture/a", "torture/b"};
  LockKind lock_kind = LockKind::lock;  // of which kind they are; one that the backend has, and no election
  std::uint32_t permits = 1;            // of each, where they are semaphores
  std::chrono::nanoseconds lease = std::chrono::seconds(2);
  bool fixed_leases = true;
  // For how long the workers go on in sound times, after the rules' `settled`.
  std::chrono::nanoseconds sound = std::chrono::seconds(4);
  Rules rules{};  // without the hole, which is known_hole
  Demands demands{};
  KnownHole known_hole{};  // instead of that of the strategy
  // How often the breaking is repeated where too little has happened.
  int repetitions = 3;
  std::set<Rule> until_found{};  // a violation of one of these ends the run at once
};

struct Outcome {
  Verdict verdict{};
  std::vector<Event> history{};
  std::map<std::string, std::size_t> struck{};
  std::vector<std::string> missing{};  // what did not happen; a run without it shows little
  std::chrono::nanoseconds ran{};      // for which things were broken
  std::uint64_t seed = 0;
  std::filesystem::path directory{};
  KnownHole known_hole{};
  bool interrupted = false;

  [[nodiscard]] bool violated() const noexcept { return !verdict.violations.empty(); }
  [[nodiscard]] bool inconclusive() const noexcept { return !violated() && (interrupted || !missing.empty()); }
};

// Told what is done now, for people.
using Progress = std::function<void(const std::string&)>;

// Blocks until the run has ended. A stop ends the breaking early. Throws std::exception when something of the run
// itself fails, as when its files cannot be written. Call it on a thread that lives as long as the program, or the run.
[[nodiscard]] Outcome run(const Setup& setup, const Progress& progress = {}, const std::stop_token& stop = {});

// The verdict, figures and excerpts, for people. Ends with a new line.
[[nodiscard]] std::string report(const Outcome& outcome);

// Checks once more the history that a run has left in this directory, by the same rules. Throws std::runtime_error
// where there is none.
[[nodiscard]] Outcome recheck(const std::filesystem::path& directory);

}  // namespace dlock::torture
