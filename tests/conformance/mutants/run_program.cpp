#include "mutants/run_program.hpp"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <system_error>

namespace dlock::conformance {

namespace {

constexpr const char* guard_variable = "DLOCK_CONFORMANCE_GUARD_MS";

// This process's environment, with the guard set, and without GoogleTest's variables: its shard is not the program's.
std::vector<std::string> environment_with(std::chrono::milliseconds guard) {
  std::vector<std::string> environment;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string variable = *each;
    if (variable.starts_with(guard_variable) || variable.starts_with("GTEST_")) continue;
    environment.push_back(variable);
  }
  environment.push_back(std::string(guard_variable) + "=" + std::to_string(guard.count()));
  return environment;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (std::string& each : strings) result.push_back(each.data());
  result.push_back(nullptr);
  return result;
}

std::string read_to_end(int fd) {
  std::string text;
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got == 0) return text;
    if (got > 0) text.append(buffer.data(), static_cast<std::size_t>(got));
    if (got < 0 && errno != EINTR) throw std::system_error(errno, std::generic_category(), "read");
  }
}

}  // namespace

Finished run_program(std::vector<std::string> arguments, std::chrono::milliseconds guard) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  auto environment = environment_with(guard);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, arguments.at(0).c_str(), &actions, nullptr, pointers(arguments).data(),
                                pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error != 0) {
    close(ends[0]);
    throw std::system_error(error, std::generic_category(), arguments[0]);
  }
  Finished result;
  result.output = read_to_end(ends[0]);
  close(ends[0]);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) result.status = WEXITSTATUS(status);
  return result;
}

}  // namespace dlock::conformance
