#include "bench/targets/embedded/file_floor.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <stdexcept>
#include <utility>

#include "backends/file/lock_record.hpp"

namespace dlock::bench {

namespace {

bool set_lock(int fd, short type) {
  struct flock request = {};
  request.l_type = type;
  request.l_whence = SEEK_SET;
  return ::fcntl(fd, F_OFD_SETLK, &request) == 0;
}

// The file begins with a token.
bool count_up(int fd) {
  std::array<char, file::max_record> record;
  const auto size = ::pread(fd, record.data(), record.size(), 0);
  std::uint64_t token = 0;
  if (size > 0) (void)std::from_chars(record.data(), record.data() + size, token);
  record.fill('\n');
  (void)std::to_chars(record.data(), record.data() + record.size(), token + 1);
  return ::pwrite(fd, record.data(), file::record_block, 0) == static_cast<ssize_t>(file::record_block);
}

}  // namespace

FileFloor::FileFloor(const std::string& directory, const std::string& name) {
  std::string file = name;
  std::replace(file.begin(), file.end(), '/', '%');
  path_ = directory + "/floor-" + file;
}

bool FileFloor::in_place() const {
  struct stat named = {};
  return ::lstat(path_.c_str(), &named) == 0 && named.st_ino == inode_;
}

void FileFloor::acquire() {
  util::UniqueFd file(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file) throw std::runtime_error("the floor cannot open its file");
  struct stat opened = {};
  if (::fstat(file.get(), &opened) != 0) throw std::runtime_error("the floor cannot use its file");
  inode_ = opened.st_ino;
  require_free(set_lock(file.get(), F_WRLCK));
  if (!in_place() || !count_up(file.get())) throw std::runtime_error("the floor cannot use its file");
  file_ = std::move(file);
}

void FileFloor::release() {
  require_held(static_cast<bool>(file_));
  const bool unlocked = in_place() && set_lock(file_.get(), F_UNLCK);
  file_.reset();
  if (!unlocked) throw std::runtime_error("the floor cannot unlock its file");
}

}  // namespace dlock::bench
