// What may endanger the locks in a directory.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <string>
#include <system_error>
#include <utility>

#include "backends/file/file_backend.hpp"
#include "backends/file/file_system_type.hpp"

namespace dlock::file {

namespace {

using Severity = Finding::Severity;

constexpr unsigned long enough_bytes = 1024UL * 1024;
constexpr unsigned long enough_inodes = 100;
constexpr rlim_t enough_descriptors = 1024;

std::string text_of(int error) {
  return std::generic_category().message(error);
}

std::string octal(mode_t mode) {
  std::array<char, 16> text{};
  (void)std::snprintf(text.data(), text.size(), "%04o", static_cast<unsigned>(mode & 07777));  // fits
  return text.data();
}

Finding check_directory(const LockDirectory& directory) {
  Finding finding{Severity::ok, "directory", {}};
  struct stat status {};
  if (!directory.is_current() || ::fstat(directory.fd(), &status) != 0) {
    return {Severity::warning, "directory",
            directory.path() + " was moved or removed since it was opened; the next acquire makes it anew"};
  }
  finding.message = directory.path() + ", mode " + octal(status.st_mode) + ", owner " + std::to_string(status.st_uid) +
                    ":" + std::to_string(status.st_gid);
  if (::faccessat(directory.fd(), ".", W_OK | X_OK, AT_EACCESS) != 0) {
    finding.severity = Severity::error;
    finding.message += "; this process cannot make lock files in it: " + text_of(errno);
  } else if ((status.st_mode & S_IWOTH) != 0 && (status.st_mode & S_ISVTX) == 0) {
    finding.severity = Severity::warning;
    finding.message += "; anybody may remove lock files under their holders: take away write permission, or chmod +t";
  } else if (status.st_uid != 0 && status.st_uid != ::geteuid()) {
    finding.severity = Severity::warning;
    finding.message += "; it belongs to another user, who may remove lock files under their holders";
  }
  return finding;
}

Finding check_file_system(const LockDirectory& directory) {
  struct statfs status {};
  if (::fstatfs(directory.fd(), &status) != 0) {
    return {Severity::error, "file system", "cannot be examined: " + text_of(errno)};
  }
  const FileSystemType type = file_system_type(static_cast<std::uint32_t>(status.f_type));
  switch (type.trust) {
    case LockTrust::local:
      return {Severity::ok, "file system", std::string(type.name) + ", local"};
    case LockTrust::shared:
      return {Severity::error, "file system",
              std::string(type.name) + ": the locks of other machines are not seen; use a local directory"};
    case LockTrust::unknown:
      break;
  }
  return {Severity::note, "file system",
          "type " + std::to_string(status.f_type) + " is not known; make sure that no other machine has it mounted"};
}

Finding check_space(const LockDirectory& directory) {
  struct statvfs status {};
  if (::fstatvfs(directory.fd(), &status) != 0) {
    return {Severity::error, "free space", "cannot be examined: " + text_of(errno)};
  }
  const unsigned long bytes = status.f_bavail * status.f_frsize;
  const bool few_inodes = status.f_files != 0 && status.f_favail < enough_inodes;  // 0: the file system has no limit
  Finding finding{Severity::ok, "free space", std::to_string(bytes / 1024) + " KiB"};
  if (status.f_files != 0) finding.message += ", " + std::to_string(status.f_favail) + " files";
  if (bytes < enough_bytes || few_inodes) {
    finding.severity = Severity::warning;
    finding.message += ": new locks will soon be refused";
  }
  return finding;
}

Finding check_descriptors() {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return {Severity::error, "descriptors", "the limit cannot be read: " + text_of(errno)};
  }
  if (limit.rlim_cur == RLIM_INFINITY) return {Severity::ok, "descriptors", "no limit"};
  Finding finding{Severity::ok, "descriptors", "at most " + std::to_string(limit.rlim_cur)};
  finding.message += "; every held lock takes one";
  if (limit.rlim_cur < enough_descriptors) {
    finding.severity = Severity::note;
    finding.message += ", see ulimit -n";
  }
  return finding;
}

}  // namespace

void FileBackend::diagnose(Handler<std::vector<Finding>> done) {
  std::vector<Finding> findings;
  try {
    findings.push_back(check_directory(directory_));
    findings.push_back(check_file_system(directory_));
    findings.push_back(check_inotify());
    findings.push_back(check_space(directory_));
    findings.push_back(check_descriptors());
    findings.push_back(check_lock_files());
    findings.push_back(check_permissions());
  } catch (const std::exception& e) {  // out of memory
    done(Failure{errc::unavailable, e.what()});
    return;
  }
  done(std::move(findings));
}

Finding FileBackend::check_inotify() {
  watch_directory();
  if (directory_subscription_.active()) {
    return {Severity::ok, "inotify", "available: waiters are woken, a removed lock file is noticed at once"};
  }
  return {Severity::warning, "inotify",
          "not available (" + text_of(inotify_error_) +
              "): waiting polls every 50 to 150 ms, a removed lock file is noticed within a second; raise "
              "fs.inotify.max_user_instances or max_user_watches"};
}

Finding FileBackend::check_lock_files() {
  auto files = entries();
  if (!files.ok()) return {Severity::error, "lock files", files.failure().detail};
  std::size_t unreadable = 0;
  std::string example;
  for (const auto& file : files.value()) {
    auto existing = directory_.open_existing(file);
    if (existing.ok() && !existing.value()) continue;  // removed since
    const std::string path = directory_.path_of(file);
    std::optional<Failure> problem;
    if (existing.ok()) {
      auto content = read_content(existing.value()->get(), path);
      const bool bad = content.ok() && std::holds_alternative<BadRecord>(content.value().record);
      if (bad) problem = problem_with(content.value().record, {}, path);
    } else {
      problem = existing.failure();
    }
    if (!problem) continue;
    if (unreadable++ == 0) example = problem->detail;
  }
  const std::string count = std::to_string(files.value().size());
  if (unreadable == 0) return {Severity::ok, "lock files", count};
  return {Severity::warning, "lock files",
          count + ", " + std::to_string(unreadable) + " of them not readable, e.g. " + example};
}

// Whoever may open a lock file may lock it, for reading at least, which keeps holders out as well; whoever may write it
// may write a token of his own.
Finding FileBackend::check_permissions() {
  struct stat status {};
  if (::fstat(directory_.fd(), &status) != 0) return {Severity::error, "permissions", text_of(errno)};
  const bool reachable = (status.st_mode & S_IXOTH) != 0;
  auto files = entries();
  if (!files.ok()) return {Severity::error, "permissions", files.failure().detail};
  std::size_t open_to_all = 0;
  std::string example;
  for (const auto& file : files.value()) {
    const bool found =
        ::fstatat(directory_.fd(), file.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;  // else removed since
    if (!found || !S_ISREG(status.st_mode) || !reachable || (status.st_mode & (S_IROTH | S_IWOTH)) == 0) continue;
    if (open_to_all++ == 0) example = directory_.path_of(file) + ", mode " + octal(status.st_mode);
  }
  if (open_to_all == 0) return {Severity::ok, "permissions", "no lock file is open to all users of this machine"};
  return {Severity::warning, "permissions",
          std::to_string(open_to_all) + " of " + std::to_string(files.value().size()) +
              " lock files are open to all users of this machine, e.g. " + example +
              ": any of them may keep such a lock, and one who may write may forge its token"};
}

}  // namespace dlock::file
