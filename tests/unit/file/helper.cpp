// A second process for the tests of the file backend: does what its first argument says, prints a line for each step,
// and stays until it is killed.
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include <dlock/dlock.hpp>

namespace {

using Arguments = std::vector<std::string>;

// The last argument of some is the kind of the lock: "read", "write", "permit" (the only one); nothing for a plain one.
dlock::Lease acquire(const dlock::Client& client, const Arguments& arguments) {
  const std::string& name = arguments.at(2);
  const std::string kind = arguments.size() > 3 ? arguments[3] : "";
  if (kind == "read") return client.make_read_write_lock(name).acquire_shared();
  if (kind == "write") return client.make_read_write_lock(name).acquire();
  if (kind == "permit") return client.make_semaphore(name, 1).acquire();
  return client.make_lock(name).acquire();
}

// hold URL NAME [KIND]: "waiting", "held".
void hold(const Arguments& arguments) {
  const auto client = dlock::connect(arguments.at(1));
  std::cout << "waiting" << std::endl;
  const auto lease = acquire(client, arguments);
  std::cout << "held" << std::endl;
  ::pause();
}

// fork URL NAME [KIND]: holds, and forks a child that stays: "child PID".
void fork_child(const Arguments& arguments) {
  const auto client = dlock::connect(arguments.at(1));
  const auto lease = acquire(client, arguments);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    ::pause();
    ::_exit(0);
  }
  std::cout << "child " << child << std::endl;
  ::pause();
}

// descriptors: what it inherited, one line each, then "end".
void descriptors() {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    std::cout << entry.path() << ' ' << std::filesystem::read_symlink(entry, gone) << '\n';
  }
  std::cout << "end" << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments(argv + 1, argv + argc);
  try {
    if (arguments.at(0) == "hold") hold(arguments);
    if (arguments.at(0) == "fork") fork_child(arguments);
    if (arguments.at(0) == "descriptors") descriptors();
    return 0;
  } catch (const std::exception& e) {
    std::cout << "error " << e.what() << std::endl;
    return 1;
  }
}
