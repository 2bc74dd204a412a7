// The kernel's lock on a lock file, and the record in it. Each call is one or two system calls on a local file. Any
// thread.
#pragma once

#include <fcntl.h>
#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <dlock/lock_kind.hpp>
#include <dlock/spi/backend.hpp>

#include "backends/file/lock_record.hpp"

namespace dlock::file {

// A failure "<what> <path>: <text of the error>", with the code by what the caller should do about it.
[[nodiscard]] Failure system_failure(std::string_view what, std::string_view path, int error);

// Which file it is, whatever its name.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

enum class LockState { free, busy };

struct ByteRange {
  off_t begin = 0;
  off_t length = 0;  // 0: to the end of all files
};
// The read lock of a range is shared, the write lock excludes both.
enum class LockType : short { read = F_RDLCK, write = F_WRLCK };

// Takes the lock of those bytes, whether the file has them or not, for this open file description, which has it after
// `free`. Descriptors of two calls of open() exclude each other, in one process as in two; descriptors of one open() do
// not. A lock that the description has of those bytes already changes to this type.
[[nodiscard]] Result<LockState> take_lock(int fd, const std::string& path, LockType type = LockType::write,
                                          ByteRange range = {});
// Works on a read-only descriptor, whose closing wakes no waiter.
[[nodiscard]] Result<LockState> look_at_lock(int fd, const std::string& path, LockType type = LockType::write,
                                             ByteRange range = {});
void drop_lock(int fd, ByteRange range = {}) noexcept;

struct FoundLock {
  LockType type;
  ByteRange range;
};
// A lock of another description that keeps this one from being taken; nullopt: there is none.
[[nodiscard]] Result<std::optional<FoundLock>> find_lock(int fd, const std::string& path, LockType type,
                                                         ByteRange range);

struct FileContent {
  std::string bytes;
  RecordContent record;
};

[[nodiscard]] Result<FileContent> read_content(int fd, const std::string& path, LockKind kind = LockKind::lock);
// At most `most` bytes from `begin` on; empty if they cannot be read.
[[nodiscard]] std::string read_text(int fd, off_t begin, std::size_t most);

// The failure if the content is not a record of this lock. It is reported, never repaired: the file may be a different
// program's data.
[[nodiscard]] std::optional<Failure> problem_with(const RecordContent& content, std::string_view lock_name,
                                                  const std::string& path);

// A slot, or a value: written before the record, which makes it valid. Nothing if there is no text.
struct BesideRecord {
  off_t begin = 0;
  std::string text = {};
};

// Writes the record over `before`, which must be a record of this lock or none. On failure the old content is put back.
[[nodiscard]] std::optional<Failure> write_record(int fd, const std::string& path, const FileContent& before,
                                                  const LockRecord& record, std::string_view lock_name,
                                                  LockKind kind = LockKind::lock, const BesideRecord& beside = {});

}  // namespace dlock::file
