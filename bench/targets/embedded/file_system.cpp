#include "bench/targets/embedded/file_system.hpp"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <fstream>
#include <sstream>

namespace dlock::bench {

std::string file_system_of(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) return {};
  const std::string device =
      std::to_string(::gnu_dev_major(status.st_dev)) + ":" + std::to_string(::gnu_dev_minor(status.st_dev));
  // Each line, by proc(5): mount, parent, device, root, mount point, options, any number of tags, "-", type, ...
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string word;
    words >> word >> word >> word;
    if (word != device) continue;
    while (words >> word && word != "-") continue;
    if (words >> word) return word;
  }
  return {};
}

}  // namespace dlock::bench
