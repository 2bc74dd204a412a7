#include "cli/guardian.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdint>
#include <system_error>
#include <utility>

#include "cli/system.hpp"

namespace dlock::cli {

namespace {

// Read and written whole: smaller than PIPE_BUF.
struct Order {
  std::int64_t deadline_ns;  // on CLOCK_BOOTTIME; max: none
  ProcessGroup group;
  ProcessTree tree;
};
static_assert(sizeof(Order) <= PIPE_BUF);

// The guardian's rounds of killing processes that are left, and the pause between them.
constexpr int kill_rounds = 200;
constexpr int kill_round_ms = 10;

void arm(int timer, std::int64_t deadline_ns) noexcept {
  itimerspec spec{};
  if (deadline_ns != INT64_MAX) {
    const std::int64_t at = deadline_ns > 0 ? deadline_ns : 1;
    spec.it_value.tv_sec = at / 1'000'000'000;
    spec.it_value.tv_nsec = at % 1'000'000'000;
  }
  (void)::timerfd_settime(timer, TFD_TIMER_ABSTIME, &spec, nullptr);  // fails only for a wrong descriptor or value
}

// The next round finds a process that is just being forked, or losing its parent.
void kill_all(const Order& order) noexcept {
  signal_group(order.group, SIGKILL);
  int found_nobody = 0;
  for (int round = 0; round < kill_rounds && found_nobody < 2; ++round) {
    found_nobody = signal_tree(order.tree, {SIGKILL}, order.group.id) == 0 ? found_nobody + 1 : 0;
    (void)::poll(nullptr, 0, kill_round_ms);  // all signals are blocked
  }
}

// The guardian may be forked while dlock has other threads, so from here on only async-signal-safe calls are made.
[[noreturn]] void guard(int orders, int timer) noexcept {
  Order order{.deadline_ns = INT64_MAX, .group = {}, .tree = {}};
  pollfd sources[] = {{.fd = orders, .events = POLLIN, .revents = 0}, {.fd = timer, .events = POLLIN, .revents = 0}};
  for (;;) {
    if (::poll(sources, 2, -1) < 0) continue;  // only EINTR is possible
    if (sources[0].revents != 0) {
      const ssize_t n = ::read(orders, &order, sizeof order);
      if (n == 0) {  // dlock is gone
        kill_all(order);
        ::_exit(0);
      }
      if (n == sizeof order) arm(timer, order.deadline_ns);
    } else if (sources[1].revents != 0) {
      kill_all(order);
      arm(timer, INT64_MAX);
    }
  }
}

// The guardian's descriptors; dlock's own are all above these, see Inherited.
constexpr int orders_fd = 0;
constexpr int timer_fd = 1;
constexpr int ready_fd = 2;

[[noreturn]] void become_guardian(int orders, int ready) noexcept {
  sigset_t all;
  ::sigfillset(&all);
  (void)::sigprocmask(SIG_SETMASK, &all, nullptr);
  (void)::setsid();
  // A different name than dlock's, so that "pkill -9 dlock" does not kill both.
  (void)::prctl(PR_SET_NAME, "lock-guard");
  (void)!::chdir("/");  // so as not to keep a file system busy; the lock does not need it
  const int timer = ::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
  if (timer < 0 || ::dup2(orders, orders_fd) < 0 || ::dup2(timer, timer_fd) < 0 || ::dup2(ready, ready_fd) < 0) {
    ::_exit(1);
  }
  // Closes what dlock or the caller had open: a pipe that the caller waits on, a lock.
  close_from(ready_fd + 1);
  if (::write(ready_fd, "r", 1) != 1) ::_exit(1);
  (void)::close(ready_fd);
  guard(orders_fd, timer_fd);
}

}  // namespace

Guardian::Guardian() {
  auto [read_end, write_end] = make_pipe();
  auto [ready_read, ready_write] = make_pipe();
  check(::fcntl(write_end.get(), F_SETFL, O_NONBLOCK), "fcntl");
  pid_ = check(::fork(), "fork");
  if (pid_ == 0) become_guardian(read_end.get(), ready_write.get());
  orders_ = std::move(write_end);
  ready_write.reset();
  char word = 0;
  if (read_some(ready_read.get(), &word, 1) != 1) {
    throw std::system_error(EAGAIN, std::generic_category(), "the guardian process did not start");
  }
}

Guardian::~Guardian() {
  if (pid_ > 0) kill_and_reap(pid_);
}

bool Guardian::watch(const ProcessGroup& group, const ProcessTree& tree, TimePoint deadline) noexcept {
  const Order order{.deadline_ns = deadline.time_since_epoch().count(), .group = group, .tree = tree};
  if (::write(orders_.get(), &order, sizeof order) == sizeof order) return true;
  // It was stopped for so long that the pipe is full. If continued, it would obey the last order in it, whose deadline
  // has passed; so it is replaced.
  if (errno == EAGAIN && pid_ > 0) (void)::kill(pid_, SIGKILL);
  return false;
}

}  // namespace dlock::cli
