// The directory that holds the lock files.
//
// It is opened once, and lock files are opened relative to it without following symbolic links, so no link leads out of
// it. Whenever it matters whether other processes find the same file under the path, the path is checked again.
// Serialised by the backend.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include <dlock/spi/backend.hpp>

#include "backends/file/fork_guard.hpp"
#include "backends/file/lock_file.hpp"
#include "util/unique_fd.hpp"

namespace dlock::file {

struct OpenFile {
  GuardedFd fd;
  FileIdentity identity;
};

class LockDirectory {
 public:
  // Opens the directory, making what is missing of the path with exactly these permissions; they have no effect on a
  // directory that exists. Throws Error. The path must be absolute. `below`: makes it with the permissions and the
  // group of the directory above it, for the same users.
  LockDirectory(std::string path, mode_t mode, bool below = false);

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  [[nodiscard]] std::string path_of(const std::string& file) const { return path_ + '/' + file; }

  // Whether the path leads to the directory that is open here.
  [[nodiscard]] bool is_current() const noexcept;
  // Opens (or makes) what the path leads to now.
  [[nodiscard]] std::optional<Failure> reopen();
  // systemd-tmpfiles skips a directory on which another program has a `flock`, and everything below it.
  void forbid_cleaning() const noexcept;
  void allow_cleaning() const noexcept;
  // Grows with each reopen().
  [[nodiscard]] std::uint64_t generation() const noexcept { return generation_; }

  // Opens for locking; makes the file if it is missing, with the permissions of new_file_mode(). May reopen() when the
  // directory turns out to be gone.
  [[nodiscard]] Result<OpenFile> open_or_create(const std::string& file);
  // Opens for locking what exists; without a descriptor if there is no such file.
  [[nodiscard]] Result<OpenFile> open_to_lock(const std::string& file) const;
  // The file must be locked by the caller, and be the one of that name.
  [[nodiscard]] std::optional<Failure> remove(const std::string& file) const;
  // Opens for looking only; nullopt if there is no such file.
  [[nodiscard]] Result<std::optional<util::UniqueFd>> open_existing(const std::string& file) const;
  // The same, whatever kind of file it is; empty, with errno set, if that fails.
  [[nodiscard]] util::UniqueFd open_unchecked(const std::string& file) const;
  // Which file is open; a failure if it is none that may be a lock file.
  [[nodiscard]] Result<FileIdentity> identify(int fd, const std::string& file) const;

 private:
  [[nodiscard]] Result<OpenFile> examine(GuardedFd fd, const std::string& file) const;
  [[nodiscard]] GuardedFd open_writable(const std::string& file) const;
  [[nodiscard]] GuardedFd create(const std::string& file) const;
  [[nodiscard]] GuardedFd create_shared(const std::string& file, mode_t mode, gid_t group) const;

  std::string path_;
  mode_t mode_;
  bool below_;
  util::UniqueFd fd_;
  std::uint64_t generation_ = 0;
};

// The file that the path leads to now, lock file or not; nullopt if there is none.
[[nodiscard]] Result<std::optional<FileIdentity>> find_file(const std::string& path);

// The permissions of lock files in a directory of this mode: a file is open to those who may make and remove files
// beside it, and to no other user. In a sticky directory that all users may write to, such as /tmp, that is the owner
// alone.
[[nodiscard]] mode_t new_file_mode(mode_t directory) noexcept;

// The refusal of a file system on which locks cannot be trusted.
[[nodiscard]] std::optional<Failure> problem_with_file_system(std::uint32_t magic, const std::string& path);

}  // namespace dlock::file
