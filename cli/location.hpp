// Which lock service to use, when --url does not say.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace dlock::cli {

// /run/lock/dlock-UID. All processes of a user must find the same place, so nothing else is tried, and no variable
// leads elsewhere: XDG_RUNTIME_DIR and /run/user/UID exist in a login session, and not in cron or in a system service.
// They end with the last login, and so do the user's files in /dev/shm (RemoveIPC=). PrivateTmp= gives a service its
// own /tmp and /var/tmp. System users have no home, and a home may be on a network file system.
[[nodiscard]] std::string default_directory();

// --url, else DLOCK_URL, else the file backend in the default directory. Throws Error where that cannot be made, or is
// not this user's alone.
[[nodiscard]] std::string service_url(const std::optional<std::string>& option);

// "file://" and the path with what a URL cannot contain escaped.
[[nodiscard]] std::string file_url(std::string_view path);

// Makes the directory with mode 0700 if it is missing. Throws Error: access_denied if that is not permitted, or if it
// is a symbolic link, belongs to a different user, or is open to other users; else unavailable.
void require_private_directory(const std::string& path);

}  // namespace dlock::cli
