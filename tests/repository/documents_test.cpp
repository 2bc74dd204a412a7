// What the documents say about the sources: that the tests and runs exist which they name, and what they link to.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/repository/documents.hpp"

namespace {

namespace fs = std::filesystem;

using dlock::documents::contents;
using dlock::documents::kProject;
using dlock::documents::matches;

std::string word_at(const std::string& text, std::size_t& at) {
  at = std::min(text.find_first_not_of(" \n,(", at), text.size());
  const auto from = at;
  while (at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) != 0 || text[at] == '_')) ++at;
  return text.substr(from, at - from);
}

constexpr std::array backends{"etcd", "file", "memory", "mysql", "postgres", "redis", "zookeeper"};

// Whether it is in a directory of that backend, or in none of a backend.
bool concerns(const fs::path& file, const std::string& backend) {
  return std::all_of(file.begin(), file.end(), [&](const fs::path& part) {
    return part == backend || std::find(backends.begin(), backends.end(), part) == backends.end();
  });
}

const std::map<std::string, std::string> tables{{"script_rules.cpp", "ScriptRules"},
                                                {"queue_scenarios_test.cpp", "QueueScenario"},
                                                {"session_scenarios_test.cpp", "SessionScenario"},
                                                {"strategy_scenarios_test.cpp", "StrategyScenario"},
                                                {"zookeeper_backend_test.cpp", "ClientScenario"},
                                                {"administration_scenarios_test.cpp", "AdministrationScenario"}};

// Suites, tests, and "Suite.Test" of everything below tests/, or of what is not another backend's there.
std::set<std::string> names_of_tests(const std::string& backend = {}) {
  std::set<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(kProject / "tests")) {
    if (entry.path().extension() != ".cpp") continue;
    if (!backend.empty() && !concerns(fs::relative(entry.path(), kProject), backend)) continue;
    const std::string text = contents(entry.path());
    for (const std::string macro : {"\nTEST(", "\nTEST_F(", "\nTEST_P("}) {
      for (auto at = text.find(macro); at != std::string::npos; at = text.find(macro, at)) {
        at += macro.size();
        const std::string suite = word_at(text, at);
        const std::string test = word_at(text, at);
        names.insert({suite, test, suite + "." + test});
      }
    }
    const auto table = tables.find(entry.path().filename().string());  // a test for each row
    if (table == tables.end()) continue;
    for (const std::string& row : matches(text, std::regex("\n +\\{\"(\\w+)\", "))) {
      names.insert({row, table->second + "." + row});
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
  for (const auto& entry : fs::recursive_directory_iterator(kProject / "docs")) found.push_back(entry.path());
  for (const auto& entry : fs::directory_iterator(kProject)) found.push_back(entry.path());
  found.push_back(kProject / "examples/README.md");
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
  for (const char* backend : {"etcd", "postgres", "redis", "zookeeper"}) {
    const auto cells = tests_of_hazards(contents(kProject / "docs/backends" / (std::string(backend) + ".md")));
    EXPECT_GT(cells.size(), 20U) << backend;
    for (const std::string& cell : cells) {
      for (const std::string& name : matches(cell, quoted)) {
        const bool path = name.find('/') != std::string::npos;
        EXPECT_TRUE(path ? fs::exists(kProject / name) : known.contains(name)) << backend << ": " << name;
      }
    }
  }
}

TEST(Documents, TestsThatTheyNameExist) {
  const auto known = names_of_tests();
  const std::regex name("`([A-Z][A-Za-z0-9]*\\.[A-Z][A-Za-z0-9_]*)`");
  for (const fs::path& page : pages()) {
    for (const std::string& test : matches(contents(page), name))
      EXPECT_TRUE(known.contains(test)) << page << ": " << test;
  }
}

// The backend that a heading is about; empty where it is about all of them.
std::string backend_of(const std::string& heading) {
  const auto* const found = std::find_if(backends.begin(), backends.end(), [&](const char* backend) {
    return heading.find(std::string(" ") + backend) != std::string::npos;
  });
  return found == backends.end() ? std::string() : *found;
}

// In code, what begins with a capital letter and is no word of SQL, variable or signal, is the name of a test. Suites
// of different backends share names, so that it must be a test of the backend that the section is about.
TEST(EvidencePage, NamesTestsThatExist) {
  const std::regex name("`([A-Z][A-Za-z0-9]*[a-z_][A-Za-z0-9_.*/]*)`");
  const std::regex capitals("[A-Z0-9_]+");
  std::map<std::string, std::set<std::string>> known{{"", names_of_tests()}};
  for (const char* backend : backends) known[backend] = names_of_tests(backend);
  std::string heading;
  std::size_t named = 0;
  std::istringstream lines(contents(kProject / "docs/evidence.md"));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) heading = line;
    for (const std::string& test : matches(line, name)) {
      if (test == "RecursiveLock" || std::regex_match(test, capitals)) continue;
      EXPECT_TRUE(known.at(backend_of(heading)).contains(test)) << heading << ": " << test;
      ++named;
    }
  }
  EXPECT_GT(named, 200U);
}

TEST(EvidencePage, NamesATestForEveryPromise) {
  const std::string page = contents(kProject / "docs/evidence.md");
  const auto promises = matches(contents(kProject / "docs/guarantees.md"), std::regex("\n([0-9]+)\\. \\*\\*"));
  EXPECT_EQ(promises.size(), 16U);
  for (const std::string& number : promises) {
    const std::string group = "`C" + std::string(number.size() == 1 ? "0" : "") + number + "_";
    EXPECT_NE(page.find(group), std::string::npos) << group;
  }
}

// Whether a source, whose path has the backend's name in the middle, makes this run. Sources put the names of runs
// together, of a backend and a variant.
bool is_run_of(const std::string& before, const std::string& after, const std::string& run) {
  const auto end = std::min(run.find('_'), run.size());
  const std::string variant = run.substr(std::min(end + 1, run.size()));
  const std::string text = contents(kProject / (before + run.substr(0, end) + after));
  return text.find('"' + variant + '"') != std::string::npos || text.find('"' + run + '"') != std::string::npos;
}

TEST(EvidencePage, NamesRunsThatExist) {
  const std::regex row("\n\\| `[a-z]+://` \\|[^|]*\\|([^|]*\\|[^|]*)\\|");
  const std::regex quoted("`([^`]+)`");
  const auto rows = matches(contents(kProject / "docs/evidence.md"), row);
  EXPECT_EQ(rows.size(), 19U);
  for (const std::string& cells : rows) {
    const auto middle = cells.find('|');
    const auto conformance = matches(cells.substr(0, middle), quoted);
    EXPECT_FALSE(conformance.empty()) << cells;
    for (const std::string& run : conformance) EXPECT_TRUE(is_run_of("tests/conformance/", "/main.cpp", run)) << run;
    for (const std::string& arena : matches(cells.substr(middle), quoted)) {
      EXPECT_TRUE(is_run_of("tests/torture/services/", "_arena.cpp", arena)) << arena;
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

TEST(DocumentsIndex, HasEveryPage) {
  const std::string index = contents(kProject / "docs/README.md");
  for (const fs::path& page : pages()) {
    const std::string path = fs::relative(page, kProject / "docs").string();
    if (path.starts_with("..") || path == "README.md") continue;
    EXPECT_NE(index.find("](" + path + ")"), std::string::npos) << path;
  }
}

// What tests/documents runs says its language. A block without one shows what is printed, or how something is written.
TEST(Documents, CommandsAreInBlocksThatAreRun) {
  const std::set<std::string> known{"",   "cmake", "console", "cpp", "cron.d", "crontab", "ini",
                                    "js", "json",  "python",  "sh",  "sql",    "yaml"};
  const std::regex command(
      "(\\$|dlock (run|hold|elect|leader|status|list|break|forget|doctor|init|backends|bench|torture)|"
      "export|cmake|ctest|etcd|etcdctl|redis-server|redis-cli|psql|sudo|scripts/[a-z]+)( .*)?");
  for (const fs::path& page : pages()) {
    if (page.filename() == "CONTRIBUTING.md") continue;
    bool inside = false;
    std::string language;
    std::istringstream lines(contents(page));
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("```")) {
        inside = !inside;
        language = line.substr(3);
        EXPECT_TRUE(known.contains(language)) << page << ": " << line;
      } else if (inside && language.empty()) {
        EXPECT_FALSE(std::regex_match(line, command)) << page << ": " << line;
      }
    }
  }
}

// Without code: blocks and quotations of a page, all but the comments of a source. No comment follows ':', as in a URL.
std::string prose_of(const fs::path& file) {
  const bool page = file.extension() == ".md";
  const std::regex quotation("`[^`]*`");
  const std::regex before_comment("^(.*? )?//");
  std::string prose;
  bool block = false;
  std::istringstream lines(contents(file));
  for (std::string line; std::getline(lines, line);) {
    if (page && line.starts_with("```")) block = !block;
    if (block) continue;
    std::smatch code;
    if (!page && !std::regex_search(line, code, before_comment)) continue;
    prose += std::regex_replace(page ? line : code.suffix().str(), quotation, "``") + '\n';
  }
  return prose;
}

// In small letters, with one blank around each word.
std::string words_of(const std::string& text) {
  std::string words = " ";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalpha(byte) != 0 || c == '`') {
      words += static_cast<char>(std::tolower(byte));
    } else if (words.back() != ' ') {
      words += ' ';
    }
  }
  return words + ' ';
}

std::vector<fs::path> files_in_plain_words() {
  std::vector<fs::path> files{kProject / "README.md"};
  for (const char* folder : {"docs", "include", "src", "backends/memory", "backends/postgres"}) {
    for (const auto& entry : fs::recursive_directory_iterator(kProject / folder)) files.push_back(entry.path());
  }
  const std::set<fs::path> extensions{".md", ".hpp", ".cpp"};
  std::erase_if(files, [&](const fs::path& path) {
    return !extensions.contains(path.extension()) || path.filename() == "evidence.md";
  });
  return files;
}

// Words that hide the actor, or that people who are not native speakers stumble over.
TEST(Documents, AreInPlainWords) {
  const auto files = files_in_plain_words();
  EXPECT_GT(files.size(), 100U);
  for (const fs::path& file : files) {
    const std::string words = words_of(prose_of(file));
    for (const std::string refused :
         {"anybody",          "anyone",         "became of",         "becomes of",     "but for",    "everybody",
          "likewise",         "nothing but",    "of its own accord", "save for",       "so long as", "somebody",
          "someone",          "taken for over", "tells of",          "told the truth", "upon",       "want of",
          "when it was over", "whoever",        "whosever"}) {
      EXPECT_EQ(words.find(' ' + refused + ' '), std::string::npos) << file << ": " << refused;
    }
  }
}

// The blocks of a page that begin with these words, and whose files are to be installed.
TEST(RecipesPage, ShowsTheFilesAsTheyAre) {
  std::string files;
  for (const auto& entry : fs::recursive_directory_iterator(kProject / "examples/deploy")) {
    if (entry.is_regular_file()) files += contents(entry.path());
  }
  const std::string page = contents(kProject / "docs/recipes.md");
  for (const std::string beginning : {"```cron.d\nDLOCK_URL=", "```ini\n[Service]", "```yaml\ncontainers:"}) {
    const auto begin = page.find(beginning);
    ASSERT_NE(begin, std::string::npos) << beginning;
    std::istringstream lines(page.substr(begin, page.find("\n```", begin) - begin));
    std::string line;
    std::getline(lines, line);
    while (std::getline(lines, line)) {
      EXPECT_NE(files.find(line.substr(line.find_first_not_of(' '))), std::string::npos) << line;
    }
  }
}

TEST(Readme, IsShortAndInThisOrder) {
  const std::string page = contents(kProject / "README.md");
  std::istringstream words(page);
  std::size_t count = 0;
  for (std::string word; words >> word;) ++count;
  EXPECT_LE(count, 900U);
  const std::vector<std::string> sections{"Why not SET NX PX by hand",
                                          "Two commands",
                                          "In C++",
                                          "In a shell",
                                          "Install",
                                          "Choose a service",
                                          "What it promises, and what it cannot",
                                          "Help"};
  EXPECT_EQ(matches(page, std::regex("\n## ([^\n]+)")), sections);
  const auto promises = page.find("\n## What it promises, and what it cannot\n");
  const std::string lines = page.substr(promises, page.find("\n## Help\n") - promises);
  EXPECT_EQ(matches(lines, std::regex("\n(- )")).size(), 6U);
}

// What a reader tries first needs no server; that its programs compile, the examples see to.
TEST(Readme, BeginsWithFiles) {
  const std::string page = contents(kProject / "README.md");
  const auto urls = matches(page, std::regex("connect\\(\"([a-z]+://)"));
  ASSERT_FALSE(urls.empty());
  EXPECT_EQ(urls.front(), "file://");
  const auto exported = matches(page, std::regex("export DLOCK_URL=([a-z]+://)"));
  ASSERT_FALSE(exported.empty());
  EXPECT_EQ(exported.front(), "file://");
}

}  // namespace
