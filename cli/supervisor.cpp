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

// How long processes that were killed may take to disappear before dlock stops waiting for them.
constexpr std::chrono::seconds patience_after_kill{2};

}  // namespace

Supervisor::Supervisor(const Setup& setup, std::optional<Guardian>& guardian)
    : setup_(setup),
      guardian_(guardian),
      on_lost_(setup.lease.lost(), [this] { lost_event_.notify(); }),
      watch_(setup.kill_after, LeaseClock::now(), setup.lease.valid_until()),
      child_(setup.command, setup.inherited, terminal_),
      has_terminal_(terminal_.interactive()) {
  // Orphans of the group come to dlock, so that it sees when the last one has gone.
  check(::prctl(PR_SET_CHILD_SUBREAPER, 1), "prctl");
}

Supervisor::Outcome Supervisor::run() {
  look_at_lease();  // the guardian learns of the group before the command exists
  child_.go();
  while (phase_ != Phase::done) {
    wait();
    read_start();
    read_signals();
    if (phase_ == Phase::sweeping) sweep();
    if (phase_ != Phase::done) look_at_lease();
  }
  if (guardian_) (void)guardian_->watch(0, TimePoint::max());  // dead or not, it has nothing left to guard
  return outcome_;
}

void Supervisor::wait() {
  std::array sources{pollfd{.fd = setup_.signals.fd(), .events = POLLIN, .revents = 0},
                     pollfd{.fd = lost_event_.fd(), .events = POLLIN, .revents = 0},
                     pollfd{.fd = alarm_.fd(), .events = POLLIN, .revents = 0},
                     pollfd{.fd = child_.started_fd(), .events = POLLIN, .revents = 0}};
  if (::poll(sources.data(), sources.size(), -1) < 0 && errno != EINTR) check(-1, "poll");
  lost_event_.clear();
  alarm_.clear();
  if (phase_ == Phase::starting && sources[3].revents != 0) phase_ = Phase::running;
}

void Supervisor::look_at_lease() {
  const bool lost = setup_.lease.lost().stop_requested();
  const auto step = watch_.step(LeaseClock::now(), setup_.lease.valid_until(), lost);
  guard(step.deadline);
  end_group(step.action);
  alarm_.set(std::min(step.wake, sweep_at_));
}

void Supervisor::end_group(LeaseWatch::Action action) {
  if (action == LeaseWatch::Action::none) return;
  outcome_.lost = true;
  outcome_.ended_early = true;
  if (action == LeaseWatch::Action::kill) {
    child_.signal(SIGKILL);
    if (phase_ == Phase::sweeping) {
      sweep_killed_ = true;
      sweep_at_ = saturating_add(LeaseClock::now(), patience_after_kill);
    }
    return;
  }
  child_.signal(SIGTERM);
  child_.signal(SIGCONT);  // a stopped process could not end
}

// What the command's own signal actions see is what dlock was sent, so nothing is translated here.
void Supervisor::read_signals() {
  while (const std::optional<int> signal = setup_.signals.next()) {
    if (*signal == SIGCHLD) {
      reap();
    } else if (*signal == SIGCONT) {
      resume();
    } else if (*signal == SIGTSTP || SignalQueue::forwarded(*signal)) {
      child_.signal(*signal);
    }
  }
}

void Supervisor::read_start() {
  if (phase_ == Phase::starting || child_.started_fd() < 0) return;
  const std::optional<int> error = child_.exec_failure();
  if (!error) {
    outcome_.started = true;
    return;
  }
  say(fmt::format("cannot run \"{}\": {}", setup_.command.arguments.front(), std::strerror(*error)));
  outcome_.status = static_cast<int>(*error == ENOENT ? ExitCode::not_found : ExitCode::cannot_run);
}

void Supervisor::reap() {
  for (;;) {
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WNOHANG) != 0 || info.si_pid == 0) return;
    const bool stopped = info.si_code == CLD_STOPPED;
    if (info.si_pid == child_.pid()) {
      if (stopped) {
        child_stopped(info.si_status);
      } else {
        child_ended(info.si_code, info.si_status);
      }
    } else if (guardian_ && info.si_pid == guardian_->pid() && !stopped) {
      replace_guardian();
    }
  }
}

void Supervisor::child_stopped(int signal) {
  const bool wants_terminal = signal == SIGTTIN || signal == SIGTTOU;
  if (wants_terminal && terminal_.ours()) {
    terminal_.give_to(child_.pid());
    has_terminal_ = true;
    child_.signal(SIGCONT);
    return;
  }
  // With STOP somebody means this very process, and dlock goes on holding the lock for it.
  if (!terminal_.exists() || (signal != SIGTSTP && !wants_terminal)) return;
  terminal_.take_back_from(child_.pid());
  // While dlock is stopped it cannot renew the lock: nothing of the group may go on.
  child_.signal(SIGSTOP);
  if (!setup_.signals.stop_job() && wants_terminal) {
    // Nobody will ever bring us to the foreground. The kernel tells such a group by HUP; once is enough.
    if (std::exchange(hung_up_, true)) return;
    child_.signal(SIGHUP);
  }
  resume();
}

void Supervisor::resume() {
  look_at_lease();  // first: it may have run out meanwhile
  if (has_terminal_ && terminal_.ours()) terminal_.give_to(child_.pid());
  child_.signal(SIGCONT);
}

void Supervisor::child_ended(int code, int status) {
  // Whoever relies on the status relies on the lock having been held throughout.
  outcome_.lost = outcome_.lost || !setup_.lease.held();
  terminal_.take_back_from(child_.pid());
  if (phase_ == Phase::starting) phase_ = Phase::running;
  read_start();
  if (outcome_.started) outcome_.status = code == CLD_EXITED ? status : signalled(status);
  phase_ = Phase::sweeping;
  if (child_.group_is_empty()) return;
  if (!setup_.quiet) {
    say(fmt::format("\"{}\" ended and left processes behind; ending them", setup_.command.arguments.front()));
  }
  child_.signal(SIGTERM);
  child_.signal(SIGCONT);
  sweep_at_ = saturating_add(LeaseClock::now(), setup_.kill_after);
}

void Supervisor::sweep() {
  if (child_.group_is_empty()) {
    phase_ = Phase::done;
    return;
  }
  const TimePoint now = LeaseClock::now();
  if (now < sweep_at_) return;
  if (sweep_killed_) {
    say("some processes of the command cannot be killed; not waiting for them any longer");
    phase_ = Phase::done;
    return;
  }
  child_.signal(SIGKILL);
  sweep_killed_ = true;
  sweep_at_ = saturating_add(now, patience_after_kill);
}

void Supervisor::guard(TimePoint deadline) {
  if (deadline == guarded_until_) return;
  guarded_until_ = deadline;
  // A guardian that does not hear is dead; its SIGCHLD brings a new one.
  if (guardian_) (void)guardian_->watch(child_.pid(), deadline);
}

void Supervisor::replace_guardian() noexcept {
  guardian_->gone();
  try {
    guardian_.emplace();
    guard(std::exchange(guarded_until_, TimePoint::min()));
  } catch (const std::exception& error) {
    say(fmt::format("warning: the guardian process died and cannot be replaced: {}", error.what()));
  }
}

}  // namespace dlock::cli
