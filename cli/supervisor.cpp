#include "cli/supervisor.hpp"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "cli/exit_code.hpp"
#include "cli/output.hpp"

namespace dlock::cli {

namespace {

// How long killed processes may take to disappear before dlock stops waiting for them.
constexpr std::chrono::seconds patience_after_kill{2};

// A second kill follows soon, for processes that were just being forked. A command that cannot be killed, because it
// runs as a different user, is tried again for as long as it runs, but not so often.
constexpr std::chrono::milliseconds kill_pause{10};
constexpr std::chrono::seconds late_kill_pause{1};

}  // namespace

Supervisor::Supervisor(const Setup& setup, std::optional<Guardian>& guardian)
    : setup_(setup),
      guardian_(guardian),
      on_lost_(setup.held.lost(), [this] { lost_event_.notify(); }),
      watch_(setup.kill_after, LeaseClock::now(), setup.held.valid_until()),
      child_(setup.command, setup.inherited, terminal_),
      has_terminal_(terminal_.interactive()) {
  // Orphans become children of the reaper; if that is killed, of dlock.
  check(::prctl(PR_SET_CHILD_SUBREAPER, 1), "prctl");
}

Supervisor::Outcome Supervisor::run() {
  reap();           // a guardian may have died before
  look_at_lease();  // the guardian knows the command before it exists
  child_.go();
  while (phase_ != Phase::done) {
    wait();
    read_start();
    read_signals();
    read_reports();
    go_on_killing();
    if (phase_ != Phase::done) look_at_lease();
  }
  if (guardian_) (void)guardian_->watch({}, {}, TimePoint::max());  // dead or not, it has nothing left to guard
  return outcome_;
}

void Supervisor::wait() {
  std::array sources{pollfd{.fd = setup_.signals.fd(), .events = POLLIN, .revents = 0},
                     pollfd{.fd = lost_event_.fd(), .events = POLLIN, .revents = 0},
                     pollfd{.fd = alarm_.fd(), .events = POLLIN, .revents = 0},
                     pollfd{.fd = child_.reaper().reports_fd(), .events = POLLIN, .revents = 0},
                     pollfd{.fd = child_.started_fd(), .events = POLLIN, .revents = 0}};
  if (::poll(sources.data(), sources.size(), -1) < 0 && errno != EINTR) check(-1, "poll");
  lost_event_.clear();
  alarm_.clear();
  if (phase_ == Phase::starting && sources.back().revents != 0) phase_ = Phase::running;
}

// If dlock was stopped after a renewal, the guardian knows the lease's end from before it.
bool Supervisor::guardian_has_acted() const noexcept {
  return phase_ != Phase::sweeping && guarded_until_ != TimePoint::min() && LeaseClock::now() >= guarded_until_;
}

void Supervisor::look_at_lease() {
  if (!outcome_.lost && guardian_has_acted()) end_command(LeaseWatch::Action::kill);
  const bool lost = setup_.held.lost().stop_requested();
  const auto step = watch_.step(LeaseClock::now(), setup_.held.valid_until(), lost);
  end_command(step.action);
  // The guardian gets the time to kill what the command left behind, too, in case dlock cannot.
  guard(std::min(step.deadline, sweep_at_));
  alarm_.set(std::min({step.wake, sweep_at_, kill_at_, give_up_at_}));
}

void Supervisor::end_command(LeaseWatch::Action action) {
  if (action == LeaseWatch::Action::none) return;
  outcome_.lost = true;
  outcome_.ended_early = true;
  if (action == LeaseWatch::Action::kill) {
    start_killing();
  } else {
    child_.signal_all({SIGTERM, SIGCONT});  // a stopped process could not end
  }
}

// Signals are passed on unchanged, for the command's own handlers. TERM goes to all that runs under the lock; the
// others to the command's group, because the command may be a shell with jobs.
void Supervisor::read_signals() {
  while (const std::optional<int> signal = setup_.signals.next()) {
    if (*signal == SIGINT || *signal == SIGTERM || *signal == SIGQUIT) outcome_.interrupted = true;
    if (*signal == SIGCHLD) {
      reap();
    } else if (*signal == SIGCONT) {
      resume();
    } else if (*signal == SIGTERM) {
      child_.signal_all({SIGTERM});
    } else if (*signal == SIGTSTP || SignalQueue::forwarded(*signal)) {
      child_.signal(*signal);
    }
  }
}

void Supervisor::read_reports() {
  using What = Reaper::Report::What;
  while (const auto report = child_.reaper().next_report()) {
    switch (report->what) {
      case What::stopped:
        child_stopped(report->value);
        break;
      case What::exited:
        child_ended(report->value);
        break;
      case What::killed:
        child_ended(signalled(report->value));
        break;
      case What::left_behind:
        sweep_up();
        break;
      case What::forked:
        break;  // was read when the command's process was created
    }
  }
}

void Supervisor::read_start() {
  if (phase_ == Phase::starting || child_.started_fd() < 0) return;
  const std::optional<int> error = child_.exec_failure();
  if (!error) {
    outcome_.started = true;
    if (setup_.verbose) {
      say(fmt::format("\"{}\" runs as process {}", setup_.command.arguments.front(), child_.pid()));
    }
    return;
  }
  outcome_.failure = fmt::format("cannot run \"{}\": {}", setup_.command.arguments.front(), std::strerror(*error));
  say(outcome_.failure);
  outcome_.status = static_cast<int>(*error == ENOENT ? ExitCode::not_found : ExitCode::cannot_run);
}

// dlock's children are the reaper and the guardian; and the command itself, and its orphans, if the reaper was killed.
void Supervisor::reap() {
  for (;;) {
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WNOHANG) != 0 || info.si_pid == 0) return;
    const bool stopped = info.si_code == CLD_STOPPED;
    if (info.si_pid == child_.pid()) {
      if (stopped) {
        child_stopped(info.si_status);
      } else {
        child_ended(info.si_code == CLD_EXITED ? info.si_status : signalled(info.si_status));
      }
    } else if (stopped) {
      continue;
    } else if (info.si_pid == child_.reaper().pid()) {
      reaper_ended(info.si_code == CLD_EXITED);
    } else if (guardian_ && info.si_pid == guardian_->pid()) {
      replace_guardian();
    }
  }
}

void Supervisor::reaper_ended(bool by_itself) {
  read_reports();
  if (by_itself && phase_ == Phase::sweeping) {
    child_.reaper().gone();
    phase_ = Phase::done;
    return;
  }
  // The kernel has killed the command with it. If dlock were killed now, nothing could find the command's processes.
  reaper_is_gone_ = true;
  child_.reaper_was_killed(setup_.inherited, guardian_ ? guardian_->pid() : 0);
  guarded_until_ = TimePoint::min();
  start_killing();
  say("the reaper process was killed; ending the command");
}

void Supervisor::child_stopped(int signal) {
  const bool wants_terminal = signal == SIGTTIN || signal == SIGTTOU;
  if (wants_terminal && terminal_.ours()) {
    terminal_.give_to(child_.pid());
    has_terminal_ = true;
    child_.signal(SIGCONT);
    return;
  }
  // STOP is meant for this process only, and dlock continues to hold the lock for it.
  if (!terminal_.exists() || (signal != SIGTSTP && !wants_terminal)) return;
  terminal_.take_back_from(child_.pid());
  // While dlock is stopped it cannot renew the lock, so its whole group must be stopped.
  child_.signal(SIGSTOP);
  if (!setup_.signals.stop_job() && wants_terminal) {
    // Nothing will ever put dlock into the foreground. The kernel sends HUP to such a group; once is enough.
    if (std::exchange(hung_up_, true)) return;
    child_.signal(SIGHUP);
  }
  resume();
}

void Supervisor::resume() {
  look_at_lease();  // first: the lease may have expired meanwhile
  if (has_terminal_ && terminal_.ours()) terminal_.give_to(child_.pid());
  child_.signal(SIGCONT);
}

void Supervisor::child_ended(int status) {
  // A status of success implies that the lock was held throughout.
  outcome_.lost = outcome_.lost || !setup_.held.held();
  if (status == signalled(SIGKILL) && guardian_has_acted()) outcome_.lost = outcome_.ended_early = true;
  terminal_.take_back_from(child_.pid());
  if (phase_ == Phase::starting) phase_ = Phase::running;
  read_start();
  if (outcome_.started) outcome_.status = status;
  if (outcome_.started && setup_.verbose) {
    say(fmt::format("\"{}\" ended with status {}", setup_.command.arguments.front(), status));
  }
  phase_ = Phase::sweeping;
  if (kill_at_ != TimePoint::max()) give_up_at_ = saturating_add(LeaseClock::now(), patience_after_kill);
  if (child_.tree().root != 0) {
    // The group's number may soon be reused.
    if (guardian_) (void)guardian_->watch({}, child_.tree(), guarded_until_);
  }
  child_.ended();
}

// The command has ended, but other processes have not.
void Supervisor::sweep_up() {
  if (kill_at_ != TimePoint::max()) return;  // they are being killed already
  child_.signal_all({SIGTERM, SIGCONT});
  sweep_at_ = saturating_add(LeaseClock::now(), setup_.kill_after);
  if (setup_.quiet) return;
  say(fmt::format("\"{}\" ended and left processes behind; ending them", setup_.command.arguments.front()));
}

void Supervisor::start_killing() {
  const TimePoint now = LeaseClock::now();
  sweep_at_ = TimePoint::max();
  kill_at_ = now;
  killing_since_ = now;
  if (phase_ == Phase::sweeping) give_up_at_ = saturating_add(now, patience_after_kill);
  go_on_killing();
}

void Supervisor::go_on_killing() {
  const TimePoint now = LeaseClock::now();
  if (now >= sweep_at_) start_killing();
  if (phase_ == Phase::done || now < kill_at_) return;
  child_.signal_all({SIGKILL});
  const bool late = now - killing_since_ > patience_after_kill;
  kill_at_ = now + (late ? std::chrono::milliseconds(late_kill_pause) : kill_pause);
  if (phase_ != Phase::sweeping) return;
  if (reaper_is_gone_ && !child_.anything_left()) {
    phase_ = Phase::done;
  } else if (now >= give_up_at_) {
    child_.reaper().abandon();
    say("some processes of the command cannot be killed; not waiting for them any longer");
    phase_ = Phase::done;
  }
}

void Supervisor::guard(TimePoint deadline) {
  if (deadline == guarded_until_) return;
  guarded_until_ = deadline;
  // If the guardian is dead, its SIGCHLD starts a new one.
  if (guardian_) (void)guardian_->watch(child_.group(), child_.tree(), deadline);
}

void Supervisor::replace_guardian() noexcept {
  guardian_->gone();
  try {
    guardian_.emplace();
    child_.set_guardian(guardian_->pid());
    guard(std::exchange(guarded_until_, TimePoint::min()));
  } catch (const std::exception& error) {
    say(fmt::format("warning: the guardian process died and cannot be replaced: {}", error.what()));
  }
}

}  // namespace dlock::cli
