#include "backends/file/system_failure.hpp"

#include <cerrno>
#include <system_error>

namespace dlock::file {

namespace {

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

}  // namespace

Failure system_failure(std::string_view what, std::string_view path, int error) {
  std::string detail(what);
  detail.append(" ").append(path).append(": ").append(std::generic_category().message(error));
  return {make_error_code(code_of(error)), std::move(detail)};
}

}  // namespace dlock::file
