#include "cli/process_tree.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <string_view>

#include "cli/system.hpp"

namespace dlock::cli {

namespace {

// Longer chains of parents are not followed to their end.
constexpr int deepest = 4096;

template <class Number>
[[nodiscard]] bool parse(std::string_view text, Number& number) noexcept {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

[[nodiscard]] std::string_view next_word(std::string_view& text) noexcept {
  const auto end = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

// "PID (NAME) STATE PARENT GROUP ..."; the start time is the 22nd field. The name may have blanks and brackets.
[[nodiscard]] std::optional<ProcessStatus> parse_stat(std::string_view text, pid_t pid) noexcept {
  constexpr int fields_between_group_and_start = 16;
  const auto name_end = text.rfind(')');
  if (name_end == std::string_view::npos || name_end + 2 > text.size()) return std::nullopt;
  text.remove_prefix(name_end + 2);
  ProcessStatus status{.pid = pid};
  const std::string_view state = next_word(text);
  status.dead = state == "Z" || state == "X";
  if (!parse(next_word(text), status.parent) || !parse(next_word(text), status.group)) return std::nullopt;
  for (int i = 0; i < fields_between_group_and_start; ++i) (void)next_word(text);
  if (!parse(next_word(text), status.started)) return std::nullopt;
  return status;
}

// The root is read after its child: so it was the parent that the child named.
[[nodiscard]] bool is_root(const ProcessTree& tree, const ProcessStatus& child) noexcept {
  if (child.parent != tree.root || child.pid == tree.without) return false;
  const auto root = status_of(tree.root);
  return root && root->started == tree.root_started;
}

[[nodiscard]] bool is_in(const ProcessTree& tree, ProcessStatus process) noexcept {
  if (process.started < tree.since) return false;
  for (int depth = 0; depth < deepest; ++depth) {
    if (process.parent == tree.root) return is_root(tree, process);
    const auto parent = status_of(process.parent);
    // A parent is never younger than its child: this one has reused the number of the parent, which has died.
    if (!parent || parent->started > process.started || parent->started < tree.since) return false;
    process = *parent;
  }
  return false;
}

// The process is pinned before it is read again, so the signal goes to the process that was read, even if its number is
// reused. If the system refuses that (no such call, no descriptor left), only the second read protects.
[[nodiscard]] bool signal_if_in(const ProcessTree& tree, const ProcessStatus& seen,
                                std::initializer_list<int> signals) noexcept {
  const UniqueFd pinned(static_cast<int>(::syscall(SYS_pidfd_open, seen.pid, 0)));
  if (!pinned && errno == ESRCH) return false;
  const auto now = status_of(seen.pid);
  if (!now || now->dead || now->started != seen.started || !is_in(tree, *now)) return false;
  for (const int signal : signals) {
    // It may have died; or it belongs to a different user and lives on, which the caller finds out.
    if (pinned) {
      (void)::syscall(SYS_pidfd_send_signal, pinned.get(), signal, nullptr, 0);
    } else {
      (void)::kill(seen.pid, signal);
    }
  }
  return true;
}

template <class Visit>
void for_each_process(const Visit& visit) noexcept {
  const UniqueFd proc(::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!proc) return;
  alignas(dirent64) std::array<char, 4096> entries;
  for (;;) {
    const ssize_t size = ::getdents64(proc.get(), entries.data(), entries.size());
    if (size <= 0) return;
    for (ssize_t at = 0; at < size;) {
      // The kernel aligns each entry.
      const auto* entry = reinterpret_cast<const dirent64*>(entries.data() + at);
      at += entry->d_reclen;
      pid_t pid = 0;
      if (parse(std::string_view(entry->d_name), pid)) visit(pid);
    }
  }
}

template <class Wanted>
int signal_wanted(const ProcessTree& tree, std::initializer_list<int> signals, const Wanted& wanted) noexcept {
  int count = 0;
  if (tree.root == 0) return count;
  for_each_process([&](pid_t pid) {
    const auto status = status_of(pid);
    // Most processes of a machine are older than the tree, and are skipped here.
    if (!status || status->started < tree.since || status->dead || pid == tree.root || !wanted(*status)) return;
    if (is_in(tree, *status) && signal_if_in(tree, *status, signals)) ++count;
  });
  return count;
}

}  // namespace

std::optional<ProcessStatus> status_of(pid_t pid) noexcept {
  constexpr std::string_view prefix = "/proc/";
  constexpr std::string_view suffix = "/stat";
  if (pid <= 0) return std::nullopt;
  std::array<char, 64> path{};
  char* end = std::copy(prefix.begin(), prefix.end(), path.data());
  end = std::to_chars(end, path.data() + path.size() - suffix.size() - 1, pid).ptr;
  std::copy(suffix.begin(), suffix.end(), end);
  const UniqueFd file(::open(path.data(), O_RDONLY | O_CLOEXEC));
  if (!file) return std::nullopt;
  std::array<char, 1024> text;
  const ssize_t size = read_some(file.get(), text.data(), text.size());
  if (size <= 0) return std::nullopt;
  return parse_stat({text.data(), static_cast<std::size_t>(size)}, pid);
}

ProcessGroup group_of(pid_t leader) noexcept {
  const auto status = status_of(leader);
  return {.id = leader, .leader_started = status ? status->started : 0};
}

void signal_group(const ProcessGroup& group, int signal) noexcept {
  if (group.id <= 0) return;
  const auto leader = status_of(group.id);
  if (leader && leader->started != group.leader_started) return;
  (void)::kill(-group.id, signal);  // ESRCH: there are no members, which the caller finds out next
}

ProcessTree tree_of(pid_t root, pid_t parent) noexcept {
  const auto status = status_of(root);
  if (!status || status->parent != parent) return {};
  return {.root = root, .root_started = status->started, .since = status->started};
}

int signal_tree(const ProcessTree& tree, std::initializer_list<int> signals, pid_t but_group) noexcept {
  return signal_wanted(
      tree, signals, [but_group](const ProcessStatus& status) { return but_group == 0 || status.group != but_group; });
}

int signal_tree_in_group(const ProcessTree& tree, std::initializer_list<int> signals, pid_t group) noexcept {
  return signal_wanted(tree, signals, [group](const ProcessStatus& status) { return status.group == group; });
}

bool has_living_member(pid_t group) noexcept {
  bool found = false;
  for_each_process([&](pid_t pid) {
    const auto status = found ? std::nullopt : status_of(pid);
    found = found || (status && status->group == group && !status->dead);
  });
  return found;
}

}  // namespace dlock::cli
