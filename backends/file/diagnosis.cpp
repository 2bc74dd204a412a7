// The doctor: checks for conditions that endanger the locks of a directory.
#include <fcntl.h>
#include <limits.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "backends/file/file_system_type.hpp"
#include "backends/file/inspector.hpp"

namespace dlock::file {

namespace {

using Severity = Finding::Severity;

constexpr unsigned long enough_bytes = 1024UL * 1024;
constexpr unsigned long enough_inodes = 100;
constexpr rlim_t enough_descriptors = 1024;
constexpr uid_t last_system_user = 999;  // SYS_UID_MAX of Debian

std::string text_of(int error) {
  return std::generic_category().message(error);
}

std::string octal(mode_t mode) {
  std::array<char, 16> text{};
  (void)std::snprintf(text.data(), text.size(), "%04o", static_cast<unsigned>(mode & 07777));  // fits
  return text.data();
}

bool belongs_to_another_user(const struct stat& status) {
  return status.st_uid != 0 && status.st_uid != ::geteuid();
}

// Whether further users and groups have entries. The group's bits of the mode limit what these allow.
bool has_access_list(const std::string& path) {
  return ::lgetxattr(path.c_str(), "system.posix_acl_access", nullptr, 0) > 0;
}

Finding check_directory(const LockDirectory& directory) {
  struct stat status {};
  if (!directory.is_current() || ::fstat(directory.fd(), &status) != 0) {
    return {Severity::warning, "directory",
            directory.path() + " was moved or removed since it was opened; the next acquire creates it again"};
  }
  const std::string what = directory.path() + ", mode " + octal(status.st_mode) + ", owner " +
                           std::to_string(status.st_uid) + ":" + std::to_string(status.st_gid);
  if (::faccessat(directory.fd(), ".", W_OK | X_OK, AT_EACCESS) != 0) {
    return {Severity::error, "directory", what + "; this process cannot make lock files in it: " + text_of(errno)};
  }
  const auto warning = [&](const char* why) { return Finding{Severity::warning, "directory", what + "; " + why}; };
  if ((status.st_mode & (S_IWOTH | S_ISVTX)) == S_IWOTH) {
    return warning(
        "every user can remove or replace the files of held locks: take away the write permission of others");
  }
  if ((status.st_mode & S_IWOTH) != 0) {
    return warning(
        "any user can create a lock's file first, and then keep the lock, or remove or replace the file while another "
        "user holds it: use a directory of your own");
  }
  if (belongs_to_another_user(status)) {
    return warning("it belongs to another user, who can remove or replace the files of held locks");
  }
  if ((status.st_mode & S_IWGRP) != 0 && has_access_list(directory.path())) {
    return warning(
        "its access control list (getfacl) may let others write: they can remove or replace the files of held locks");
  }
  return {Severity::ok, "directory", what};
}

// A path in mountinfo has blanks, control characters and backslashes as \ooo; "/" becomes empty.
std::string path_in_mountinfo(std::string_view text) {
  std::string path;
  for (; !text.empty(); text.remove_prefix(1)) {
    if (text.front() == '\\' && text.size() > 3) {
      path += static_cast<char>((text[1] - '0') * 64 + (text[2] - '0') * 8 + (text[3] - '0'));
      text.remove_prefix(3);
    } else {
      path += text.front();
    }
  }
  return path == "/" ? std::string() : path;
}

struct Mount {
  std::string id = {};
  std::string parent = {};
  std::string device = {};
  std::string root = {};
  std::string point = {};
};

// The device and the directory on it that a process finds under a path without links; empty if it cannot be read.
std::string place_of(const std::string& process, const std::string& path) {
  std::ifstream file("/proc/" + process + "/mountinfo");
  std::vector<Mount> mounts;  // those on the way
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    Mount mount;
    fields >> mount.id >> mount.parent >> mount.device >> mount.root >> mount.point;
    mount.root = path_in_mountinfo(mount.root);
    mount.point = path_in_mountinfo(mount.point);
    if ((path + "/").starts_with(mount.point + "/")) mounts.push_back(std::move(mount));
  }
  const auto first = std::ranges::find_if(
      mounts, [&](const Mount& each) { return std::ranges::find(mounts, each.parent, &Mount::id) == mounts.end(); });
  if (first == mounts.end()) return {};
  // The next mount on the path is the child with the shortest mount point. It may cover others.
  const Mount* at = &*first;
  for (const Mount* next = at; next != nullptr;) {
    at = std::exchange(next, nullptr);
    for (const Mount& each : mounts) {
      if (each.parent == at->id && each.id != at->id && (next == nullptr || each.point.size() < next->point.size())) {
        next = &each;
      }
    }
  }
  return at->device + " " + at->root + path.substr(at->point.size());
}

std::string path_without_links(const LockDirectory& directory) {
  std::array<char, PATH_MAX> path{};
  const std::string link = "/proc/self/fd/" + std::to_string(directory.fd());
  const ssize_t size = ::readlink(link.c_str(), path.data(), path.size());
  return size > 0 ? std::string(path.data(), static_cast<std::size_t>(size)) : directory.path();
}

// Locks exclude only processes that find the same directory, as long as it is there.
Finding check_reach(const LockDirectory& directory) {
  const std::string path = path_without_links(directory);
  const std::string place = place_of("self", path);
  const std::string place_of_first = place_of("1", path);
  Finding finding{Severity::ok, "reach", "process 1 finds the same directory under this path"};
  struct statfs system {};
  if (place.empty() || place_of_first.empty()) {
    finding = {Severity::note, "reach",
               "not known, because the mounts of process 1 cannot be read: processes in a different mount name space "
               "(PrivateTmp=, a container) may find a different directory"};
  } else if (place != place_of_first) {
    finding = {Severity::warning, "reach",
               "private to this mount name space (PrivateTmp=, a container, unshare): process 1 finds a different "
               "directory, or none, under this path, and processes there get the same locks at the same time"};
  } else if (::fstatfs(directory.fd(), &system) == 0 &&
             file_system_type(static_cast<std::uint32_t>(system.f_type)).name == "overlayfs") {
    finding = {Severity::note, "reach",
               "overlayfs, which is usually one container's: the host and other containers then find a different "
               "directory"};
  }
  struct stat status {};
  const char* remover = nullptr;
  if (path.starts_with("/run/user/")) {
    remover = "systemd removes it when the last session of its user ends, unless the user lingers (loginctl)";
  } else if (path.starts_with("/dev/shm/") && ::fstat(directory.fd(), &status) == 0 &&
             status.st_uid > last_system_user) {
    remover = "systemd-logind removes files in /dev/shm when the last session of their user ends (RemoveIPC=)";
  }
  if (remover != nullptr) {
    finding.severity = Severity::warning;
    finding.message += std::string("; ") + remover;
  }
  return finding;
}

Finding check_file_system(const LockDirectory& directory) {
  struct statfs status {};
  if (::fstatfs(directory.fd(), &status) != 0) {
    return {Severity::error, "file system", "cannot be examined: " + text_of(errno)};
  }
  const FileSystemType type = file_system_type(static_cast<std::uint32_t>(status.f_type));
  const std::string name(type.name);
  if (type.trust == LockTrust::local) return {Severity::ok, "file system", name + ", local"};
  if (type.trust == LockTrust::shared) {
    return {Severity::error, "file system",
            name + ": locks that other machines hold are not visible; use a local directory"};
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
  std::string message = std::to_string(bytes / 1024) + " KiB";
  const bool limited = status.f_files != 0;
  if (limited) message += ", " + std::to_string(status.f_favail) + " files";
  const bool enough_files = !limited || status.f_favail >= enough_inodes;
  if (bytes >= enough_bytes && enough_files) return {Severity::ok, "free space", message};
  return {Severity::warning, "free space", message + ": new locks will soon be refused"};
}

Finding check_descriptors() {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return {Severity::error, "descriptors", "the limit cannot be read: " + text_of(errno)};
  }
  if (limit.rlim_cur == RLIM_INFINITY) return {Severity::ok, "descriptors", "no limit"};
  const std::string message = "at most " + std::to_string(limit.rlim_cur) + "; every held lock takes one";
  if (limit.rlim_cur >= enough_descriptors) return {Severity::ok, "descriptors", message};
  return {Severity::note, "descriptors", message + ", see ulimit -n"};
}

// Lock files that have something in common.
struct Tally {
  Severity severity;
  const char* what;
  const char* consequence;
  std::size_t count = 0;
  std::string first = {};

  void add(const std::string& file) {
    if (count++ == 0) first = file;
  }
  void report(Finding& finding, std::size_t all) const {
    if (count == 0) return;
    if (finding.severity != Severity::warning) finding.severity = severity;
    if (!finding.message.empty()) finding.message += "; ";
    finding.message += std::to_string(count) + " of " + std::to_string(all) + " lock files " + what + ", e.g. " +
                       first + ": " + consequence;
  }
};

}  // namespace

std::vector<Finding> Inspector::diagnose() {
  return {check_directory(directory_),
          check_reach(directory_),
          check_file_system(directory_),
          check_inotify(),
          check_space(directory_),
          check_descriptors(),
          check_lock_files(),
          check_permissions()};
}

std::vector<Finding> Inspector::diagnose_directory() {
  return {check_directory(directory_), check_lock_files(), check_permissions()};
}

Finding Inspector::check_inotify() {
  if (losses_.watch_directory()) {
    return {Severity::ok, "inotify", "available: waiters are woken, and a removed lock file is noticed at once"};
  }
  return {Severity::warning, "inotify",
          "not available (" + text_of(client_.inotify_error) +
              "): waiters poll every 50 to 150 ms, and a removed lock file is noticed within a second; raise "
              "fs.inotify.max_user_instances or max_user_watches"};
}

Finding Inspector::check_lock_files() {
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
      auto content = read_content(existing.value()->get(), path, kind_);
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

// A user who can open a lock file can lock it, at least for reading, which excludes holders. A user who can write to it
// can forge a token. Its owner can deny all others access.
Finding Inspector::check_permissions() {
  struct stat directory {};
  if (::fstat(directory_.fd(), &directory) != 0) return {Severity::error, "permissions", text_of(errno)};
  auto files = entries();
  if (!files.ok()) return {Severity::error, "permissions", files.failure().detail};
  // Members of a group that share a directory share its files.
  const bool shared = (directory.st_mode & (S_IWGRP | S_IWOTH)) == S_IWGRP;
  Tally open_to_all{Severity::warning, "are open to all users of this machine",
                    "any of them can hold such a lock, and those with write permission can forge its token"};
  Tally open_to_listed{Severity::warning, "have an access control list (getfacl)",
                       "users that it names can hold such a lock or forge its token"};
  Tally of_others{shared ? Severity::note : Severity::warning, "belong to other users",
                  "an owner can hold such a lock, forge its token, or deny all others access to the file"};
  for (const auto& file : files.value()) {
    struct stat status {};
    const bool found = ::fstatat(directory_.fd(), file.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
    if (!found || !S_ISREG(status.st_mode)) continue;  // removed since, or no lock file
    const std::string path = directory_.path_of(file);
    const std::string with_mode = path + ", mode " + octal(status.st_mode);
    if ((directory.st_mode & S_IXOTH) != 0 && (status.st_mode & (S_IROTH | S_IWOTH)) != 0) open_to_all.add(with_mode);
    const bool listed_users_come_in = (directory.st_mode & (S_IXGRP | S_IXOTH)) != 0;
    if (listed_users_come_in && (status.st_mode & (S_IRGRP | S_IWGRP)) != 0 && has_access_list(path)) {
      open_to_listed.add(with_mode);
    }
    if (belongs_to_another_user(status)) of_others.add(path + ", owner " + std::to_string(status.st_uid));
  }
  Finding finding{Severity::ok, "permissions", {}};
  for (const Tally& each : {open_to_all, open_to_listed, of_others}) each.report(finding, files.value().size());
  if (finding.message.empty()) {
    finding.message = "no lock file is open to all users of this machine or belongs to another user";
  }
  return finding;
}

}  // namespace dlock::file
