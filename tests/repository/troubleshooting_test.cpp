// docs/troubleshooting.md and the texts of the sources. A new text of an error needs no line there, because its class
// has a section that says what to do; a class without a section, a status that is not listed, a message of the
// command's own, and a line about a text that no source has any more are found here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <filesystem>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include <dlock/error.hpp>

#include "tests/repository/documents.hpp"

namespace {

using dlock::documents::contents;
using dlock::documents::files_below;
using dlock::documents::kProject;
using dlock::documents::matches;

const std::string& troubleshooting() {
  static const std::string page = contents(kProject / "docs/troubleshooting.md");
  return page;
}

// Each string literal of a source on a line, as the reader of the message sees it; neighbours are one.
std::string literals_of(const std::string& source) {
  std::string found;
  std::size_t at = 0;
  bool after_literal = false;
  while (at < source.size()) {
    const char c = source[at++];
    if (c == '/' && at < source.size() && source[at] == '/') {
      at = std::min(source.find('\n', at), source.size());
    } else if (c == '\'') {  // a character, or a digit separator, neither of which is longer than that
      if (at + 2 < source.size() && source[at] == '\\' && source[at + 2] == '\'') at += 3;
      if (at + 1 < source.size() && source[at + 1] == '\'') at += 2;
      after_literal = false;
    } else if (c == '"') {
      if (!after_literal) found += '\n';
      while (at < source.size() && source[at] != '"') {
        if (source[at] == '\\') ++at;
        found += source[at++];
      }
      ++at;
      after_literal = true;
    } else if (std::isspace(static_cast<unsigned char>(c)) == 0) {
      after_literal = false;
    }
  }
  return found;
}

// What is constant in a message: what stands between "..." on the page, between {} in a source.
std::vector<std::string> constant_parts(std::string text, std::string_view variable) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const auto end = std::min(text.find(variable), text.size());
    std::string part = text.substr(0, end);
    text.erase(0, std::min(end + variable.size(), text.size()));
    // Blanks, and the signs that stand around a name.
    const auto from = part.find_first_not_of(" :;,\"()");
    if (from == std::string::npos) continue;
    parts.push_back(part.substr(from, part.find_last_not_of(" :;,\"()") + 1 - from));
  }
  return parts;
}

// The items of lists that begin with a message.
std::vector<std::string> texts_of_messages() {
  return matches(troubleshooting(), std::regex("\n- `([^`]+)`"));
}

TEST(TroubleshootingPage, HasASectionForEachClassOfErrors) {
  const std::string header = contents(kProject / "include/dlock/error.hpp");
  const auto begin = header.find("enum class errc {");
  const std::string list = header.substr(begin, header.find("};", begin) - begin);
  const auto names = matches(list, std::regex("\n  ([a-z_]+)( = 1)?,"));
  ASSERT_GE(names.size(), 11U);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string message = dlock::make_error_code(static_cast<dlock::errc>(i + 1)).message();
    EXPECT_NE(troubleshooting().find("| `" + message + "` | [" + names[i] + "](#" + names[i] + ")"), std::string::npos)
        << names[i] << ": " << message;
    EXPECT_NE(troubleshooting().find("\n## " + names[i] + "\n"), std::string::npos) << names[i];
  }
  EXPECT_TRUE(dlock::make_error_code(static_cast<dlock::errc>(names.size() + 1)).message().starts_with("unknown"));
}

TEST(TroubleshootingPage, NamesEachStatusThatTheCommandGivesForAnError) {
  const auto statuses = matches(contents(kProject / "cli/exit_code.hpp"), std::regex("\n  [a-z_]+ = ([0-9]+),"));
  ASSERT_GE(statuses.size(), 14U);
  for (const std::string& status : statuses) {
    if (status == "0") continue;
    EXPECT_TRUE(std::regex_search(troubleshooting(), std::regex("\\b" + status + "\\b"))) << status;
  }
}

TEST(TroubleshootingPage, SaysOnlyWhatTheSourcesSay) {
  std::string all;
  for (const auto& source : files_below({"src", "backends", "cli", "include"}, {".cpp", ".hpp"}))
    all += literals_of(contents(source));
  const auto texts = texts_of_messages();
  EXPECT_GT(texts.size(), 220U);
  for (const std::string& text : texts) {
    for (const std::string& part : constant_parts(text, "...")) {
      EXPECT_NE(all.find(part), std::string::npos) << "no source says \"" << part << "\", as in: " << text;
    }
  }
}

// The errors of the library are many, and most end with a service's own words. What the command itself says is not.
TEST(TroubleshootingPage, HasWhatTheCommandSays) {
  const std::regex said("\\bsay[a-z_]*\\((?:fmt::format\\()?\"((?:[^\"\\\\]|\\\\.)*)\"");
  std::size_t messages = 0;
  for (const auto& source : files_below({"cli"}, {".cpp", ".hpp"})) {
    for (std::string text : matches(contents(source), said)) {
      text.erase(std::remove(text.begin(), text.end(), '\\'), text.end());
      const auto parts = constant_parts(text, "{}");
      const auto longest = std::max_element(parts.begin(), parts.end(),
                                            [](const auto& a, const auto& b) { return a.size() < b.size(); });
      if (longest == parts.end() || longest->size() < 5) continue;
      EXPECT_NE(troubleshooting().find(*longest), std::string::npos) << source << ": " << text;
      ++messages;
    }
  }
  EXPECT_GT(messages, 15U);
}

}  // namespace
