// Scratch directories, children and clients for the tests of the file backend.
#pragma once

#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <stdexcept>
#include <string>

#include <dlock/dlock.hpp>

#include "tests/support/refusals.hpp"
#include "torture/rig/hang_guard.hpp"
#include "torture/rig/scratch_directory.hpp"
#include "torture/rig/system_call.hpp"

namespace dlock::file::test {

using dlock::rig::hang_guard;
using dlock::test::thrown_by;

inline constexpr LockKind all_kinds[] = {LockKind::lock, LockKind::read_write, LockKind::semaphore, LockKind::election};

class ScratchDirectory : public dlock::rig::ScratchDirectory {
 public:
  // A directory for locks inside it, which does not exist yet.
  [[nodiscard]] std::string locks() const { return path() + "/locks"; }
  [[nodiscard]] std::string url() const { return "file://" + locks(); }
};

// Runs the body in a forked child and answers the text of the exception that it threw, or "" if none.
[[nodiscard]] inline std::string in_child(const std::function<void()>& body) {
  std::array<int, 2> ends{};
  rig::require(::pipe2(ends.data(), O_CLOEXEC), "pipe2");
  rig::UniqueFd out(ends[0]);
  rig::UniqueFd in(ends[1]);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::alarm(static_cast<unsigned>(hang_guard.count()));
    std::string problem;
    try {
      body();
    } catch (const std::exception& e) {
      problem = std::string("failed: ") + e.what();
    }
    problem += '\n';
    const bool told = ::write(in.get(), problem.data(), problem.size()) == static_cast<ssize_t>(problem.size());
    ::_exit(told ? 0 : 1);
  }
  in.reset();
  std::string text;
  std::array<char, 4096> chunk{};
  for (ssize_t got = 0; (got = ::read(out.get(), chunk.data(), chunk.size())) > 0;) {
    text.append(chunk.data(), static_cast<std::size_t>(got));
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  if (text.empty()) return "the child crashed or hung";
  text.pop_back();
  return text;
}

// For such bodies.
inline void require(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error(what);
}
// That a system call succeeded which this machine may refuse, and otherwise says so, with errno, after `not_permitted`.
inline constexpr const char* not_permitted = "not permitted: ";
inline void require_permitted(bool done, const std::string& what) {
  const int error = errno;
  if (!done) require(false, not_permitted + what + ": " + std::strerror(error));
}

// Makes this process an unprivileged one. Permissions mean nothing to root.
inline constexpr uid_t nobody = 65534;
inline void become_nobody() {
  if (::getuid() != 0) return;
  require_permitted(::setgroups(0, nullptr) == 0 && ::setgid(nobody) == 0 && ::setuid(nobody) == 0, "becoming nobody");
}

// Into an existing file.
inline void write_to(const std::string& path, const std::string& text) {
  const rig::UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  require_permitted(::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()), path);
}

// A mount namespace of this process's own.
// Root needs a mount namespace only; other users a user namespace around it.
inline void enter_mount_namespace() {
  const uid_t user = ::getuid();
  require_permitted(::unshare(user == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) == 0, "unshare");
  if (user != 0) {
    write_to("/proc/self/setgroups", "deny");
    write_to("/proc/self/uid_map", "0 " + std::to_string(user) + " 1");
  }
  require_permitted(::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "mount");
}

inline void mount_tmpfs(const std::string& path, const std::string& options) {
  require_permitted(::mount("tmpfs", path.c_str(), "tmpfs", 0, options.c_str()) == 0, "a tmpfs at " + path);
}

// In a test: that a body in a child went well. The test is skipped, with the reason, where it was not permitted.
#define EXPECT_WELL(outcome)                                                                        \
  do {                                                                                              \
    const std::string text = (outcome);                                                             \
    if (text.find(not_permitted) != std::string::npos) GTEST_SKIP() << "needs privilege: " << text; \
    EXPECT_EQ(text, "");                                                                            \
  } while (false)

[[nodiscard]] inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline void write_file(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

// How many descriptors this process has open on files whose path ends like that.
[[nodiscard]] inline std::size_t open_descriptors(const std::string& ending = {}) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;  // a different thread closed it meanwhile
    const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
    if (!gone && target.ends_with(ending)) ++count;
  }
  return ending.empty() ? count - 1 : count;  // without the iterator's own
}

}  // namespace dlock::file::test
