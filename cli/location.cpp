#include "cli/location.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include <dlock/error.hpp>

namespace dlock::cli {

namespace {

std::string non_empty_variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

}  // namespace

std::string default_directory() {
  return fmt::format("/run/lock/dlock-{}", ::geteuid());
}

std::string service_url(const std::optional<std::string>& option) {
  if (option) return *option;
  if (std::string url = non_empty_variable("DLOCK_URL"); !url.empty()) return url;
  const std::string directory = default_directory();
  require_private_directory(directory);
  return file_url(directory);
}

std::string file_url(std::string_view path) {
  std::string url = "file://";
  for (const char c : path) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::strchr("/-._~", c) != nullptr;
    if (plain && c != '\0') {
      url += c;
    } else {
      url += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return url;
}

void require_private_directory(const std::string& path) {
  struct stat status {};
  if ((::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) || ::lstat(path.c_str(), &status) != 0) {
    const int error = errno;
    const bool denied = error == EACCES || error == EPERM || error == EROFS;
    throw Error(denied ? errc::access_denied : errc::unavailable,
                fmt::format("cannot make the default lock directory {}: {}; name a service with --url or DLOCK_URL",
                            path, std::strerror(error)));
  }
  const char* fault = nullptr;
  if (!S_ISDIR(status.st_mode)) {
    fault = S_ISLNK(status.st_mode) ? "is a symbolic link" : "is not a directory";
  } else if (status.st_uid != ::geteuid()) {
    fault = "belongs to another user";
  } else if ((status.st_mode & 0077) != 0) {
    fault = "is open to other users";
  }
  if (fault != nullptr) {
    throw Error(errc::access_denied, fmt::format("the default lock directory {} {}; remove it, or name a service with "
                                                 "--url or DLOCK_URL",
                                                 path, fault));
  }
}

}  // namespace dlock::cli
