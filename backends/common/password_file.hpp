// A file with a password, which is read again at each login: the password may change while a client lives.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <dlock/error.hpp>
#include <dlock/spi/result.hpp>
#include <dlock/spi/url.hpp>

namespace dlock::common {

// In tasks only, except check().
struct PasswordFile {
  std::string parameter;  // of the URL, for messages
  std::string path;
  // A login with a password of this file succeeded. Copies share it.
  std::shared_ptr<bool> accepted = std::make_shared<bool>(false);

  // The content, without the end of a line behind it. Otherwise errc::unavailable, because the file may be replaced at
  // this moment; the detail names the parameter and the file, never the content.
  [[nodiscard]] Result<std::string> read() const;
  // Throws Error(invalid_argument) if the file cannot be read now.
  void check() const;
};

// A login succeeded, with a password of the file if there is one.
void login_accepted(const std::optional<PasswordFile>& file);
// Why a login failed. After an earlier password of the file was accepted, a refused one is errc::unavailable: the file
// may be replaced soon.
[[nodiscard]] Failure login_failed(const std::optional<PasswordFile>& file, Failure why);

// Takes the parameter. Throws Error(invalid_argument) if the URL has the password itself, too, or names no file.
[[nodiscard]] std::optional<PasswordFile> take_password_file(Url& url, std::string_view parameter, bool has_password);

}  // namespace dlock::common
