// A server that has processes for its work: all of them stopped, or killed, at once.
#pragma once

#include <sys/types.h>

#include <vector>

namespace dlock::test {

// The children that a process has now.
[[nodiscard]] std::vector<pid_t> children_of(pid_t parent);

// Stops a process with SIGSTOP, then its children, and waits until all of them stand still. Nobody new can come.
void freeze_tree(pid_t parent);
void thaw_tree(pid_t parent);

// Kills a process and its children with SIGKILL and waits until the children are gone. The process itself is still to
// be waited for.
void kill_tree(pid_t parent);

}  // namespace dlock::test
