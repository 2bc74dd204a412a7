// The process of the command, and what is below it.
#include "cli/child.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "cli/system.hpp"
#include "support/cli_test.hpp"

namespace dlock::cli::test {
namespace {

// An exception in dlock must not give the lock back before the command is gone.
TEST(ChildOfDlock, EndsWithEverythingItHasStartedWhenItsObjectIsDestroyed) {
  const Inherited inherited;
  auto [out_read, out_write] = make_pipe();
  std::vector<Watched> watched;
  {
    const std::string script = "exec >/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(out_write.get()) +
                               "; setsid -f \"$0\" stubborn; exec \"$0\" stubborn";
    Child child({.arguments = {"sh", "-c", script, probe_path()}, .variables = {}}, inherited, Terminal());
    child.go();
    std::string said;
    while (std::count(said.begin(), said.end(), '\n') < 2) {
      char byte = 0;
      ASSERT_EQ(::read(out_read.get(), &byte, 1), 1);
      said += byte;
    }
    std::istringstream lines(said);
    for (std::string line; std::getline(lines, line);) watched.emplace_back(pids_in(line).at(0));
  }
  (void)::signal(SIGXFSZ, SIG_DFL);  // Inherited ignores it, and other tests start programs in this process
  ASSERT_EQ(watched.size(), 2U);
  for (const Watched& process : watched) EXPECT_TRUE(process.is_dead());
}

}  // namespace
}  // namespace dlock::cli::test
