// All descendants of a process, wherever they went: into other process groups or sessions, or away from their parents.
// They are found by their parents in /proc. The root must be a subreaper (PR_SET_CHILD_SUBREAPER), so that orphans
// become its children instead of init's.
//
// Async-signal-safe; allocates nothing.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <initializer_list>
#include <optional>

namespace dlock::cli {

struct ProcessStatus {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t group = 0;
  // In ticks since boot. Process ids are reused; process id and start together are not.
  std::uint64_t started = 0;
  bool dead = false;  // a zombie
};

// From /proc; nullopt if there is no such process (or no /proc).
[[nodiscard]] std::optional<ProcessStatus> status_of(pid_t pid) noexcept;

// A process group, by its present or former leader.
struct ProcessGroup {
  pid_t id = 0;  // 0: none
  std::uint64_t leader_started = 0;
};

// leader: leads a group, and has not been reaped yet.
[[nodiscard]] ProcessGroup group_of(pid_t leader) noexcept;

// Sends the signal to all members, if there are any. No effect if a different process has the leader's number by now,
// which is impossible while the group has members.
void signal_group(const ProcessGroup& group, int signal) noexcept;

struct ProcessTree {
  pid_t root = 0;  // 0: the tree is unknown, and counts as empty
  std::uint64_t root_started = 0;
  // Only processes started at that time or later are in the tree.
  std::uint64_t since = 0;
  // This child of the root and its descendants are not in the tree; 0: none.
  pid_t without = 0;
};

// The descendants of that process, which must not have been reaped yet. Unknown if /proc reports a different parent:
// then /proc belongs to a different PID namespace, and its numbers mean other processes.
[[nodiscard]] ProcessTree tree_of(pid_t root, pid_t parent) noexcept;

// Sends the signals, in this order, to every living process in the tree but the root, and returns their number. Leaves
// out the members of `but_group`, if that is not 0. A process that is just being forked, or losing its parent, may be
// missed: repeat until the root has no children.
int signal_tree(const ProcessTree& tree, std::initializer_list<int> signals, pid_t but_group = 0) noexcept;

// The same for the members of one process group only.
int signal_tree_in_group(const ProcessTree& tree, std::initializer_list<int> signals, pid_t group) noexcept;

// Whether the group has a member that is no zombie. Only if /proc means the same processes as the caller: see tree_of.
[[nodiscard]] bool has_living_member(pid_t group) noexcept;

}  // namespace dlock::cli
