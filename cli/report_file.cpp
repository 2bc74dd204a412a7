#include "cli/report_file.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "cli/output.hpp"
#include "cli/system.hpp"
#include "cli/usage_error.hpp"

namespace dlock::cli {

namespace {

// The inherited descriptor that a path names. Opening the path would write its file from the beginning, or replace the
// file and the link to it.
std::optional<int> descriptor_in(std::string_view path) {
  if (path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view directory : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!path.starts_with(directory)) continue;
    path.remove_prefix(directory.size());
    int fd = -1;
    const auto [end, error] = std::from_chars(path.data(), path.data() + path.size(), fd);
    if (error == std::errc() && end == path.data() + path.size()) return fd;
    return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

ReportFile::ReportFile(const char* option, std::string path) : path_(std::move(path)) {
  const auto refuse = [&](const char* why) {
    throw UsageError(fmt::format("{}: cannot write \"{}\": {}", option, path_, why));
  };
  std::error_code ec;
  const auto status = std::filesystem::status(path_, ec);
  if (path_.empty() || std::filesystem::is_directory(status)) refuse("it is not a file");
  if (const std::optional<int> fd = descriptor_in(path_)) {
    fd_ = UniqueFd(::fcntl(*fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  } else if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    fd_ = UniqueFd(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  } else {
    open_part();
  }
  if (!fd_) refuse(std::strerror(errno));
  if (in_place() && (::fcntl(fd_.get(), F_GETFL) & O_ACCMODE) == O_RDONLY) refuse("it is open for reading only");
}

// A new file with a name that cannot be guessed, so not one that a different user has prepared, such as a link.
void ReportFile::open_part() {
  std::uint64_t bits = 0;
  if (::getrandom(&bits, sizeof bits, 0) != sizeof bits) return;
  part_ = fmt::format("{}.{:016x}.part", path_, bits);
  fd_ = UniqueFd(::open(part_.c_str(), O_WRONLY | O_CLOEXEC | O_CREAT | O_EXCL | O_NOFOLLOW, 0666));
}

ReportFile::~ReportFile() {
  if (fd_ && !in_place()) (void)::unlink(part_.c_str());  // it has nothing of value
}

void ReportFile::write(const std::string& text) {
  struct stat older {};
  if (!in_place() && ::lstat(path_.c_str(), &older) == 0 && S_ISREG(older.st_mode)) {
    (void)::fchmod(fd_.get(),
                   older.st_mode & 0777U);  // the file is our own; a file system without modes has none to keep
  }
  if (!write_all(fd_.get(), text) || (!in_place() && ::rename(part_.c_str(), path_.c_str()) != 0)) {
    throw OutputError(fmt::format("cannot write {}: {}", path_, std::strerror(errno)));
  }
  fd_.reset();
}

}  // namespace dlock::cli
