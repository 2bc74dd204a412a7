// Runs a command under a lease, from its start until its last descendant is gone.
#pragma once

#include <dlock/clock.hpp>

#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "cli/child.hpp"
#include "cli/guardian.hpp"
#include "cli/held.hpp"
#include "cli/lease_watch.hpp"
#include "cli/signal_queue.hpp"
#include "cli/system.hpp"
#include "cli/terminal.hpp"

namespace dlock::cli {

class Supervisor {
 public:
  struct Setup {
    const Command& command;
    const Inherited& inherited;
    SignalQueue& signals;
    const Held& held;
    std::chrono::nanoseconds kill_after;
    bool quiet;
    bool verbose = false;
  };

  struct Outcome {
    int status = 0;            // as shells report it
    bool started = false;      // false: the command could not be run, and `failure` has the reason
    bool lost = false;         // the lock was lost, or was about to be, before the command had ended
    bool ended_early = false;  // the command, or what it left behind, was therefore asked to end
    std::string failure = {};  // why the command could not be run
    bool interrupted = false;  // dlock received INT, TERM or QUIT meanwhile
  };

  Supervisor(const Setup& setup, std::optional<Guardian>& guardian);

  // Returns when no process of the command is left, or the rest cannot be killed.
  [[nodiscard]] Outcome run();

 private:
  enum class Phase { starting, running, sweeping, done };

  void wait();
  // The command has been killed, or is about to be.
  [[nodiscard]] bool guardian_has_acted() const noexcept;
  void look_at_lease();
  void end_command(LeaseWatch::Action action);
  void read_start();
  void read_signals();
  void read_reports();
  void reap();
  void reaper_ended(bool by_itself);
  void child_stopped(int signal);
  void child_ended(int status);
  void sweep_up();
  void resume();
  void start_killing();
  void go_on_killing();
  void guard(TimePoint deadline);
  void replace_guardian() noexcept;

  Setup setup_;
  std::optional<Guardian>& guardian_;
  Terminal terminal_;
  Event lost_event_;
  std::stop_callback<std::function<void()>> on_lost_;
  Alarm alarm_;
  LeaseWatch watch_;
  Child child_;
  Phase phase_ = Phase::starting;
  TimePoint guarded_until_ = TimePoint::min();
  TimePoint sweep_at_ = TimePoint::max();    // when to kill what the command left behind
  TimePoint kill_at_ = TimePoint::max();     // when to kill everything once more; max(): killing has not begun
  TimePoint give_up_at_ = TimePoint::max();  // when to give up killing what the command left behind
  TimePoint killing_since_ = TimePoint::min();
  bool reaper_is_gone_ = false;
  bool has_terminal_ = false;  // the command was given the terminal
  bool hung_up_ = false;       // the command was notified that it gets no terminal
  Outcome outcome_;
};

}  // namespace dlock::cli
