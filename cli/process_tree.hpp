// All processes that descend from one process, wherever they went: into other process groups, other sessions, or out of
// the reach of their parents. They are found in /proc by their parents. The process at the root must be a subreaper
// (PR_SET_CHILD_SUBREAPER), so that an orphan becomes its child instead of init's.
//
// Everything here is async-signal-safe, and allocates nothing.
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
  // In ticks since boot. Process id and start together are never used again, which the id alone is.
  std::uint64_t started = 0;
  bool dead = false;  // a zombie
};

// As /proc tells it; nullopt if there is no such process (or no /proc).
[[nodiscard]] std::optional<ProcessStatus> status_of(pid_t pid) noexcept;

// A process group, by the process that leads it or has led it.
struct ProcessGroup {
  pid_t id = 0;  // 0: none
  std::uint64_t leader_started = 0;
};

// Of a process that leads a group and has not been reaped yet.
[[nodiscard]] ProcessGroup group_of(pid_t leader) noexcept;

// Sends the signal to all members, if there are any. Does nothing if the leader's number belongs to another process by
// now; while the group has members, it cannot.
void signal_group(const ProcessGroup& group, int signal) noexcept;

struct ProcessTree {
  pid_t root = 0;  // 0: the tree is not known, and nothing is in it
  std::uint64_t root_started = 0;
  // Only what was started at that time or later is in the tree.
  std::uint64_t since = 0;
  // This child of the root is not in the tree, nor are its descendants; 0: none.
  pid_t without = 0;
};

// The descendants of that process, which must not have been reaped yet. Not known if /proc says that its parent is
// another one: then /proc belongs to another PID namespace, and means others by these numbers.
[[nodiscard]] ProcessTree tree_of(pid_t root, pid_t parent) noexcept;

// Sends the signals, in this order, to every living process in the tree but the root, and returns how many there are.
// Leaves out the members of `but_group`, if that is not 0. A process that appears, or loses its parent, at this moment
// may be missed: repeat until the root has no children.
int signal_tree(const ProcessTree& tree, std::initializer_list<int> signals, pid_t but_group = 0) noexcept;

// The same for the members of one process group only.
int signal_tree_in_group(const ProcessTree& tree, std::initializer_list<int> signals, pid_t group) noexcept;

// Whether the group has a member that is no zombie. Only where /proc means the same processes as the caller: see
// tree_of.
[[nodiscard]] bool has_living_member(pid_t group) noexcept;

}  // namespace dlock::cli
