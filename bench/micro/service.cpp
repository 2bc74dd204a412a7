#include "service.hpp"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace bench {

ScratchDirectory::ScratchDirectory() : path_((std::filesystem::temp_directory_path() / "dlock-bench-XXXXXX").string()) {
  if (::mkdtemp(path_.data()) == nullptr) throw std::system_error(errno, std::generic_category(), path_);
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;  // what is left is only rubbish in the temporary directory
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace bench
