// What the documents say about the sources: that the tests and runs exist which they name, and what they link to.
#include <gtest/gtest.h>

#include <algorithm>
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
using dlock::documents::files_below;
using dlock::documents::kProject;
using dlock::documents::matches;

const std::map<std::string, std::string> tables{{"script_rules.cpp", "ScriptRules"},
                                                {"queue_scenarios_test.cpp", "QueueScenario"},
                                                {"session_scenarios_test.cpp", "SessionScenario"},
                                                {"strategy_scenarios_test.cpp", "StrategyScenario"},
                                                {"zookeeper_backend_test.cpp", "ClientScenario"},
                                                {"administration_scenarios_test.cpp", "AdministrationScenario"}};

// Suites, tests, and "Suite.Test" of everything below tests/.
std::set<std::string> names_of_tests() {
  const std::regex test("\nTEST(?:_F|_P)?\\(\\s*(\\w+),\\s*(\\w+)");
  std::set<std::string> names;
  for (const fs::path& file : files_below({"tests"}, {".cpp"})) {
    const std::string text = contents(file);
    for (auto at = text.find("\nTEST"); at != std::string::npos; at = text.find("\nTEST", at + 1)) {
      std::smatch found;
      const auto from = text.begin() + static_cast<std::ptrdiff_t>(at);
      if (!std::regex_search(from, text.end(), found, test, std::regex_constants::match_continuous)) continue;
      names.insert({found.str(1), found.str(2), found.str(1) + "." + found.str(2)});
    }
    const auto table = tables.find(file.filename().string());  // a test for each row
    if (table == tables.end()) continue;
    for (const std::string& row : matches(text, std::regex("\n +\\{\"(\\w+)\", "))) {
      names.insert({row, table->second + "." + row});
    }
  }
  return names;
}

std::vector<fs::path> pages() {
  std::vector<fs::path> found = files_below({"docs"}, {".md"});
  for (const auto& entry : fs::directory_iterator(kProject)) {
    if (entry.path().extension() == ".md") found.push_back(entry.path());
  }
  found.push_back(kProject / "examples/README.md");
  return found;
}

// As GitHub makes them of headings (small letters, no punctuation, hyphens for blanks), and those that the page names.
std::set<std::string> anchors_of(const fs::path& page) {
  static const std::regex named("<a id=\"([^\"]+)\"></a>");
  std::set<std::string> anchors;
  std::istringstream lines(contents(page));
  bool code = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) code = !code;
    if (line.find("<a id=") != std::string::npos) {
      for (const std::string& id : matches(line, named)) anchors.insert(id);
    }
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

TEST(Documents, TestsThatTheyNameExist) {
  const auto known = names_of_tests();
  const std::regex name("`([A-Z][A-Za-z0-9]*\\.[A-Z][A-Za-z0-9_]*)`");
  for (const fs::path& page : pages()) {
    for (const std::string& test : matches(contents(page), name))
      EXPECT_TRUE(known.contains(test)) << page << ": " << test;
  }
}

// The anchors of guarantees.md, of promises first, then "hole ..." of each known hole.
std::vector<std::string> promises_and_holes() {
  const std::string page = contents(kProject / "docs/guarantees.md");
  const auto holes = page.find("\n## Known holes\n");
  const std::regex anchor("<a id=\"([a-z0-9-]+)\"></a>");
  std::vector<std::string> ids = matches(page.substr(0, holes), anchor);
  for (const std::string& hole : matches(page.substr(holes), anchor)) ids.push_back("hole " + hole);
  return ids;
}

// In "// Shows: one-holder, hole redis-failover" above a test, or above a row of a table of tests.
struct Marks {
  std::set<std::string> shows;
  std::set<std::string> hazards;  // in "// Hazard: a waiter that was killed stays in the queue"
};

Marks marks_in(const fs::path& source) {
  const std::regex mark(" *(//|#) (Shows|Hazard): (.+)");
  const std::regex test(R"re(TEST(_F|_P)?\(.*|[^"]*[{(]"\w+".*)re");
  Marks marks;
  bool marked = false;
  std::istringstream lines(contents(source));
  for (std::string line; std::getline(lines, line);) {
    std::smatch found;
    if (std::regex_match(line, found, mark)) {
      if (found.str(2) == "Hazard") {
        marks.hazards.insert(found.str(3));
      } else {
        std::istringstream ids(found.str(3));
        for (std::string id; std::getline(ids >> std::ws, id, ',');) marks.shows.insert(id);
      }
      marked = found.str(1) == "//";
    } else if (marked && line.find("// ") == std::string::npos) {
      EXPECT_TRUE(std::regex_match(line, test)) << source << ": no test follows the mark, but " << line;
      marked = false;
    }
  }
  return marks;
}

std::vector<fs::path> marked_files() {
  return files_below({"tests"}, {".cpp", ".transcript"});
}

// scripts/evidence lists the tests by these marks.
TEST(Evidence, EachPromiseAndHole_HasATestOrIsSaidToHaveNone) {
  const auto ids = promises_and_holes();
  const std::set<std::string> known(ids.begin(), ids.end());
  EXPECT_EQ(known.size(), ids.size());
  std::set<std::string> shown;
  for (const fs::path& file : marked_files()) {
    for (const std::string& id : marks_in(file).shows) {
      EXPECT_TRUE(known.contains(id)) << file << ": guarantees.md has no " << id;
      shown.insert(id);
    }
  }
  const std::string page = contents(kProject / "docs/evidence.md");
  const std::string list = page.substr(page.find("\n## Holes without a test\n"));
  for (const std::string& hole : matches(list, std::regex("\\]\\(guarantees\\.md#([a-z0-9-]+)\\)"))) {
    EXPECT_TRUE(shown.insert("hole " + hole).second) << hole << " has a test";
  }
  // A number in the name of a test of the conformance suite is that of its promise.
  const std::string guarantees = contents(kProject / "docs/guarantees.md");
  const auto numbered = matches(guarantees, std::regex("\n[0-9]+\\. <a id=\"([a-z-]+)\"></a>"));
  const auto tests = names_of_tests();
  EXPECT_EQ(numbered.size(), 16U);
  for (std::size_t i = 0; i < numbered.size(); ++i) {
    const std::string prefix = (i < 9 ? "C0" : "C") + std::to_string(i + 1) + "_";
    const auto test = tests.lower_bound(prefix);
    EXPECT_TRUE(test != tests.end() && test->starts_with(prefix)) << prefix;
    EXPECT_EQ(ids.at(i), numbered.at(i)) << "scripts/evidence counts anchors";
    shown.insert(numbered.at(i));
  }
  for (const std::string& id : ids) EXPECT_TRUE(shown.contains(id)) << id << " has no test";
}

// As scripts/evidence lists them. A hazard that no test names any more is missing here: correct the number only if no
// lock can meet it any more, or if a test names a new one.
TEST(Evidence, HazardsOfEachService_AreAllNamedByTests) {
  std::map<std::string, std::set<std::string>> hazards;  // by the service in the path of the test, or "all"
  const std::set<std::string> services{"etcd", "file", "memory", "mysql", "postgres", "redis", "zookeeper"};
  for (const fs::path& file : marked_files()) {
    const fs::path path = fs::relative(file, kProject);
    const auto service =
        std::find_if(path.begin(), path.end(), [&](const fs::path& part) { return services.contains(part.string()); });
    const auto named = marks_in(file).hazards;
    if (!named.empty()) hazards[service == path.end() ? "all" : service->string()].insert(named.begin(), named.end());
  }
  std::map<std::string, std::size_t> counts;
  for (const auto& [service, named] : hazards) counts[service] = named.size();
  const std::map<std::string, std::size_t> expected{{"all", 17},      {"etcd", 19},  {"mysql", 4},
                                                    {"postgres", 74}, {"redis", 30}, {"zookeeper", 22}};
  EXPECT_EQ(counts, expected);
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
  std::string prose;
  bool block = false;
  std::istringstream lines(contents(file));
  for (std::string line; std::getline(lines, line);) {
    if (page && line.starts_with("```")) block = !block;
    if (block) continue;
    const std::size_t begin = page || line.starts_with("//") ? 0 : line.find(" //");
    if (begin != std::string::npos) prose += std::regex_replace(line.substr(begin), quotation, "``") + '\n';
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

// Words that hide the actor, or that people who are not native speakers stumble over.
TEST(Documents, AreInPlainWords) {
  auto files = files_below({"docs", "include", "src", "backends", "bench", "cli", "examples", "torture"},
                           {".md", ".hpp", ".cpp"});
  EXPECT_GT(files.size(), 100U);
  files.push_back(kProject / "README.md");
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
