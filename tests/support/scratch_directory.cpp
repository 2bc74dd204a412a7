#include "tests/support/scratch_directory.hpp"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace dlock::test {

ScratchDirectory::ScratchDirectory() : path_((std::filesystem::temp_directory_path() / "dlock-test-XXXXXX").string()) {
  if (::mkdtemp(path_.data()) == nullptr) throw std::system_error(errno, std::generic_category(), path_);
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;  // what is left in the temporary directory must not fail a test that passed
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace dlock::test
