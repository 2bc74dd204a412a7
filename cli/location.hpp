// The lock service to use without --url.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace dlock::cli {

// /run/lock/dlock-UID. All processes of a user must find the same directory, so there is no alternative, and no
// variable changes it: XDG_RUNTIME_DIR and /run/user/UID exist in a login session, but not in cron or in a system
// service. They end with the last login, and so do the user's files in /dev/shm (RemoveIPC=). PrivateTmp= gives a
// service its own /tmp and /var/tmp. System users have no home, and a home may be on a network file system.
[[nodiscard]] std::string default_directory();

// --url, else DLOCK_URL, else the file backend in the default directory. Throws Error if that cannot be created, or is
// not private to this user.
[[nodiscard]] std::string service_url(const std::optional<std::string>& option);

// "file://" and the path, escaped as in a URL.
[[nodiscard]] std::string file_url(std::string_view path);

// Creates the directory with mode 0700 if it is missing. Throws Error: access_denied if that is not permitted, or if it
// is a symbolic link, belongs to a different user, or is open to other users; else unavailable.
void require_private_directory(const std::string& path);

}  // namespace dlock::cli
