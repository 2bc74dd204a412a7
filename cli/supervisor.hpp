// The life of a command under a lease, from its start until the last process of its group is gone.
#pragma once

#include <dlock/client.hpp>
#include <dlock/lease.hpp>

#include <functional>
#include <optional>
#include <stop_token>

#include "cli/child.hpp"
#include "cli/guardian.hpp"
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
    Lease& lease;
    std::chrono::nanoseconds kill_after;
    bool quiet;
  };

  struct Outcome {
    int status = 0;            // as a shell would say it
    bool started = false;      // false: the command could not be run, and status says why
    bool lost = false;         // the lock was lost, or was about to be, before the command had ended
    bool ended_early = false;  // the command, or what it had left behind, was told to end because of that
  };

  Supervisor(const Setup& setup, std::optional<Guardian>& guardian);

  // Returns when no process of the command's group is left (or when what is left cannot be killed).
  [[nodiscard]] Outcome run();

 private:
  enum class Phase { starting, running, sweeping, done };

  void wait();
  void look_at_lease();
  void end_group(LeaseWatch::Action action);
  void read_start();
  void read_signals();
  void reap();
  void child_stopped(int signal);
  void child_ended(int code, int status);
  void resume();
  void sweep();
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
  TimePoint sweep_at_ = TimePoint::max();
  bool sweep_killed_ = false;
  bool has_terminal_ = false;  // the command was given the terminal
  bool hung_up_ = false;       // the command was told that there is no terminal for it
  Outcome outcome_;
};

}  // namespace dlock::cli
