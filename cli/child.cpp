#include "cli/child.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <limits>
#include <string_view>

#include "cli/system.hpp"

namespace dlock::cli {

namespace {

std::uint64_t pid_number() noexcept {
  return static_cast<std::uint64_t>(::getpid());
}

// The inode of this process's pidfd, which no later process has; 0: the kernel has none. Async-signal-safe.
std::uint64_t pidfd_number() noexcept {
  const UniqueFd fd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  struct stat status {};
  return fd && ::fstat(fd.get(), &status) == 0 ? status.st_ino : 0;
}

// With these, a service manager names the process that it started: in any other, sd_listen_fds(3) and
// sd_watchdog_enabled(3) do nothing. So if they name dlock, the command gets them with its own number.
struct NumberOfProcess {
  std::string_view variable;
  std::uint64_t (*number)() noexcept;
};
constexpr NumberOfProcess numbers_of_process[] = {{"LISTEN_PID", pid_number},
                                                  {"LISTEN_PIDFDID", pidfd_number},
                                                  {"WATCHDOG_PID", pid_number},
                                                  {"SYSTEMD_EXEC_PID", pid_number}};
constexpr std::size_t longest_number = std::numeric_limits<std::uint64_t>::digits10 + 1;

// A place in the environment that the command's process fills in.
struct Blank {
  char* text;  // longest_number bytes, and a zero
  std::uint64_t (*number)() noexcept;
};

std::vector<Blank> make_blanks(std::vector<std::string>& environment) {
  std::vector<Blank> blanks;
  for (std::string& entry : environment) {
    const std::size_t name_end = std::min(entry.find('='), entry.size());
    const auto* const found =
        std::ranges::find(numbers_of_process, std::string_view(entry).substr(0, name_end), &NumberOfProcess::variable);
    if (found == std::end(numbers_of_process) || entry.substr(name_end) != "=" + std::to_string(found->number())) {
      continue;
    }
    entry.resize(name_end + 1);
    entry.append(longest_number, '\0');
    blanks.push_back({entry.data() + name_end + 1, found->number});
  }
  return blanks;
}

std::vector<std::string> environment_with(const decltype(Command::variables)& variables) {
  std::vector<std::string> result;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    bool replaced = false;
    for (const auto& variable : variables) replaced = replaced || variable.first == name;
    if (!replaced) result.emplace_back(text);
  }
  for (const auto& [name, value] : variables) {
    if (value) result.push_back(name + "=" + *value);
  }
  return result;
}

std::vector<char*> pointers_to(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

struct Start {
  char* const* arguments;
  char* const* environment;
  const std::vector<Blank>& blanks;
  const Inherited& inherited;
  int terminal;  // to hand over; -1: none
  int go;
  int go_write;
  int status;
};

// dlock has other threads, so between fork and exec only async-signal-safe calls are made.
[[noreturn]] void become_command(const Start& start) noexcept {
  (void)::close(start.go_write);  // otherwise it would not see dlock's end closed
  (void)::setpgid(0, 0);          // its parent does the same; the first one counts
  char word = 0;
  if (read_some(start.go, &word, 1) != 1) ::_exit(128 + SIGKILL);  // dlock died, or changed its mind
  if (start.terminal >= 0) (void)::tcsetpgrp(start.terminal, ::getpid());
  start.inherited.restore();
  for (const Blank& blank : start.blanks) {
    (void)std::to_chars(blank.text, blank.text + longest_number, blank.number());  // any number has room
  }
  ::execvpe(start.arguments[0], start.arguments, start.environment);
  const int error = errno;
  (void)!::write(start.status, &error, sizeof error);  // if dlock is gone, nothing reads it
  ::_exit(127);
}

// Copies of the descriptors of files that dlock has opened: while one is open, so is a kernel lock on the file.
std::vector<UniqueFd> copies_of_own_files(const Inherited& inherited) {
  std::vector<UniqueFd> copies;
  for (const int fd : inherited.opened_since()) {
    UniqueFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 0));  // another thread may have closed it meanwhile
    struct stat status {};
    if (copy && ::fstat(copy.get(), &status) == 0 && S_ISREG(status.st_mode)) copies.push_back(std::move(copy));
  }
  return copies;
}

}  // namespace

Child::Child(const Command& command, const Inherited& inherited, const Terminal& terminal) {
  std::vector<std::string> arguments = command.arguments;
  std::vector<std::string> environment = environment_with(command.variables);
  const std::vector<Blank> blanks = make_blanks(environment);
  const std::vector<char*> argument_pointers = pointers_to(arguments);
  const std::vector<char*> environment_pointers = pointers_to(environment);
  auto [go_read, go_write] = make_pipe();
  auto [status_read, status_write] = make_pipe();
  const Start start{.arguments = argument_pointers.data(),
                    .environment = environment_pointers.data(),
                    .blanks = blanks,
                    .inherited = inherited,
                    .terminal = terminal.interactive() ? terminal.fd() : -1,
                    .go = go_read.get(),
                    .go_write = go_write.get(),
                    .status = status_write.get()};
  const std::vector<UniqueFd> files = copies_of_own_files(inherited);
  std::vector<int> kept;
  kept.reserve(files.size());
  for (const UniqueFd& file : files) kept.push_back(file.get());
  reaper_.emplace(kept, [&start] { become_command(start); });
  pid_ = reaper_->command();
  group_ = own_group_ = group_of(pid_);
  tree_ = reaper_->tree();
  go_ = std::move(go_write);
  status_ = std::move(status_read);
}

void Child::go() {
  (void)write_all(go_.get(), "g");  // if it is dead already, its status says so
  go_.reset();
}

std::optional<int> Child::exec_failure() {
  int error = 0;
  const ssize_t n = read_some(status_.get(), &error, sizeof error);
  status_.reset();
  if (n == sizeof error) return error;
  return std::nullopt;
}

void Child::ended() noexcept {
  if (tree_.root != 0) group_ = {};
  reaper_->end_seen();
}

void Child::reaper_was_killed(const Inherited& inherited, pid_t guardian) noexcept {
  const std::uint64_t since = tree_.since;
  tree_ = {};
  if (since != 0 && !inherited.had_children()) {
    tree_ = tree_of(::getpid(), ::getppid());
    tree_.since = since;
    tree_.without = guardian;
  }
  if (tree_.root == 0) group_ = own_group_;
  reaper_->gone();
}

void Child::set_guardian(pid_t guardian) noexcept {
  if (tree_.root == ::getpid()) tree_.without = guardian;
}

void Child::signal(int signal) const noexcept {
  signal_group(group_, signal);
  if (group_.id == 0) (void)signal_tree_in_group(tree_, {signal}, pid_);
}

void Child::signal_all(std::initializer_list<int> signals) const noexcept {
  for (const int signal : signals) signal_group(group_, signal);
  (void)signal_tree(tree_, signals, group_.id);
}

bool Child::anything_left() const noexcept {
  if (tree_.root != 0) return signal_tree(tree_, {}) > 0;
  // A zombie whose parent has left the group counts for kill().
  if (tree_of(::getpid(), ::getppid()).root != 0) return has_living_member(pid_);
  return ::kill(-pid_, 0) == 0 || errno != ESRCH;
}

}  // namespace dlock::cli
