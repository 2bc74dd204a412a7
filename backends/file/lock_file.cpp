#include "backends/file/lock_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "util/no_file_size_signal.hpp"

namespace dlock::file {

namespace {

struct flock lock_of(int type, ByteRange range) noexcept {
  struct flock lock {};
  lock.l_type = static_cast<short>(type);
  lock.l_whence = SEEK_SET;
  lock.l_start = range.begin;
  lock.l_len = range.length;
  return lock;  // pid 0, as open-file-description locks require
}

errc code_of(int error) noexcept {
  switch (error) {
    case EACCES:
    case EPERM:
    case EROFS:
    case EFBIG:  // this process may not write so much (ulimit -f)
      return errc::access_denied;
    case ENOTDIR:
    case ENAMETOOLONG:
      return errc::invalid_argument;
    case ELOOP:   // a symbolic link where a lock file belongs
    case EISDIR:  // a directory
    case ENXIO:   // a socket
      return errc::protocol;
    case EINVAL:
    case ENOSYS:
    case EOPNOTSUPP:
      return errc::unsupported;
    default:  // no space, no descriptors, no memory, no medium: may pass
      return errc::unavailable;
  }
}

// 0 or an error number.
[[nodiscard]] int write_all(int fd, std::string_view bytes, off_t offset = 0) noexcept {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(fd, bytes.data(), bytes.size(), offset);
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    if (written == 0) return ENOSPC;
    bytes.remove_prefix(static_cast<std::size_t>(written));
    offset += written;
  }
  return 0;
}

}  // namespace

Failure system_failure(std::string_view what, std::string_view path, int error) {
  std::string detail(what);
  detail.append(" ").append(path).append(": ").append(std::generic_category().message(error));
  return {make_error_code(code_of(error)), std::move(detail)};
}

Result<LockState> take_lock(int fd, const std::string& path, LockType type, ByteRange range) {
  struct flock lock = lock_of(static_cast<int>(type), range);
  if (::fcntl(fd, F_OFD_SETLK, &lock) == 0) return LockState::free;
  if (errno == EAGAIN || errno == EACCES) return LockState::busy;
  return system_failure("cannot lock", path, errno);
}

Result<std::optional<FoundLock>> find_lock(int fd, const std::string& path, LockType type, ByteRange range) {
  struct flock lock = lock_of(static_cast<int>(type), range);
  if (::fcntl(fd, F_OFD_GETLK, &lock) != 0) return system_failure("cannot look at the lock of", path, errno);
  if (lock.l_type == F_UNLCK) return std::optional<FoundLock>();
  return std::optional<FoundLock>(
      {.type = static_cast<LockType>(lock.l_type), .range = {.begin = lock.l_start, .length = lock.l_len}});
}

Result<LockState> look_at_lock(int fd, const std::string& path, LockType type, ByteRange range) {
  auto found = find_lock(fd, path, type, range);
  if (!found.ok()) return found.failure();
  return found.value() ? LockState::busy : LockState::free;
}

void drop_lock(int fd, ByteRange range) noexcept {
  struct flock lock = lock_of(F_UNLCK, range);
  (void)::fcntl(fd, F_OFD_SETLK, &lock);  // cannot fail
}

Result<FileContent> read_content(int fd, const std::string& path, LockKind kind) {
  std::array<char, max_record + 1> bytes;
  ssize_t got = 0;
  do {
    got = ::pread(fd, bytes.data(), bytes.size(), 0);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return system_failure("cannot read", path, errno);
  const std::string_view text(bytes.data(), static_cast<std::size_t>(got));
  return FileContent{.bytes = std::string(text), .record = parse_record(text, kind)};
}

std::string read_text(int fd, off_t begin, std::size_t most) {
  std::string text(most, '\0');
  const ssize_t got = ::pread(fd, text.data(), text.size(), begin);  // of a local file: not interrupted
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

std::optional<Failure> problem_with(const RecordContent& content, std::string_view lock_name, const std::string& path) {
  if (const auto* bad = std::get_if<BadRecord>(&content)) {
    return Failure{errc::protocol, path + " is not a lock file: " + bad->reason +
                                       ". dlock left it unchanged; remove it once no program uses the lock"};
  }
  const auto* read = std::get_if<ReadRecord>(&content);
  if (read == nullptr || read->belongs_to(lock_name)) return std::nullopt;
  return Failure{errc::protocol, "file " + path + " belongs to lock \"" +
                                     read->name.value_or("with hash " + read->name_hash) + "\", not to \"" +
                                     std::string(lock_name) + "\""};
}

std::optional<Failure> write_record(int fd, const std::string& path, const FileContent& before,
                                    const LockRecord& record, std::string_view lock_name, LockKind kind,
                                    const BesideRecord& beside) {
  const auto* old = std::get_if<ReadRecord>(&before.record);
  std::string text = format_block(record, lock_name, kind);
  if (old == nullptr || !old->name) text += format_name_line(lock_name);
  const util::NoFileSizeSignal no_signal;  // in each case: a different thread may lower the limit meanwhile
  int error = write_all(fd, beside.text, beside.begin);
  const bool touched = error == 0;
  if (touched) error = write_all(fd, text);
  if (error == 0) return std::nullopt;
  // Neither needs room that the file does not have already; should it fail all the same, the next acquire says so.
  if (old == nullptr) {
    (void)!::ftruncate(fd, 0);
  } else if (touched) {
    (void)write_all(fd, before.bytes);
  }
  if (error == EFBIG) no_signal.take();
  return system_failure("cannot write", path, error);
}

}  // namespace dlock::file
