// Which lock service to use, when --url does not say.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace dlock::cli {

// --url, else DLOCK_URL, else the file backend in this user's runtime directory: $XDG_RUNTIME_DIR/dlock, else
// /run/user/UID/dlock, else /tmp/dlock-UID. Throws Error(access_denied) when the directory in /tmp is not ours alone.
[[nodiscard]] std::string service_url(const std::optional<std::string>& option);

// "file://" and the path with what a URL cannot contain escaped.
[[nodiscard]] std::string file_url(std::string_view path);

// Makes the directory with mode 0700 if it is missing. Throws Error(access_denied) if it is a symbolic link, belongs
// to somebody else, or lets others in.
void require_private_directory(const std::string& path);

}  // namespace dlock::cli
