// The kernel's lock on a lock file, and the record in it. Every call is one or two system calls on a local file. Any
// thread.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>
#include <string_view>

#include <dlock/backend.hpp>

#include "backends/file/lock_record.hpp"

namespace dlock::file {

// Which file it is, whatever its name.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

enum class LockState { free, busy };

// Takes the whole file's write lock for this open file description: `free` means that it is ours now. Two descriptors
// from two calls of open() exclude each other, in one process as in two; descriptors of one open() do not.
[[nodiscard]] Result<LockState> take_lock(int fd, const std::string& path);
// Looks without taking. Works on a read-only descriptor, whose closing wakes nobody.
[[nodiscard]] Result<LockState> look_at_lock(int fd, const std::string& path);
void drop_lock(int fd) noexcept;

struct FileContent {
  std::string bytes;
  RecordContent record;
};

[[nodiscard]] Result<FileContent> read_content(int fd, const std::string& path);

// What read_content() found, as an error if it is not a record of this lock. To be reported, never repaired: the file
// may be somebody's data.
[[nodiscard]] std::optional<Failure> problem_with(const RecordContent& content, std::string_view lock_name,
                                                  const std::string& path);

// Writes the record over `before`, which must be a record of this lock or none. On failure the old content is put back.
[[nodiscard]] std::optional<Failure> write_record(int fd, const std::string& path, const FileContent& before,
                                                  const LockRecord& record, std::string_view lock_name);

}  // namespace dlock::file
