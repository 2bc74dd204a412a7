// Scratch directories, children and clients for the tests of the file backend.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include <dlock/dlock.hpp>

#include "torture/rig/hang_guard.hpp"
#include "torture/rig/scratch_directory.hpp"

namespace dlock::file::test {

using dlock::rig::hang_guard;

inline constexpr LockKind all_kinds[] = {LockKind::lock, LockKind::read_write, LockKind::semaphore, LockKind::election};

class ScratchDirectory : public dlock::rig::ScratchDirectory {
 public:
  // A directory for locks inside it, which does not exist yet.
  [[nodiscard]] std::string locks() const { return path() + "/locks"; }
  [[nodiscard]] std::string url() const { return "file://" + locks(); }
};

// Runs the body in a forked child and answers the text of the exception that it threw, or "" if none.
[[nodiscard]] std::string in_child(const std::function<void()>& body);
// For such bodies.
void require(bool condition, const std::string& what);
// That a system call succeeded which this machine may refuse, and otherwise says so, with errno, after `not_permitted`.
inline constexpr const char* not_permitted = "not permitted: ";
void require_permitted(bool done, const std::string& what);
// Makes this process an unprivileged one. Permissions mean nothing to root.
inline constexpr uid_t nobody = 65534;
void become_nobody();
// A mount namespace of this process's own.
void enter_mount_namespace();
void mount_tmpfs(const std::string& path, const std::string& options);
void write_to(const std::string& path, const std::string& text);  // into an existing file
// In a test: that a body in a child went well. The test is skipped, with the reason, where it was not permitted.
#define EXPECT_WELL(outcome)                                                                        \
  do {                                                                                              \
    const std::string text = (outcome);                                                             \
    if (text.find(not_permitted) != std::string::npos) GTEST_SKIP() << "needs privilege: " << text; \
    EXPECT_EQ(text, "");                                                                            \
  } while (false)

// The code and text of the error that f throws; an empty code if it throws none.
[[nodiscard]] Failure failure_of(const std::function<void()>& f);

[[nodiscard]] std::string read_file(const std::string& path);
void write_file(const std::string& path, const std::string& content);
// How many descriptors this process has open on files whose path ends like that.
[[nodiscard]] std::size_t open_descriptors(const std::string& ending = {});

}  // namespace dlock::file::test
