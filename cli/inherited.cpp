#include "cli/inherited.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <iterator>
#include <memory>
#include <string_view>

#include "cli/signal_queue.hpp"
#include "cli/system.hpp"

namespace dlock::cli {

namespace {

// Without /proc, descriptors are probed up to here.
constexpr int highest_probed = 65536;

std::vector<int> probe_descriptors() {
  std::vector<int> found;
  for (int fd = 0; fd < highest_probed; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) found.push_back(fd);
  }
  return found;
}

std::vector<int> open_descriptors() {
  struct Close {
    void operator()(DIR* dir) const noexcept { (void)::closedir(dir); }
  };
  const std::unique_ptr<DIR, Close> dir(::opendir("/proc/self/fd"));
  if (!dir) return probe_descriptors();
  std::vector<int> found;
  while (const dirent* entry = ::readdir(dir.get())) {
    const std::string_view name = entry->d_name;
    int fd = -1;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), fd);
    if (error == std::errc() && fd != ::dirfd(dir.get())) found.push_back(fd);
  }
  std::sort(found.begin(), found.end());
  return found;
}

bool has_children() noexcept {
  siginfo_t info{};
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0 || errno != ECHILD;
}

}  // namespace

Inherited::Inherited() : descriptors_(open_descriptors()), had_children_(has_children()) {
  int fd = check(::open("/dev/null", O_RDWR | O_CLOEXEC), "open /dev/null");
  while (fd <= STDERR_FILENO) fd = check(::fcntl(fd, F_DUPFD_CLOEXEC, 0), "dup /dev/null");
  (void)::close(fd);
  struct sigaction action {};
  action.sa_handler = SIG_IGN;
  check(::sigaction(SIGXFSZ, &action, &file_size_), "sigaction");
}

void Inherited::take_over_signals() {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  check(::sigaction(SIGCHLD, &action, &chld_), "sigaction");  // if it were ignored, the command's status would be lost
  action.sa_handler = SIG_IGN;
  check(::sigaction(SIGPIPE, &action, &pipe_), "sigaction");
  const sigset_t mine = SignalQueue::signals();
  check(::sigprocmask(SIG_BLOCK, &mine, &mask_), "sigprocmask");
  taken_over_ = true;
}

std::vector<int> Inherited::opened_since() const {
  const std::vector<int> now = open_descriptors();
  std::vector<int> ours;
  std::set_difference(now.begin(), now.end(), descriptors_.begin(), descriptors_.end(), std::back_inserter(ours));
  return ours;
}

bool Inherited::ignored(int signal) const noexcept {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

void Inherited::restore() const noexcept {
  close_all_but(descriptors_, Closing::on_exec);
  (void)::sigaction(SIGXFSZ, &file_size_, nullptr);  // cannot fail with what sigaction itself reported
  if (!taken_over_) return;
  (void)::sigaction(SIGCHLD, &chld_, nullptr);
  (void)::sigaction(SIGPIPE, &pipe_, nullptr);
  (void)::sigprocmask(SIG_SETMASK, &mask_, nullptr);
}

}  // namespace dlock::cli
