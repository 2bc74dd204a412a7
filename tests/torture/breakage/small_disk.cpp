#include "tests/torture/breakage/small_disk.hpp"

#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "torture/rig/scratch_directory.hpp"
#include "torture/rig/system_call.hpp"
#include "util/unique_fd.hpp"

namespace dlock::torture {

bool SmallDisk::available(std::string& why_not) {
  const rig::ScratchDirectory place;
  try {
    const SmallDisk disk(place.path());
    return true;
  } catch (const std::system_error& e) {
    why_not = e.what();
    return false;
  }
}

SmallDisk::SmallDisk(std::string directory) : path_(std::move(directory)) {
  std::filesystem::create_directories(path_);
  const char* const options = "mode=0700,size=256k";
  if (::mount("tmpfs", path_.c_str(), "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, options) != 0) {
    rig::fail("cannot mount a file system at " + path_);
  }
}

SmallDisk::~SmallDisk() {
  // Lazily if it is busy; nothing more can be done.
  if (::umount2(path_.c_str(), UMOUNT_NOFOLLOW) != 0) (void)::umount2(path_.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW);
}

void SmallDisk::fill() {
  const util::UniqueFd file(::open(filler().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!file) rig::fail("cannot make " + filler());
  const std::array<char, 4096> page{};
  for (std::size_t size = page.size(); size > 0;) {
    if (::write(file.get(), page.data(), size) > 0) continue;
    if (errno != ENOSPC) rig::fail("cannot fill " + path_);
    size /= 2;
  }
}

void SmallDisk::free() {
  if (::unlink(filler().c_str()) != 0 && errno != ENOENT) rig::fail("cannot remove " + filler());
}

}  // namespace dlock::torture
