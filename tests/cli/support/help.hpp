// The commands of dlock, and what their help names.
#pragma once

#include <regex>
#include <set>
#include <string>
#include <vector>

namespace dlock::cli::test {

inline const std::vector<std::string> verbs{"run",    "hold",   "elect", "leader",   "status", "list",   "break",
                                            "forget", "doctor", "init",  "backends", "bench",  "torture"};

inline std::set<std::string> options_in(const std::string& help) {
  std::set<std::string> found;
  const std::string options = help.substr(0, help.find("Examples:"));
  const std::regex option("--[a-z-]+");
  for (auto it = std::sregex_iterator(options.begin(), options.end(), option); it != std::sregex_iterator(); ++it) {
    found.insert(it->str());
  }
  return found;
}

}  // namespace dlock::cli::test
