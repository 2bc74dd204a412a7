#include "backends/common/password_file.hpp"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "util/unique_fd.hpp"

namespace dlock::common {

namespace {

constexpr std::size_t longest_password = 4096;

}  // namespace

Result<std::string> PasswordFile::read() const {
  const auto problem = [this](const std::string& why) {
    return Failure{errc::unavailable, parameter + ": \"" + path + "\": " + why};
  };
  const auto problem_of_system = [&] { return problem(std::system_category().message(errno)); };
  // O_NONBLOCK: to open a pipe without a writer must not block.
  const util::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) return problem_of_system();
  if (!S_ISREG(status.st_mode)) return problem("not a regular file, which each login could read again");
  std::array<char, longest_password + 3> bytes;  // with "\r\n", and one more to detect longer ones
  std::size_t size = 0;
  while (size < bytes.size()) {
    const ssize_t count = ::read(file.get(), bytes.data() + size, bytes.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return problem_of_system();
    if (count == 0) break;
    size += static_cast<std::size_t>(count);
  }
  std::string_view text(bytes.data(), size);
  if (text.ends_with('\n')) text.remove_suffix(text.ends_with("\r\n") ? 2 : 1);
  Result<std::string> password = std::string(text);
  ::explicit_bzero(bytes.data(), bytes.size());
  if (password.value().empty()) return problem("the file is empty");
  if (password.value().size() > longest_password) {
    return problem("a password of more than " + std::to_string(longest_password) + " bytes");
  }
  if (password.value().find_first_of(std::string_view("\n\0", 2)) != std::string::npos) {
    return problem("more than one line, where a password was expected");
  }
  return password;
}

void PasswordFile::check() const {
  if (const auto password = read(); !password.ok()) throw Error(errc::invalid_argument, password.failure().detail);
}

void login_accepted(const std::optional<PasswordFile>& file) {
  if (file) *file->accepted = true;
}

Failure login_failed(const std::optional<PasswordFile>& file, Failure why) {
  if (file && *file->accepted && why.code == errc::access_denied) why.code = errc::unavailable;
  return why;
}

std::optional<PasswordFile> take_password_file(Url& url, std::string_view parameter, bool has_password) {
  auto path = url.take(parameter);
  if (!path) return std::nullopt;
  const std::string part(parameter);
  if (path->empty()) throw Error(errc::invalid_argument, "parameter \"" + part + "\" is empty, but must name a file");
  if (has_password) throw Error(errc::invalid_argument, part + ": the URL has the password itself, too");
  return PasswordFile{.parameter = part, .path = *std::move(path)};
}

}  // namespace dlock::common
