// Runs a command with "--url URL" appended for each lock service that is there to be measured on this machine: memory,
// files, and servers that are started for it and stopped when it ends.
//
//   bench_servers dlock bench --quick
#include <sys/vfs.h>

#include <linux/magic.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "tests/servers/command.hpp"
#include "tests/servers/servers.hpp"
#include "torture/rig/scratch_directory.hpp"

namespace {

using dlock::bench::LocalServer;

// To wait for a disk, there has to be one.
void keep_off_memory() {
  struct statfs temporary = {};
  if (std::getenv("TMPDIR") != nullptr || ::statfs("/tmp", &temporary) != 0) return;
  if (temporary.f_type == TMPFS_MAGIC) (void)::setenv("TMPDIR", "/var/tmp", 1);  // fails for want of memory only
}

// Fewer, where a signal asks us to end meanwhile.
std::vector<std::unique_ptr<LocalServer>> start_servers(const dlock::bench::EndingSignals& signals, int& signal) {
  std::vector<std::unique_ptr<LocalServer>> servers;
  for (const auto& kind : dlock::bench::local_servers()) {
    if ((signal = signals.arrived()) != 0) break;
    std::fprintf(stderr, "starting %s\n", kind.name);
    try {
      servers.push_back(kind.start());
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s will not be measured: %s\n", kind.name, error.what());
    }
  }
  if (signal == 0) signal = signals.arrived();
  return servers;
}

int run(std::vector<std::string> command) {
  const dlock::bench::EndingSignals signals;
  keep_off_memory();
  const dlock::rig::ScratchDirectory files;
  int signal = 0;
  const auto servers = start_servers(signals, signal);
  if (signal != 0) return 128 + signal;
  for (const std::string& url : {std::string("memory://"), "file://" + files.path()}) {
    command.insert(command.end(), {"--url", url});
  }
  for (const auto& each : servers) command.insert(command.end(), {"--url", each->url()});
  return signals.run(std::move(command));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: bench_servers COMMAND [ARGUMENT...]\n");
    return 2;
  }
  try {
    return run(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_servers: %s\n", error.what());
    return 1;
  }
}
