// A second process for the tests of the file backend: does what its first argument says, prints a line for each step,
// and goes on when its standard input is closed.
#include <dirent.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include <dlock/dlock.hpp>

namespace {

using Arguments = std::vector<std::string>;

void wait_for_word() {
  char byte = 0;
  while (::read(0, &byte, 1) > 0) {
  }
}

long long now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(dlock::LeaseClock::now().time_since_epoch()).count();
}

// The last argument of some says of which kind the lock is: "read", "write", "permit" (the only one); nothing for a
// plain one.
dlock::Lease acquire(const dlock::Client& client, const Arguments& arguments) {
  const std::string& name = arguments.at(1);
  const std::string kind = arguments.size() > 2 ? arguments[2] : "";
  if (kind == "read") return client.make_read_write_lock(name).acquire_shared();
  if (kind == "write") return client.make_read_write_lock(name).acquire();
  if (kind == "permit") return client.make_semaphore(name, 1).acquire();
  return client.make_lock(name).acquire();
}

// hold URL NAME [KIND]: "waiting", "held TOKEN NANOSECONDS"; then "released NANOSECONDS".
int hold(const Arguments& arguments) {
  const auto client = dlock::connect(arguments.at(0), {.label = "helper"});
  std::cout << "waiting" << std::endl;
  auto lease = acquire(client, arguments);
  std::cout << "held " << lease.token().value() << ' ' << now() << std::endl;
  wait_for_word();
  const long long before = now();
  if (!lease.release()) return 1;
  std::cout << "released " << before << std::endl;
  return 0;
}

// fork URL NAME [KIND]: holds, forks a child that stays, "forked PID"; the child prints "alive" when it has started.
int fork_child(const Arguments& arguments) {
  const auto client = dlock::connect(arguments.at(0));
  const auto lease = acquire(client, arguments);
  const pid_t child = ::fork();
  if (child == 0) {
    (void)!::write(1, "alive\n", 6);
    wait_for_word();
    ::_exit(0);
  }
  std::cout << "forked " << child << std::endl;
  wait_for_word();
  return 0;
}

// descriptors: what it inherited, one line each, then "end".
int descriptors(const Arguments&) {
  DIR* const directory = ::opendir("/proc/self/fd");
  if (directory == nullptr) return 1;
  while (const dirent* const entry = ::readdir(directory)) {
    const std::string name = entry->d_name;
    if (name == "." || name == ".." || std::stoi(name) == ::dirfd(directory)) continue;
    char target[4096] = {};
    (void)!::readlink(("/proc/self/fd/" + name).c_str(), target, sizeof target - 1);
    std::cout << name << ' ' << target << '\n';
  }
  std::cout << "end" << std::endl;
  ::closedir(directory);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, std::function<int(const Arguments&)>> commands = {
      {"hold", hold}, {"fork", fork_child}, {"descriptors", descriptors}};
  try {
    return commands.at(argc > 1 ? argv[1] : "")(Arguments(argv + 2, argv + argc));
  } catch (const std::exception& e) {
    std::cout << "error " << e.what() << std::endl;
    return 1;
  }
}
