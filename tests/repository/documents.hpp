// The sources and documents that tests read.
#pragma once

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace dlock::documents {

inline const std::filesystem::path kProject = DLOCK_SOURCE_DIR;

inline std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The files below these directories of the project that have one of these extensions.
inline std::vector<std::filesystem::path> files_below(const std::vector<std::string>& directories,
                                                      const std::set<std::filesystem::path>& extensions) {
  std::vector<std::filesystem::path> found;
  for (const std::string& directory : directories) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(kProject / directory)) {
      if (extensions.contains(entry.path().extension())) found.push_back(entry.path());
    }
  }
  return found;
}

// The first group of each match.
inline std::vector<std::string> matches(const std::string& text, const std::regex& pattern) {
  std::vector<std::string> found;
  for (auto at = std::sregex_iterator(text.begin(), text.end(), pattern); at != std::sregex_iterator(); ++at) {
    found.push_back(at->str(1));
  }
  return found;
}

}  // namespace dlock::documents
