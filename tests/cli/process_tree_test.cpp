// Processes that belong to a tree, or to a command, are signalled, and no others.
#include "cli/process_tree.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <stdexcept>

#include "cli/child.hpp"
#include "cli/leash.hpp"
#include "cli/system.hpp"
#include "support/cli_test.hpp"
#include "torture/rig/hang_guard.hpp"

namespace dlock::cli::test {
namespace {

// A process below this one, with a name that a careless reader of /proc stumbles over, and its child, which is in a
// session of its own.
class ProcessTrees : public testing::Test {
 protected:
  ProcessTrees() {
    auto [ready_read, ready_write] = make_pipe();
    parent = check(::fork(), "fork");
    if (parent == 0) {
      (void)::prctl(PR_SET_NAME, ") S 1 1 (x");
      if (::fork() == 0) {
        (void)::setsid();
        (void)!::write(ready_write.get(), "r", 1);
      }
      for (;;) ::pause();
    }
    ready_write.reset();
    char byte = 0;
    if (::read(ready_read.get(), &byte, 1) != 1) throw std::runtime_error("the processes did not start");
    const std::string number = std::to_string(parent);
    std::ifstream("/proc/" + number + "/task/" + number + "/children") >> child;
    tree = tree_of(parent, ::getpid());
  }
  ~ProcessTrees() override {
    (void)::kill(child, SIGKILL);  // it is not reaped before its parent is dead
    (void)::kill(parent, SIGKILL);
    (void)::waitpid(parent, nullptr, 0);
  }
  static bool is_dead(pid_t pid) { return Watched(pid).is_dead(); }

  pid_t parent = -1;
  pid_t child = -1;
  ProcessTree tree;
};

TEST_F(ProcessTrees, Signal_ReachesOtherSessionsButNotTheRoot) {
  const Watched watched(child);
  EXPECT_EQ(signal_tree(tree, {SIGKILL}), 1);
  EXPECT_TRUE(watched.wait_for_death());
  EXPECT_FALSE(is_dead(parent));
}

TEST_F(ProcessTrees, Tree_HasAllGenerations) {
  EXPECT_EQ(signal_tree(tree_of(::getpid(), ::getppid()), {}), 2);
}

TEST_F(ProcessTrees, TreeWithoutProcesses_SignalsNone) {
  ProcessTree excluded_child = tree_of(::getpid(), ::getppid());
  excluded_child.without = parent;
  ProcessTree reused_number_of_root = tree;
  --reused_number_of_root.root_started;
  ProcessTree older_process = tree;
  older_process.since = status_of(child)->started + 1;
  const ProcessTree other_parent_of_root = tree_of(parent, child);
  EXPECT_EQ(other_parent_of_root.root, 0);
  for (const auto& [name, each] :
       {std::pair("excluded child", excluded_child), std::pair("reused number of the root", reused_number_of_root),
        std::pair("older process", older_process), std::pair("other parent of the root", other_parent_of_root)}) {
    EXPECT_EQ(signal_tree(each, {SIGKILL}), 0) << name;
    EXPECT_FALSE(is_dead(parent) || is_dead(child)) << name;
  }
}

TEST_F(ProcessTrees, Group_IsExcludedOrSelected) {
  EXPECT_EQ(signal_tree(tree, {}, child), 0);
  EXPECT_EQ(signal_tree(tree, {}, parent), 1);
  EXPECT_EQ(signal_tree_in_group(tree, {}, child), 1);
  EXPECT_EQ(signal_tree_in_group(tree, {}, parent), 0);
}

TEST_F(ProcessTrees, ReusedNumberOfAGroup_IsNotSignalled) {
  ProcessGroup group = group_of(child);
  const Watched watched(child);
  ++group.leader_started;
  signal_group(group, SIGKILL);
  EXPECT_FALSE(watched.is_dead());
  --group.leader_started;
  signal_group(group, SIGKILL);
  EXPECT_TRUE(watched.wait_for_death());
}

TEST_F(ProcessTrees, Zombie_DoesNotCount) {
  EXPECT_TRUE(has_living_member(child));
  const Watched watched(child);
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  ASSERT_TRUE(watched.wait_for_death());
  EXPECT_EQ(::kill(-child, 0), 0) << "its parent does not reap it";
  EXPECT_FALSE(has_living_member(child));
  EXPECT_EQ(signal_tree(tree, {}), 0);
}

// --- The process of the command, with what is below it; and one that dlock hold does not outlive ---

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
