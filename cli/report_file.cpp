#include "cli/report_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "cli/arguments.hpp"
#include "cli/output.hpp"
#include "cli/system.hpp"

namespace dlock::cli {

namespace {

constexpr int most_left_behind = 100;  // by earlier processes of the same number

}  // namespace

ReportFile::ReportFile(const char* option, std::string path) : path_(std::move(path)) {
  const auto refuse = [&](const char* why) {
    throw UsageError(fmt::format("{}: cannot write \"{}\": {}", option, path_, why));
  };
  std::error_code ec;
  const auto status = std::filesystem::status(path_, ec);
  if (path_.empty() || std::filesystem::is_directory(status)) refuse("it is not a file");
  // What is no file, such as /dev/stdout, is written to, not replaced.
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    part_ = path_;
    fd_.reset(::open(part_.c_str(), O_WRONLY | O_CLOEXEC));
  }
  // A new one, and nothing that somebody else has put there, such as a link to another file.
  for (int i = 0; part_ != path_ && !fd_ && i < most_left_behind; ++i) {
    part_ = fmt::format("{}.{}-{}.part", path_, ::getpid(), i);
    fd_.reset(::open(part_.c_str(), O_WRONLY | O_CLOEXEC | O_CREAT | O_EXCL | O_NOFOLLOW, 0666));
    if (!fd_ && errno != EEXIST) break;
  }
  if (!fd_) refuse(std::strerror(errno));
}

ReportFile::~ReportFile() {
  if (fd_ && !in_place()) (void)::unlink(part_.c_str());  // nothing of worth is in it
}

void ReportFile::write(const std::string& text) {
  if (!write_all(fd_.get(), text) || (!in_place() && ::rename(part_.c_str(), path_.c_str()) != 0)) {
    throw OutputError(fmt::format("cannot write {}: {}", path_, std::strerror(errno)));
  }
  fd_.reset();
}

}  // namespace dlock::cli
