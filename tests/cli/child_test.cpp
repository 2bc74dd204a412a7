// The process of the command, with what is below it; and a process that dlock hold does not outlive.
#include "cli/child.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "cli/leash.hpp"
#include "cli/system.hpp"
#include "support/cli_test.hpp"
#include "torture/rig/hang_guard.hpp"

namespace dlock::cli::test {
namespace {

// An exception in dlock must not give the lock back before the command is gone.
TEST(ChildOfDlock, Destroyed_EndsAllThatItStarted) {
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

bool is_ended(const Leash& leash, int timeout_ms) {
  pollfd source{.fd = leash.ended_fd(), .events = POLLIN, .revents = 0};
  return ::poll(&source, 1, timeout_ms) == 1;
}

// hold.transcript has the same for dlock hold.
TEST(LeashTest, DeathOfTheProcess_EndsTheLeash) {
  for (const bool pinned : {true, false}) {
    Process process({probe_path(), "wait"});
    (void)process.line();
    const Leash leash({.with_process = process.pid()}, pinned);
    EXPECT_FALSE(is_ended(leash, 0));
    process.signal(SIGKILL);  // a zombie until it is waited for
    EXPECT_TRUE(is_ended(leash, rig::hang_guard_ms)) << pinned;
  }
}

}  // namespace
}  // namespace dlock::cli::test
