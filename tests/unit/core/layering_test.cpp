// Who may include what.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

const fs::path kRoot = DLOCK_SOURCE_DIR;

struct Include {
  fs::path file;      // relative to the root
  std::string named;  // what stands between the quotes or brackets
};

std::vector<Include> includes_below(const std::string& directory) {
  std::vector<Include> out;
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / directory)) {
    const auto extension = entry.path().extension();
    if (extension != ".hpp" && extension != ".ipp" && extension != ".cpp") continue;
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) {
      const auto start = line.find_first_not_of(" \t");
      if (start == std::string::npos || line[start] != '#') continue;
      const auto word = line.find_first_not_of(" \t", start + 1);
      if (word == std::string::npos || line.compare(word, 7, "include") != 0) continue;
      const auto open = line.find_first_of("<\"", word);
      if (open == std::string::npos) continue;
      const auto close = line.find_first_of(">\"", open + 1);
      out.push_back({fs::relative(entry.path(), kRoot), line.substr(open + 1, close - open - 1)});
    }
  }
  return out;
}

bool starts_with_one_of(const std::string& text, const std::vector<std::string>& beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](const std::string& beginning) { return text.rfind(beginning, 0) == 0; });
}

bool is_standard(const std::string& header) {
  return header.find('/') == std::string::npos && header.find('.') == std::string::npos;
}

TEST(Layering, TheTestSeesTheSources) {
  EXPECT_GT(includes_below("include").size(), 50U);
  EXPECT_GT(includes_below("src").size(), 100U);
}

// But for two that a program with an Asio of its own includes besides <dlock/dlock.hpp>.
TEST(Layering, PublicHeadersIncludeTheStandardLibraryAndEachOtherOnly) {
  for (const auto& [file, named] : includes_below("include")) {
    if (file == "include/dlock/asio.hpp" && starts_with_one_of(named, {"asio/"})) continue;
    if (file == "include/dlock/boost_asio.hpp" && starts_with_one_of(named, {"boost/"})) continue;
    EXPECT_FALSE(file == "include/dlock/dlock.hpp" && named.find("asio") != std::string::npos) << named;
    EXPECT_TRUE(is_standard(named) || starts_with_one_of(named, {"dlock/"})) << file << " includes " << named;
    if (starts_with_one_of(named, {"dlock/"})) {
      EXPECT_TRUE(fs::exists(kRoot / "include" / named)) << file << " includes " << named;
    }
  }
}

TEST(Layering, TheCoreKnowsNoBackend) {
  for (const auto& [file, named] : includes_below("src")) {
    EXPECT_FALSE(starts_with_one_of(named, {"backends/", "cli/", "torture/", "tests/", "bench/"}))
        << file << " includes " << named;
    EXPECT_FALSE(
        starts_with_one_of(named, {"hiredis", "nghttp2", "zookeeper", "libpq", "postgresql", "CLI", "nlohmann", "fmt"}))
        << file << " includes " << named;
  }
}

TEST(Layering, UtilitiesKnowNothingAboveThem) {
  for (const auto& [file, named] : includes_below("src/util")) {
    EXPECT_FALSE(
        starts_with_one_of(named, {"core/", "engine/", "dlock/spi/backend", "dlock/spi/try_backend", "dlock/client"}))
        << file << " includes " << named;
  }
  for (const auto& [file, named] : includes_below("src/engine")) {
    EXPECT_FALSE(starts_with_one_of(named, {"core/"})) << file << " includes " << named;
  }
}

// Each room of the core uses only those before it.
TEST(Layering, TheRoomsOfTheCoreAreInOrder) {
  std::vector<std::string> later = {"core/spi/", "core/client/", "core/api/"};
  for (const char* const room : {"values", "spi", "client"}) {
    const auto includes = includes_below(std::string("src/core/") + room);
    EXPECT_FALSE(includes.empty()) << room;
    for (const auto& [file, named] : includes) {
      for (const std::string& above : later) EXPECT_FALSE(named.starts_with(above)) << file << " includes " << named;
    }
    later.erase(later.begin());
  }
}

TEST(Layering, AsioIsTheEnginesAlone) {
  for (const auto& [file, named] : includes_below("src")) {
    if (!starts_with_one_of(named, {"asio"})) continue;
    EXPECT_EQ(*std::next(file.begin()), "engine") << file << " includes " << named;
  }
}

TEST(Layering, BackendsDoNotIncludeOneAnother) {
  std::set<std::string> backends;
  for (const auto& entry : fs::directory_iterator(kRoot / "backends")) {
    if (entry.is_directory()) backends.insert(entry.path().filename());
  }
  EXPECT_FALSE(backends.empty());
  const std::set<std::string> network = {"etcd", "postgres", "redis", "zookeeper"};
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
    EXPECT_FALSE(starts_with_one_of(named, {"cli/", "torture/", "tests/", "bench/"})) << file << " includes " << named;
  }
}

// What is shipped needs nothing of the tests.
TEST(Layering, ProgramsIncludeNoTests) {
  for (const std::string directory : {"cli", "bench", "torture", "examples"}) {
    const auto includes = includes_below(directory);
    EXPECT_FALSE(includes.empty()) << directory;
    for (const auto& [file, named] : includes) {
      EXPECT_FALSE(starts_with_one_of(named, {"tests/", "gtest", "gmock"})) << file << " includes " << named;
    }
  }
}

TEST(Layering, TheCommandIsOnTopOfMeasuringAndTorture) {
  for (const auto& [file, named] : includes_below("bench")) {
    EXPECT_FALSE(starts_with_one_of(named, {"cli/"})) << file << " includes " << named;
  }
  for (const auto& [file, named] : includes_below("torture")) {
    EXPECT_FALSE(starts_with_one_of(named, {"cli/", "bench/"})) << file << " includes " << named;
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
