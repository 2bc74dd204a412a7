// A lock by hand on a file: open, lock, unlock, close.
#pragma once

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
  std::string path_;
  util::UniqueFd file_;
};

}  // namespace dlock::bench
