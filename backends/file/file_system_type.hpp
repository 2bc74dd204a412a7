// Which file systems a kernel lock can be trusted on.
#pragma once

#include <cstdint>
#include <string_view>

namespace dlock::file {

enum class LockTrust {
  local,    // the kernel of this machine keeps the locks and sees every change
  shared,   // other machines or a user process may change files; locks and inotify of this kernel do not cover those
  unknown,  // not in the table; treated as local
};

struct FileSystemType {
  std::string_view name;
  LockTrust trust;
};

// Looks up statfs::f_type. Pure; any thread.
[[nodiscard]] FileSystemType file_system_type(std::uint32_t magic) noexcept;

}  // namespace dlock::file
