#include "backends/file/lock_directory.hpp"

#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>
#include <vector>

#include "backends/file/file_name.hpp"
#include "backends/file/file_system_type.hpp"

namespace dlock::file {

namespace {

constexpr int directory_flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
// A FIFO or device in the place of a lock file must not make us wait or become our terminal.
constexpr int file_flags = O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
constexpr mode_t private_file = 0600;
constexpr mode_t group_bits = 0060;
constexpr mode_t others_bits = 0006;

std::vector<std::string> components_of(const std::string& path) {
  std::vector<std::string> components;
  for (const std::filesystem::path& each : std::filesystem::path(path)) {
    if (!each.empty() && !each.has_root_path() && each != ".") components.push_back(each.string());
  }
  return components;
}

std::string join(const std::vector<std::string>& components) {
  std::string path;
  for (const auto& component : components) path.append("/").append(component);
  return path;
}

Failure directory_failure(int parent, const std::string& name, const std::string& path, int error) {
  struct stat status {};
  if ((error == ELOOP || error == ENOTDIR) && ::fstatat(parent, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) {
    const char* const what = S_ISLNK(status.st_mode)   ? " is a symbolic link; name the directory itself"
                             : S_ISDIR(status.st_mode) ? " cannot be opened"
                                                       : " is not a directory";
    return {errc::invalid_argument, path + what};
  }
  return system_failure("cannot open directory", path, error);
}

// Sets the group first, so that no other group ever has its permissions. If this process may not set it (only members
// may), the file's group gets the permissions of others. The umask does not apply.
bool give_access(int fd, mode_t mode, gid_t group) noexcept {
  struct stat status {};
  if (mode != private_file && ::fstat(fd, &status) == 0 && status.st_gid != group &&
      ::fchown(fd, static_cast<uid_t>(-1), group) != 0) {
    mode = (mode & ~static_cast<mode_t>(S_IRWXG)) | ((mode & S_IRWXO) << 3U);
  }
  return ::fchmod(fd, mode) == 0;
}

// Makes a directory and opens it; another process may be doing the same.
Result<util::UniqueFd> make_directory(int parent, const std::string& name, const std::string& path, mode_t mode,
                                      bool below) {
  struct stat above {};
  if (below && ::fstat(parent, &above) != 0) return system_failure("cannot examine the directory of", path, errno);
  if (below) mode = above.st_mode & 07777;
  const bool made = ::mkdirat(parent, name.c_str(), mode & 0777) == 0;
  if (!made && errno != EEXIST) return system_failure("cannot make directory", path, errno);
  util::UniqueFd fd(::openat(parent, name.c_str(), directory_flags));
  if (!fd) return directory_failure(parent, name, path, errno);
  const bool set = !made || (below ? give_access(fd.get(), mode, above.st_gid) : ::fchmod(fd.get(), mode) == 0);
  if (!set) return system_failure("cannot set the mode of", path, errno);
  return fd;
}

Result<util::UniqueFd> open_or_make(const std::string& path, mode_t mode, bool below) {
  util::UniqueFd at(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!at) return system_failure("cannot open directory", "/", errno);
  const auto components = components_of(path);
  std::string here;
  for (std::size_t i = 0; i < components.size(); ++i) {
    const std::string& name = components[i];
    here.append("/").append(name);
    const bool last = i + 1 == components.size();
    // The way there may lead over links (/var/run); the directory itself must be one, and what is below it.
    const bool ours = last || (below && i + 2 == components.size());
    util::UniqueFd next(::openat(at.get(), name.c_str(), ours ? directory_flags : O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!next) {
      if (errno != ENOENT) return directory_failure(at.get(), name, here, errno);
      auto made = make_directory(at.get(), name, here, mode, last && below);
      if (!made.ok()) return made.failure();
      next = std::move(made.value());
    }
    at = std::move(next);
  }
  struct statfs status {};
  if (::fstatfs(at.get(), &status) != 0) return system_failure("cannot examine the file system of", path, errno);
  if (auto problem = problem_with_file_system(static_cast<std::uint32_t>(status.f_type), path)) return *problem;
  return at;
}

FileIdentity identity_of(const struct stat& status) noexcept {
  return {status.st_dev, status.st_ino};
}

}  // namespace

std::optional<Failure> problem_with_file_system(std::uint32_t magic, const std::string& path) {
  const FileSystemType type = file_system_type(magic);
  if (type.trust != LockTrust::shared) return std::nullopt;
  return Failure{errc::unsupported, path + " is on a file system of type " + std::string(type.name) +
                                        ", where this machine's kernel locks cannot be trusted; use a local directory"};
}

mode_t new_file_mode(mode_t directory) noexcept {
  const bool to_group = (directory & (S_IWGRP | S_IXGRP)) == (S_IWGRP | S_IXGRP);
  const bool to_others = (directory & (S_IWOTH | S_IXOTH)) == (S_IWOTH | S_IXOTH);
  // Strangers share such a directory, not locks: there each user has its own files.
  if (to_others && (directory & S_ISVTX) != 0) return private_file;
  return private_file | (to_group ? group_bits : 0U) | (to_others ? others_bits : 0U);
}

LockDirectory::LockDirectory(std::string path, mode_t mode, bool below)
    : path_(join(components_of(path))), mode_(mode), below_(below) {
  if (!path.starts_with('/') || path_.empty()) {
    throw Error(errc::invalid_argument, "\"" + path + "\" is not the absolute path of a directory for locks");
  }
  if (path_.size() + 1 + max_file_name >= PATH_MAX) {
    throw Error(errc::invalid_argument, "the path of the directory is too long");
  }
  if (auto problem = reopen()) throw Error(*problem);
}

bool LockDirectory::is_current() const noexcept {
  struct stat open {};
  struct stat found {};
  return ::fstat(fd_.get(), &open) == 0 && ::fstatat(AT_FDCWD, path_.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0 &&
         identity_of(open) == identity_of(found);
}

std::optional<Failure> LockDirectory::reopen() {
  auto opened = open_or_make(path_, mode_, below_);
  if (!opened.ok()) return opened.failure();
  fd_ = std::move(opened.value());
  ++generation_;
  return std::nullopt;
}

void LockDirectory::forbid_cleaning() const noexcept {
  (void)::flock(fd_.get(), LOCK_SH | LOCK_NB);  // refused while it is being cleaned; the next call may succeed
}

void LockDirectory::allow_cleaning() const noexcept {
  (void)::flock(fd_.get(), LOCK_UN);  // cannot fail
}

Result<OpenFile> LockDirectory::open_or_create(const std::string& file) {
  constexpr int attempts = 16;  // each fails only if another process makes or removes the file meanwhile
  for (int i = 0; i < attempts; ++i) {
    GuardedFd fd = open_writable(file);
    if (!fd && errno == ENOENT) {
      fd = create(file);
      if (!fd && errno == EEXIST) continue;
      if (!fd && errno == ENOENT && !is_current()) {  // the directory was removed
        if (auto problem = reopen()) return *problem;
        continue;
      }
    }
    if (!fd && errno == EINTR) continue;
    if (!fd) return system_failure("cannot open", path_of(file), errno);
    return examine(std::move(fd), file);
  }
  return Failure{errc::unavailable, path_of(file) + " keeps appearing and disappearing"};
}

Result<OpenFile> LockDirectory::open_to_lock(const std::string& file) const {
  GuardedFd fd = open_writable(file);
  if (fd) return examine(std::move(fd), file);
  if (errno == ENOENT) return OpenFile{};
  return system_failure("cannot open", path_of(file), errno);
}

Result<OpenFile> LockDirectory::examine(GuardedFd fd, const std::string& file) const {
  auto identity = identify(fd.get(), file);
  if (!identity.ok()) return identity.failure();
  return OpenFile{.fd = std::move(fd), .identity = identity.value()};
}

std::optional<Failure> LockDirectory::remove(const std::string& file) const {
  if (::unlinkat(fd_.get(), file.c_str(), 0) == 0) return std::nullopt;
  return system_failure("cannot remove", path_of(file), errno);
}

GuardedFd LockDirectory::open_writable(const std::string& file) const {
  return GuardedFd::open([&] { return ::openat(fd_.get(), file.c_str(), O_RDWR | file_flags); });
}

Result<FileIdentity> LockDirectory::identify(int fd, const std::string& file) const {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return system_failure("cannot examine", path_of(file), errno);
  if (!S_ISREG(status.st_mode)) return Failure{errc::protocol, path_of(file) + " is not a regular file"};
  if (status.st_nlink <= 1) return identity_of(status);
  return Failure{errc::protocol, path_of(file) + " has more than one name (" + std::to_string(status.st_nlink) +
                                     " hard links); a lock file must have one"};
}

GuardedFd LockDirectory::create(const std::string& file) const {
  struct stat status {};
  if (::fstat(fd_.get(), &status) != 0) return {};
  const mode_t mode = new_file_mode(status.st_mode);
  if (mode != private_file) {
    auto fd = create_shared(file, mode, status.st_gid);
    if (fd || errno == EEXIST) return fd;
  }
  auto fd = GuardedFd::open(
      [&] { return ::openat(fd_.get(), file.c_str(), O_RDWR | O_CREAT | O_EXCL | file_flags, private_file); });
  // A file system without permissions refuses.
  if (fd) (void)give_access(fd.get(), mode, status.st_gid);
  return fd;
}

// Makes the file with its final permissions from the first moment on, so that another user of the group is not refused
// at the same time. Fails where the file system cannot do that.
GuardedFd LockDirectory::create_shared(const std::string& file, mode_t mode, gid_t group) const {
  auto fd = GuardedFd::open([&] { return ::openat(fd_.get(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, private_file); });
  if (!fd) return fd;
  const std::string nameless = "/proc/self/fd/" + std::to_string(fd.get());
  if (give_access(fd.get(), mode, group) &&
      ::linkat(AT_FDCWD, nameless.c_str(), fd_.get(), file.c_str(), AT_SYMLINK_FOLLOW) == 0) {
    return fd;
  }
  const int error = errno;
  fd.reset();
  errno = error;
  return {};
}

Result<std::optional<util::UniqueFd>> LockDirectory::open_existing(const std::string& file) const {
  auto fd = open_unchecked(file);
  if (!fd && errno == ENOENT) return std::optional<util::UniqueFd>();
  if (!fd) return system_failure("cannot open", path_of(file), errno);
  auto identity = identify(fd.get(), file);
  if (!identity.ok()) return identity.failure();
  return std::optional<util::UniqueFd>(std::move(fd));
}

util::UniqueFd LockDirectory::open_unchecked(const std::string& file) const {
  return util::UniqueFd(::openat(fd_.get(), file.c_str(), O_RDONLY | file_flags));
}

Result<std::optional<FileIdentity>> find_file(const std::string& path) {
  struct stat status {};
  if (::fstatat(AT_FDCWD, path.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP) return std::optional<FileIdentity>();
    return system_failure("cannot examine", path, errno);
  }
  return std::optional<FileIdentity>(identity_of(status));
}

}  // namespace dlock::file
