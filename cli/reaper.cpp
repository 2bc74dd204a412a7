#include "cli/reaper.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

#include "cli/system.hpp"

namespace dlock::cli {

namespace {

// How long killed processes may take to disappear before dlock stops waiting for them.
constexpr int patience_ms = 2000;
// The pause between two rounds of killing, in the reaper.
constexpr int first_round_ms = 5;
constexpr int longest_round_ms = 1000;

// The code of the reaper process. It may have been forked while dlock had other threads, so it makes async-signal-safe
// calls only.
class ReaperProcess {
 public:
  ReaperProcess(int control, int reports, int children, pid_t command, const ProcessTree& tree)
      : control_(control), reports_(reports), children_(children), command_(command), tree_(tree) {}

  [[noreturn]] void run() noexcept {
    report(Reaper::Report::What::forked, command_);
    for (int round_ms = first_round_ms;;) {
      std::array sources{pollfd{.fd = control_, .events = POLLIN, .revents = 0},
                         pollfd{.fd = children_, .events = POLLIN, .revents = 0}};
      // The loop checks, whatever ended the wait.
      const int ready = ::poll(sources.data(), sources.size(), alone_ ? round_ms : -1);
      if (ready > 0 && sources[0].revents != 0) read_control();
      signalfd_siginfo info{};
      while (::read(children_, &info, sizeof info) == sizeof info) {
      }
      if (alone_) {
        if (!end_was_reaped_) (void)::kill(-command_, SIGKILL);
        (void)signal_tree(tree_, {SIGKILL});
        if (ready == 0) round_ms = std::min(2 * round_ms, longest_round_ms);
      }
      reap();
    }
  }

 private:
  void read_control() noexcept {
    char word = 0;
    const ssize_t n = read_some(control_, &word, 1);
    end_seen_ = true;
    if (n == 1) return;
    alone_ = true;  // dlock is gone
    control_ = -1;
  }

  void reap() noexcept {
    for (;;) {
      siginfo_t info{};
      if (::waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT) != 0) {
        if (errno == ECHILD) ::_exit(0);  // no process is left
        return;
      }
      if (info.si_pid == 0) break;
      const bool stopped = info.si_code == CLD_STOPPED;
      if (info.si_pid == command_ && !end_was_reaped_ && !tell_of_command(info)) return;
      const auto pid = static_cast<id_t>(info.si_pid);
      (void)::waitid(P_PID, pid, &info, (stopped ? WSTOPPED : WEXITED) | WNOHANG);
    }
    if (end_was_reaped_ && !std::exchange(left_behind_was_told_, true)) report(Reaper::Report::What::left_behind, 0);
  }

  // Returns whether it may be reaped.
  bool tell_of_command(const siginfo_t& info) noexcept {
    if (info.si_code == CLD_STOPPED) {
      report(Reaper::Report::What::stopped, info.si_status);
      return true;
    }
    if (!std::exchange(end_was_told_, true)) {
      report(info.si_code == CLD_EXITED ? Reaper::Report::What::exited : Reaper::Report::What::killed, info.si_status);
    }
    end_was_reaped_ = end_seen_;
    return end_seen_;
  }

  // Fails if dlock is gone, which control_ shows.
  void report(Reaper::Report::What what, int value) const noexcept {
    const Reaper::Report report{.what = what, .value = value};
    ssize_t n = 0;
    do {
      n = ::write(reports_, &report, sizeof report);
    } while (n < 0 && errno == EINTR);
  }

  int control_;
  int reports_;
  int children_;
  pid_t command_;
  ProcessTree tree_;
  bool alone_ = false;  // dlock is gone
  bool end_was_told_ = false;
  bool end_seen_ = false;
  bool end_was_reaped_ = false;
  bool left_behind_was_told_ = false;
};

// `kept` has capacity for the reaper's own descriptors.
[[noreturn]] void become_reaper(int control, int reports, std::vector<int>& kept, pid_t dlock,
                                const std::function<void()>& become_command) noexcept {
  sigset_t all;
  ::sigfillset(&all);
  (void)::sigprocmask(SIG_SETMASK, &all, nullptr);
  const pid_t self = ::getpid();
  const ProcessTree tree = tree_of(self, dlock);
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0 || ::getppid() != dlock) ::_exit(1);
  (void)::setpgid(0, 0);  // cannot fail for a process that has just been forked
  const pid_t command = ::fork();
  if (command == 0) {
    (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() == self) become_command();
    ::_exit(128 + SIGKILL);
  }
  if (command < 0) {
    const Reaper::Report failure{.what = Reaper::Report::What::forked, .value = -errno};
    (void)!::write(reports, &failure, sizeof failure);  // if it cannot be sent, the broken pipe tells dlock
    ::_exit(1);
  }
  (void)::setpgid(command, command);  // the command does the same; the first one counts
  // A different name than dlock's, so that "pkill -9 dlock" does not kill both.
  (void)::prctl(PR_SET_NAME, "lock-reaper");
  (void)!::chdir("/");  // so as not to keep a file system busy; the lock does not need it
  sigset_t of_children;
  ::sigemptyset(&of_children);
  ::sigaddset(&of_children, SIGCHLD);
  const int children = ::signalfd(-1, &of_children, SFD_NONBLOCK | SFD_CLOEXEC);
  if (children < 0) ::_exit(1);  // the command dies with its parent
  for (const int fd : {control, reports, children}) kept.push_back(fd);
  // Closes everything else that dlock or the caller had open: a pipe that the caller waits on, a connection.
  std::sort(kept.begin(), kept.end());
  close_all_but(kept, Closing::now);
  ReaperProcess(control, reports, children, command, tree).run();
}

}  // namespace

Reaper::Reaper(const std::vector<int>& kept, const std::function<void()>& become_command) {
  auto [control_read, control_write] = make_pipe();
  auto [reports_read, reports_write] = make_pipe();
  check(::fcntl(reports_read.get(), F_SETFL, O_NONBLOCK), "fcntl");
  std::vector<int> all_kept = kept;
  all_kept.reserve(kept.size() + 3);
  const pid_t self = ::getpid();
  pid_ = check(::fork(), "fork");
  if (pid_ == 0) {
    (void)::close(control_write.get());  // otherwise nothing would see dlock's end closed
    become_reaper(control_read.get(), reports_write.get(), all_kept, self, become_command);
  }
  control_ = std::move(control_write);
  reports_ = std::move(reports_read);
  reports_write.reset();
  pollfd source{.fd = reports_.get(), .events = POLLIN, .revents = 0};
  while (::poll(&source, 1, -1) < 0 && errno == EINTR) {
  }
  const auto forked = next_report();
  if (!forked || forked->value <= 0) {
    abandon();
    throw std::system_error(forked ? -forked->value : EAGAIN, std::generic_category(), "fork");
  }
  command_ = forked->value;
  tree_ = tree_of(pid_, self);
}

Reaper::~Reaper() {
  if (pid_ <= 0) return;
  control_.reset();  // makes it kill everything, and end
  (void)::kill(pid_, SIGCONT);
  pollfd source{.fd = reports_.get(), .events = 0, .revents = 0};
  while (reports_ && ::poll(&source, 1, patience_ms) < 0 && errno == EINTR) {
  }
  abandon();
}

std::optional<Reaper::Report> Reaper::next_report() noexcept {
  Report report{};
  const ssize_t n = read_some(reports_.get(), &report, sizeof report);
  if (n == sizeof report) return report;
  if (n == 0) reports_.reset();  // it is dead, or dying
  return std::nullopt;
}

void Reaper::end_seen() noexcept {
  if (!control_) return;
  (void)write_all(control_.get(), "s");  // if the command is dead already, its status says so
}

void Reaper::gone() noexcept {
  pid_ = -1;
  control_.reset();
  reports_.reset();
  tree_ = {};
}

void Reaper::abandon() noexcept {
  if (pid_ <= 0) return;
  kill_and_reap(pid_);
  gone();
}

}  // namespace dlock::cli
