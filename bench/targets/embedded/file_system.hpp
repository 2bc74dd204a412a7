// What kind of file system a directory is on.
#pragma once

#include <string>

namespace dlock::bench {

// "ext4", "tmpfs"; empty if that cannot be found out.
[[nodiscard]] std::string file_system_of(const std::string& path);

}  // namespace dlock::bench
