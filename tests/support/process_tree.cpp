#include "tests/support/process_tree.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <fstream>
#include <stdexcept>
#include <string>

#include "torture/rig/hang_guard.hpp"
#include "torture/rig/system_call.hpp"

namespace dlock::test {

namespace {

// It may have ended meanwhile.
void signal_if_there(pid_t pid, int number) {
  if (::kill(pid, number) != 0 && errno != ESRCH) throw std::system_error(errno, std::generic_category(), "kill");
}

rig::UniqueFd handle_of(pid_t pid) {
  return rig::UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

bool ends_within(const rig::UniqueFd& process, std::chrono::milliseconds limit) {
  pollfd source{.fd = process.get(), .events = POLLIN, .revents = 0};
  return ::poll(&source, 1, static_cast<int>(limit.count())) == 1;
}

// As /proc tells it: R, S, T, Z, ... Empty: there is no such process.
std::string state_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  (void)std::getline(file, text);
  const auto name_ends = text.rfind(')');
  return name_ends == std::string::npos ? std::string() : text.substr(name_ends + 2, 1);
}

void await_stopped(pid_t pid) {
  const rig::UniqueFd handle = handle_of(pid);
  const auto give_up = std::chrono::steady_clock::now() + rig::hang_guard;
  for (std::string state = state_of(pid); state != "T" && state != "Z" && !state.empty(); state = state_of(pid)) {
    if (std::chrono::steady_clock::now() > give_up) throw std::runtime_error("hang: a process does not stop");
    if (!handle || ends_within(handle, std::chrono::milliseconds(1))) return;
  }
}

}  // namespace

std::vector<pid_t> children_of(pid_t parent) {
  const std::string number = std::to_string(parent);
  std::ifstream file("/proc/" + number + "/task/" + number + "/children");
  std::vector<pid_t> children;
  for (pid_t child = 0; file >> child;) children.push_back(child);
  return children;
}

void freeze_tree(pid_t parent) {
  signal_if_there(parent, SIGSTOP);
  await_stopped(parent);
  for (const pid_t child : children_of(parent)) {
    signal_if_there(child, SIGSTOP);
    await_stopped(child);
  }
}

void thaw_tree(pid_t parent) {
  for (const pid_t child : children_of(parent)) signal_if_there(child, SIGCONT);
  signal_if_there(parent, SIGCONT);
}

void kill_tree(pid_t parent) {
  signal_if_there(parent, SIGSTOP);  // no new ones while we look
  await_stopped(parent);
  std::vector<rig::UniqueFd> handles;
  for (const pid_t child : children_of(parent)) {
    handles.push_back(handle_of(child));
    signal_if_there(child, SIGKILL);
  }
  signal_if_there(parent, SIGKILL);
  for (const rig::UniqueFd& handle : handles) {
    if (handle && !ends_within(handle, rig::hang_guard)) throw std::runtime_error("hang: a process does not end");
  }
}

}  // namespace dlock::test
