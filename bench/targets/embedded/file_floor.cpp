#include "bench/targets/embedded/file_floor.hpp"

#include <fcntl.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace dlock::bench {

namespace {

bool set_lock(int fd, short type) {
  struct flock request = {};
  request.l_type = type;
  request.l_whence = SEEK_SET;
  return ::fcntl(fd, F_OFD_SETLK, &request) == 0;
}

}  // namespace

FileFloor::FileFloor(const std::string& directory, const std::string& name) {
  std::string file = name;
  std::replace(file.begin(), file.end(), '/', '%');
  path_ = directory + "/floor-" + file;
}

void FileFloor::acquire() {
  util::UniqueFd file(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file) throw std::runtime_error("the floor cannot open its file");
  if (!set_lock(file.get(), F_WRLCK)) throw std::runtime_error("the floor's lock is held by somebody else");
  file_ = std::move(file);
}

void FileFloor::release() {
  if (!file_) throw std::runtime_error("the floor did not hold its lock");
  const bool unlocked = set_lock(file_.get(), F_UNLCK);
  file_.reset();
  if (!unlocked) throw std::runtime_error("the floor cannot unlock its file");
}

}  // namespace dlock::bench
