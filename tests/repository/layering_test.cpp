// Who may include what.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/repository/documents.hpp"

namespace {

namespace fs = std::filesystem;

using dlock::documents::files_below;
using dlock::documents::kProject;

struct Include {
  fs::path file;      // relative to the root
  std::string named;  // what stands between the quotes or brackets
};

std::vector<Include> includes_below(const std::string& directory) {
  std::vector<Include> out;
  for (const fs::path& file : files_below({directory}, {".hpp", ".ipp", ".cpp"})) {
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
      const auto open = line.find_first_of("<\"");
      if (open == std::string::npos || line.substr(0, open) != "#include ") continue;  // as clang-format writes it
      out.push_back(
          {fs::relative(file, kProject), line.substr(open + 1, line.find_first_of(">\"", open + 1) - open - 1)});
    }
  }
  return out;
}

bool starts_with_one_of(const std::string& text, const std::vector<std::string>& beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](const std::string& beginning) { return text.starts_with(beginning); });
}

bool is_standard(const std::string& header) {
  return header.find('/') == std::string::npos && header.find('.') == std::string::npos;
}

TEST(Layering, PublicHeadersIncludeTheStandardLibraryAndEachOtherOnly) {
  const auto includes = includes_below("include");
  EXPECT_GT(includes.size(), 50U) << "the test sees the sources";
  for (const auto& [file, named] : includes) {
    // But for two that a program with an Asio of its own includes besides <dlock/dlock.hpp>.
    if (file == "include/dlock/asio.hpp" && named.starts_with("asio/")) continue;
    if (file == "include/dlock/boost_asio.hpp" && named.starts_with("boost/")) continue;
    EXPECT_FALSE(file == "include/dlock/dlock.hpp" && named.find("asio") != std::string::npos) << named;
    EXPECT_TRUE(is_standard(named) || named.starts_with("dlock/")) << file << " includes " << named;
    EXPECT_TRUE(is_standard(named) || fs::exists(kProject / "include" / named)) << file << " includes " << named;
  }
}

// Includes that the sources below a directory must not have. Each room of the core uses only those before it; what is
// shipped needs nothing of the tests; the command is on top of measuring and torture.
TEST(Layering, NoDirectoryIncludesWhatIsAboveIt) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> rows = {
      {"src", {"backends/", "cli/", "torture/", "tests/", "bench/"}},
      {"src", {"hiredis", "nghttp2", "zookeeper", "libpq", "postgresql", "mysql", "mariadb", "CLI", "nlohmann", "fmt"}},
      {"src/util", {"core/", "engine/", "dlock/spi/backend", "dlock/spi/try_backend", "dlock/client"}},
      {"src/util", {"asio"}},
      {"src/engine", {"core/"}},
      {"src/core", {"asio"}},
      {"src/core/values", {"core/spi/", "core/client/", "core/api/"}},
      {"src/core/spi", {"core/client/", "core/api/"}},
      {"src/core/client", {"core/api/"}},
      {"backends", {"cli/", "torture/", "tests/", "bench/"}},
      {"cli", {"tests/", "gtest", "gmock"}},
      {"bench", {"tests/", "gtest", "gmock", "cli/"}},
      {"torture", {"tests/", "gtest", "gmock", "cli/", "bench/"}},
      {"examples", {"tests/", "gtest", "gmock"}}};
  for (const auto& [directory, refused] : rows) {
    const auto includes = includes_below(directory);
    EXPECT_FALSE(includes.empty()) << directory;
    for (const auto& [file, named] : includes) {
      EXPECT_FALSE(starts_with_one_of(named, refused)) << file << " includes " << named;
    }
  }
}

TEST(Layering, BackendsDoNotIncludeOneAnother) {
  std::set<std::string> backends;
  for (const auto& entry : fs::directory_iterator(kProject / "backends")) {
    if (entry.is_directory()) backends.insert(entry.path().filename());
  }
  EXPECT_FALSE(backends.empty());
  const std::set<std::string> network = {"etcd", "mysql", "postgres", "redis", "zookeeper"};
  for (const auto& [file, named] : includes_below("backends")) {
    const std::string own = *std::next(file.begin());
    if (!backends.contains(own)) continue;  // the file that registers them all
    EXPECT_FALSE(starts_with_one_of(named, {"core/", "engine/"}))
        << file << " includes " << named << ", which authors of other backends do not have";
    for (const auto& other : backends) {
      if (other == own || (other == "common" && network.contains(own))) continue;
      EXPECT_FALSE(starts_with_one_of(named, {"backends/" + other + "/", "../" + other + "/"}))
          << file << " includes " << named;
    }
  }
}

// It knows sockets, processes and files, and is used by what measures as well.
TEST(Layering, TheRigKnowsNoTorture) {
  for (const auto& [file, named] : includes_below("torture/rig")) {
    if (!starts_with_one_of(named, {"torture/"})) continue;
    EXPECT_TRUE(starts_with_one_of(named, {"torture/rig/"})) << file << " includes " << named;
  }
}

}  // namespace
