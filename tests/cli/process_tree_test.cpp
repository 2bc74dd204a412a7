// Processes that belong to a tree are signalled, and no others.
#include "cli/process_tree.hpp"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <stdexcept>

#include "cli/system.hpp"
#include "support/process.hpp"

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
    child = children_of(parent).begin()->first;
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

TEST_F(ProcessTrees, DeadProcess_DoesNotCount) {
  const Watched watched(child);
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  ASSERT_TRUE(watched.wait_for_death());
  EXPECT_EQ(signal_tree(tree, {}), 0);
}

TEST_F(ProcessTrees, Tree_HasAllGenerations) {
  EXPECT_EQ(signal_tree(tree_of(::getpid(), ::getppid()), {}), 2);
}

TEST_F(ProcessTrees, ExcludedChild_IsExcludedWithItsDescendants) {
  ProcessTree mine = tree_of(::getpid(), ::getppid());
  mine.without = parent;
  EXPECT_EQ(signal_tree(mine, {SIGKILL}), 0);
  EXPECT_FALSE(is_dead(parent));
  EXPECT_FALSE(is_dead(child));
}

TEST_F(ProcessTrees, ReusedNumberOfTheRoot_GivesAnEmptyTree) {
  --tree.root_started;
  EXPECT_EQ(signal_tree(tree, {SIGKILL}), 0);
  EXPECT_FALSE(is_dead(child));
}

TEST_F(ProcessTrees, OlderProcess_IsNotInTheTree) {
  tree.since = status_of(child)->started + 1;
  EXPECT_EQ(signal_tree(tree, {SIGKILL}), 0);
  EXPECT_FALSE(is_dead(child));
}

TEST_F(ProcessTrees, OtherParentOfTheRoot_GivesNoTree) {
  EXPECT_EQ(tree_of(parent, child).root, 0);
  EXPECT_EQ(signal_tree(ProcessTree(), {SIGKILL}), 0);
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

TEST_F(ProcessTrees, Zombie_IsNoLivingMember) {
  EXPECT_TRUE(has_living_member(child));
  const Watched watched(child);
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  ASSERT_TRUE(watched.wait_for_death());
  EXPECT_EQ(::kill(-child, 0), 0) << "its parent does not reap it";
  EXPECT_FALSE(has_living_member(child));
}

}  // namespace
}  // namespace dlock::cli::test
