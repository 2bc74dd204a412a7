#include <filesystem>

#include "arena.hpp"
#include "torture/rig/scratch_directory.hpp"

namespace dlock::torture {
namespace {

class FileArena final : public Arena {
 public:
  [[nodiscard]] std::vector<std::uint16_t> ports() const override { return {}; }
  [[nodiscard]] std::string url(const std::vector<std::uint16_t>& /*ports*/) const override {
    return "file://" + directory_.path();
  }
  // That nobody holds a lock, list() has said; the files stay, with the tokens.
  [[nodiscard]] std::vector<std::string> leftovers(LockKind /*kind*/, const std::vector<std::string>& locks) override {
    std::size_t files = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory_.path())) {
      if (entry.is_regular_file()) ++files;
    }
    if (files <= locks.size()) return {};
    return {std::to_string(files) + " files for " + std::to_string(locks.size()) + " locks"};
  }

 private:
  rig::ScratchDirectory directory_;
};

}  // namespace

std::vector<ArenaKind> file_arenas() {
  const auto make = [] { return std::make_unique<FileArena>(); };
  return {{"file", make}, read_write("file_read_write", make), semaphore("file_semaphore", make)};
}

}  // namespace dlock::torture
