// A lock by hand on a file, as dlock needs it: the holder checks that it is still the file of that name, reads the last
// token, and writes the next one.
#pragma once

#include <sys/types.h>

#include <string>

#include "bench/targets/floor.hpp"
#include "util/unique_fd.hpp"

namespace dlock::bench {

class FileFloor final : public Floor {
 public:
  // The directory has to be there.
  FileFloor(const std::string& directory, const std::string& name);

  void acquire() override;
  void release() override;

 private:
  [[nodiscard]] bool in_place() const;

  std::string path_;
  ino_t inode_ = 0;  // of the file that was opened
  util::UniqueFd file_;
};

}  // namespace dlock::bench
