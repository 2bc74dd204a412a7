#include "torture/run/torture.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include <dlock/client.hpp>
#include <dlock/read_write_lock.hpp>
#include <dlock/semaphore.hpp>

#include "torture/nemesis/network_faults.hpp"
#include "torture/nemesis/process_faults.hpp"
#include "torture/rig/pause.hpp"
#include "torture/rig/scratch_directory.hpp"
#include "torture/run/rules_file.hpp"
#include "torture/worker/resource.hpp"

namespace dlock::torture {

namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

constexpr auto run_file = "run.jsonl";
constexpr auto rules_file = "rules.json";
constexpr auto resource_file = "resource.jsonl";

std::vector<std::string> shortfall(const Counts& counts, const std::map<std::string, std::size_t>& struck,
                                   const Demands& demands) {
  std::vector<std::string> missing;
  const auto demand = [&](std::size_t there, std::size_t wanted, const std::string& what) {
    if (there < wanted) {
      missing.push_back(what + ": " + std::to_string(there) + " instead of at least " + std::to_string(wanted));
    }
  };
  demand(counts.grants, demands.grants, "grants");
  demand(counts.takeovers, demands.takeovers, "takeovers from holders that had not released");
  demand(counts.losses, demands.losses, "losses");
  demand(counts.stale_writes, demands.stale_writes, "stale writes that were refused");
  for (const auto& [kind, times] : struck) demand(times, 1, "fault \"" + kind + "\"");
  return missing;
}

// If a lock ends with its process, a stopped holder keeps it, and none of its writes is ever stale. Holders of permits
// write nothing.
Demands possible(Demands demands, const Capabilities& capabilities, LockKind lock_kind) {
  if (lock_kind == LockKind::semaphore) demands.stale_writes = 0;
  if (capabilities.lease_kind == LeaseKind::process) {
    demands.losses = 0;
    demands.stale_writes = 0;
  }
  return demands;
}

class Run {
 public:
  Run(const Setup& setup, const Progress& progress, const std::stop_token& stop)
      : setup_(setup),
        progress_(progress),
        stop_(stop),
        notes_(setup.directory / run_file),
        board_(scratch_file("board"), setup.workers * setup.threads),
        resource_(scratch_file("resource"), setup.directory / resource_file, setup.locks, setup.lock_kind),
        crew_(crew_config(), notes_),
        nemesis_(all_faults(), setup.lease, setup.seed, crew_, notes_) {}

  Outcome operator()() {
    Outcome outcome{.seed = setup_.seed, .directory = setup_.directory};
    const Capabilities capabilities = connect(setup_.direct_url).capabilities();
    demands_ = possible(setup_.demands, capabilities, setup_.lock_kind);
    outcome.known_hole = setup_.known_hole;
    if (outcome.known_hole.rules.empty()) outcome.known_hole = known_hole(capabilities);
    rules_.hole = hole_under(outcome.known_hole, all_faults(), setup_.lease);
    save(rules_, setup_.directory / rules_file);
    outcome.ran = break_things();
    watch_sound_times();
    end_work();
    if (!found_) {
      probe();
      look_for_residue();
    }
    outcome.history = read_histories(setup_.directory);
    outcome.verdict = check(outcome.history, rules_);
    outcome.struck = nemesis_.struck();
    outcome.missing = shortfall(outcome.verdict.counts, outcome.struck, demands_);
    outcome.interrupted = stop_.stop_requested();
    return outcome;
  }

 private:
  [[nodiscard]] CrewConfig crew_config() const {
    return {.command = setup_.worker,
            .variables = setup_.variables,
            .url = setup_.url,
            .histories = setup_.directory,
            .plans = scratch_.path(),
            .workers = setup_.workers,
            .ended = setup_.worker_ended,
            .plan = {.seed = setup_.seed,
                     .board = scratch_file("board"),
                     .resource = scratch_file("resource"),
                     .seats = setup_.workers * setup_.threads,
                     .threads = setup_.threads,
                     .locks = setup_.locks,
                     .lock_kind = setup_.lock_kind,
                     .permits = setup_.permits,
                     .lease = setup_.lease,
                     .fixed_leases = setup_.fixed_leases}};
  }

  [[nodiscard]] std::vector<Fault> all_faults() {
    std::vector<Fault> all = process_faults(crew_, board_, setup_.seed);
    for (auto faults : {network_faults(setup_.proxies, setup_.seed), setup_.service_faults}) {
      std::move(faults.begin(), faults.end(), std::back_inserter(all));
    }
    if (!setup_.only.empty()) std::erase_if(all, [&](const Fault& fault) { return !setup_.only.contains(fault.kind); });
    return all;
  }

  // Not next to the histories, whose path may be too long for a socket.
  [[nodiscard]] std::filesystem::path scratch_file(const char* name) const {
    return std::filesystem::path(scratch_.path()) / name;
  }
  void say(const std::string& text) const {
    if (progress_) progress_(text);
  }
  void note(Event event) {
    event.at = LeaseClock::now();
    notes_.note(event);
  }

  // Repeats the step until the time has passed or the run has to end.
  void spend(nanoseconds length, const std::function<void(nanoseconds)>& step) {
    const TimePoint end = saturating_add(LeaseClock::now(), length);
    for (nanoseconds left = length; left > 0ns && !over(); left = end - LeaseClock::now()) {
      step(std::min<nanoseconds>(left, 1s));
    }
  }
  bool over() {
    if (!found_ && !setup_.until_found.empty()) {
      const Verdict verdict = check(read_histories(setup_.directory), rules_);
      found_ = std::any_of(verdict.found.begin(), verdict.found.end(),
                           [&](const auto& each) { return setup_.until_found.contains(each.first); });
    }
    return found_ || stop_.stop_requested();
  }

  nanoseconds break_things() {
    const TimePoint begin = LeaseClock::now();
    for (int round = 1; round <= setup_.repetitions; ++round) {
      say(round == 1 ? "breaking things" : "breaking things once more, as too little has happened");
      spend(setup_.length, [&](nanoseconds length) { (void)nemesis_.rage(length, stop_); });
      if (over()) break;
      if (round < setup_.repetitions && enough_has_happened()) break;
    }
    note({.kind = Kind::healed, .word = std::string(everything)});
    return LeaseClock::now() - begin;
  }

  // Reading a long history takes time, so it is not read if it cannot be enough.
  [[nodiscard]] bool enough_has_happened() const {
    for (const auto& [kind, times] : nemesis_.struck()) {
      if (times == 0) return false;
    }
    const auto history = read_histories(setup_.directory);
    return shortfall(check(history, setup_.rules).counts, nemesis_.struck(), demands_).empty();
  }

  void watch_sound_times() {
    say("nothing is broken any more; all must go on");
    spend(setup_.rules.settled + setup_.sound, [&](nanoseconds length) { (void)nemesis_.wait(length, stop_); });
  }

  void end_work() {
    say("the workers end");
    board_.call_it_a_day();
    crew_.await_end(found_ ? 0ns : setup_.rules.recovery);
  }

  void probe() {
    say("a new client takes each of the locks");
    const Client client = connect(setup_.direct_url, {.label = "torture-probe", .lease = setup_.lease});
    for (const std::string& lock : setup_.locks) {
      std::error_code ec;
      const AcquireOptions options{.wait = setup_.rules.recovery};
      Lease lease;
      switch (setup_.lock_kind) {
        case LockKind::read_write:
          lease = client.make_read_write_lock(lock).acquire(options, ec);
          break;
        case LockKind::semaphore:
          lease = client.make_semaphore(lock, setup_.permits).acquire(options, ec);
          break;
        default:
          lease = client.make_lock(lock).acquire(options, ec);
      }
      note({.kind = Kind::probed,
            .lock = lock,
            .lock_kind = setup_.lock_kind,
            .yes = !ec,
            .word = ec ? ec.message() : std::string()});
    }
  }

  // With probe()'s patience: a query ends after one response timeout, and the machine may be busy.
  [[nodiscard]] std::vector<LockInfo> list(const Client& client) const {
    const auto until = std::chrono::steady_clock::now() + setup_.rules.recovery;
    for (;;) {
      try {
        return client.list(setup_.lock_kind);
      } catch (const Error& e) {
        if (e.code() != errc::unavailable || std::chrono::steady_clock::now() >= until) throw;
      }
      if (!rig::pause(50ms, stop_)) return {};
    }
  }

  void look_for_residue() {
    say("looking for what was left behind");
    const Client client = connect(setup_.direct_url, {.label = "torture-check", .lease = setup_.lease});
    if (client.capabilities().can_list) {
      for (const LockInfo& info : list(client)) {
        if (std::find(setup_.locks.begin(), setup_.locks.end(), info.name) == setup_.locks.end()) continue;
        const auto residue = [&](std::string what) {
          note({.kind = Kind::residue, .lock = info.name, .lock_kind = info.kind, .word = std::move(what)});
        };
        if (info.held) residue("held by " + info.holder);
        if (info.waiters.value_or(0) > 0) residue(std::to_string(*info.waiters) + " waiters");
      }
    }
    if (!setup_.leftovers) return;
    for (std::string& what : setup_.leftovers()) note({.kind = Kind::residue, .word = std::move(what)});
  }

  const Setup& setup_;
  const Progress& progress_;
  const std::stop_token& stop_;
  rig::ScratchDirectory scratch_;
  HistoryFile notes_;
  Board board_;
  Resource resource_;
  Crew crew_;
  Nemesis nemesis_;
  Rules rules_ = setup_.rules;
  Demands demands_{};
  bool found_ = false;
};

}  // namespace

Outcome run(const Setup& setup, const Progress& progress, const std::stop_token& stop) {
  return Run(setup, progress, stop)();
}

Outcome recheck(const std::filesystem::path& directory) {
  Outcome outcome{.history = read_histories(directory), .directory = directory};
  outcome.verdict = check(outcome.history, load_rules(directory / rules_file));
  return outcome;
}

}  // namespace dlock::torture
