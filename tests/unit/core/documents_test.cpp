// What the documents say about the sources: that the tests exist which they name, and what they link to.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

const fs::path kRoot = DLOCK_SOURCE_DIR;

std::string contents(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> matches(const std::string& text, const std::regex& pattern) {
  std::vector<std::string> found;
  for (auto at = std::sregex_iterator(text.begin(), text.end(), pattern); at != std::sregex_iterator(); ++at) {
    found.push_back(at->str(1));
  }
  return found;
}

std::string word_at(const std::string& text, std::size_t& at) {
  at = std::min(text.find_first_not_of(" \n,(", at), text.size());
  const auto from = at;
  while (at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) != 0 || text[at] == '_')) ++at;
  return text.substr(from, at - from);
}

// Suites, tests, and "Suite.Test" of everything below tests/.
std::set<std::string> names_of_tests() {
  std::set<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / "tests")) {
    if (entry.path().extension() != ".cpp") continue;
    const std::string text = contents(entry.path());
    for (const std::string macro : {"\nTEST(", "\nTEST_F(", "\nTEST_P("}) {
      for (auto at = text.find(macro); at != std::string::npos; at = text.find(macro, at)) {
        at += macro.size();
        const std::string suite = word_at(text, at);
        const std::string test = word_at(text, at);
        names.insert({suite, test, suite + "." + test});
      }
    }
  }
  return names;
}

// The last cells of the table below "## Hazards".
std::vector<std::string> tests_of_hazards(const std::string& page) {
  std::vector<std::string> cells;
  bool below = false;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("## ")) below = line == "## Hazards";
    if (!below || !line.starts_with("| ") || !line.ends_with("|")) continue;
    const auto cell = line.rfind("| ", line.size() - 2);
    cells.push_back(line.substr(cell, line.size() - cell));
  }
  return cells;
}

std::vector<fs::path> pages() {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / "docs")) found.push_back(entry.path());
  for (const auto& entry : fs::directory_iterator(kRoot)) found.push_back(entry.path());
  std::erase_if(found, [](const fs::path& path) { return path.extension() != ".md"; });
  return found;
}

// As GitHub makes them: small letters, no punctuation, hyphens for blanks.
std::set<std::string> anchors_of(const fs::path& page) {
  std::set<std::string> anchors;
  std::istringstream lines(contents(page));
  bool code = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) code = !code;
    if (code || !line.starts_with('#')) continue;
    std::string anchor;
    for (const char c : line.substr(line.find_first_not_of("# "))) {
      const auto byte = static_cast<unsigned char>(c);
      if (std::isalnum(byte) != 0 || c == '-' || c == '_') anchor += static_cast<char>(std::tolower(byte));
      if (c == ' ') anchor += '-';
    }
    anchors.insert(anchor);
  }
  return anchors;
}

TEST(Documents, HazardsNameTestsThatExist) {
  const auto known = names_of_tests();
  const std::regex quoted("`([^`]+)`");
  for (const char* backend : {"postgres", "redis", "zookeeper"}) {
    const auto cells = tests_of_hazards(contents(kRoot / "docs/backends" / (std::string(backend) + ".md")));
    EXPECT_GT(cells.size(), 20U) << backend;
    for (const std::string& cell : cells) {
      for (const std::string& name : matches(cell, quoted)) {
        const bool path = name.find('/') != std::string::npos;
        EXPECT_TRUE(path ? fs::exists(kRoot / name) : known.contains(name)) << backend << ": " << name;
      }
    }
  }
}

TEST(Documents, LinksLeadSomewhere) {
  const std::regex link(R"(\]\(([^)\s]+)\))");
  for (const fs::path& page : pages()) {
    for (const std::string& target : matches(contents(page), link)) {
      if (target.starts_with("http")) continue;
      const auto hash = target.find('#');
      const fs::path file = hash == 0 ? page : page.parent_path() / target.substr(0, hash);
      EXPECT_TRUE(fs::exists(file)) << page << ": " << target;
      if (hash == std::string::npos) continue;
      EXPECT_TRUE(anchors_of(file).contains(target.substr(hash + 1))) << page << ": " << target;
    }
  }
}

}  // namespace
